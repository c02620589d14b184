"""Scores against hand counts, and the same model scored by transformers."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from bert_core.load import load_model
from bert_core.training import datasets, evaluate, evaluate_tasks, jobs
from bert_core.training.evaluate import CLOZE

PARAGRAPHS = ["The dog barked all night in the garden.", "", "Paris is the capital of France, is it not?",
              "She walked home. He slept. It was a good film."]


@pytest.fixture
def text(tmp_path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(PARAGRAPHS), encoding="utf-8")
    return path


def test_masked_sample_hides_only_pieces(tiny_bert):
    loaded = load_model(tiny_bert)
    special = evaluate.special_of(loaded)
    ids = evaluate.encode(loaded, "The dog \u2603 barked.")
    assert special.unk in ids
    rng, chosen = np.random.default_rng(0), set()
    for _ in range(200):
        sample = evaluate.masked_sample(ids, special, rng)
        assert (sample.input_ids[sample.positions] == special.mask).all()
        chosen |= set(sample.positions.tolist())
    assert chosen == {n for n, i in enumerate(ids) if i not in (special.cls, special.sep, special.unk)}


def test_masked_lm_scores_equal_transformers(tiny_bert, text):
    import transformers

    loaded = load_model(tiny_bert)
    peer = transformers.AutoModelForMaskedLM.from_pretrained(tiny_bert).eval()
    special, rng = evaluate.special_of(loaded), np.random.default_rng(0)
    samples = [evaluate.masked_sample(evaluate.encode(loaded, p), special, rng) for p in PARAGRAPHS if p]
    for sample, found in zip(samples, evaluate.score_pieces(loaded, samples), strict=True):
        with torch.no_grad():
            logits = peer(torch.from_numpy(sample.input_ids)[None]).logits[0, sample.positions].log_softmax(-1)
        true = logits[torch.arange(len(sample.targets)), torch.from_numpy(sample.targets)]
        assert found.log_probability == pytest.approx(true.numpy(), abs=1e-5)
        assert found.rank.tolist() == (logits > true[:, None]).sum(-1).tolist()


def test_masked_lm_over_seeds(tiny_bert, text):
    found = jobs.evaluate("mlm", tiny_bert, str(text), seeds=3, limit=None)
    assert found["n"] == 3
    assert 0 <= found["accuracy"] <= found["top5"] <= 1
    assert found["accuracy_std"] >= 0
    one = jobs.evaluate("mlm", tiny_bert, str(text), seeds=1, limit=None)
    assert one["perplexity"] == pytest.approx(math.exp(one["loss"]))


def test_a_limit_takes_rows_evenly_spaced_not_the_first(tiny_gpt, text, tmp_path):
    lines = text.read_text().split("\n")
    ends = tmp_path / "ends.txt"
    ends.write_text("\n".join([lines[0], *[line for line in lines if line][-1:]]))
    some = jobs.evaluate("clm", tiny_gpt, str(text), seeds=1, limit=2)
    assert some == jobs.evaluate("clm", tiny_gpt, str(ends), seeds=1, limit=None)


def test_causal_perplexity_equals_the_score_command(tiny_gpt, text):
    from bert_core.serving.local import LocalEngine
    from bert_core.tasks.vocabulary import score

    loaded = load_model(tiny_gpt)
    engine = LocalEngine(tiny_gpt, pack=False)
    texts = [p for p in PARAGRAPHS if p]
    ours = evaluate.log_likelihoods(loaded, texts)
    theirs = [score(engine, p).log_likelihood for p in texts]
    engine.close()
    assert ours == pytest.approx(theirs, abs=1e-3)


def test_pseudo_likelihood_equals_the_score_command(tiny_bert):
    from bert_core.serving.local import LocalEngine
    from bert_core.tasks.vocabulary import score

    loaded = load_model(tiny_bert)
    engine = LocalEngine(tiny_bert, pack=False)
    texts = ["The dog barked.", "Paris is good"]
    ours, theirs = evaluate.log_likelihoods(loaded, texts), [score(engine, p).log_likelihood for p in texts]
    engine.close()
    assert ours == pytest.approx(theirs, abs=1e-3)


def test_right_to_left_reads_what_follows(checkpoint):
    loaded = load_model(checkpoint("BertLMHeadModel", is_decoder=True, reading_order="right-to-left"))
    special = evaluate.special_of(loaded)
    ids = np.array([special.cls, 10, 11, 12, special.sep])
    sample = evaluate.causal_sample(ids, special, True, False)
    assert sample.input_ids.tolist() == [special.cls, 12, 11, 10, special.sep]
    assert sample.targets.tolist() == [12, 11, 10]
    assert sample.positions.tolist() == [0, 1, 2]


def test_blimp_counts_pairs(tiny_gpt, tmp_path):
    rows = [{"sentence_good": "The dog barked.", "sentence_bad": "The dog barked."},
            {"sentence_good": "She slept.", "sentence_bad": "She slept in the garden all night in paris."}]
    (tmp_path / "rule.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = jobs.evaluate("blimp", tiny_gpt, str(tmp_path), 1, None)
    assert found["n"] == 2
    assert found["accuracy"] == 0.5  # a tie is not won; a long sentence is less likely than its short part
    assert found["rules"] == {"rule": 0.5}


def test_nsp_needs_its_head(tiny_gpt, tiny_bert, text):
    with pytest.raises(ValueError, match="no nsp head"):
        jobs.evaluate("nsp", tiny_gpt, str(text), 1, None)
    found = jobs.evaluate("nsp", tiny_bert, str(text), 2, None)
    assert 0 <= found["accuracy"] <= 1


def test_missing_data_is_said(tiny_bert, tmp_path):
    with pytest.raises(ValueError, match="needs --data"):
        jobs.evaluate("mlm", tiny_bert, None, 1, None)
    with pytest.raises(ValueError, match="is not there"):
        jobs.evaluate("sst2", tiny_bert, str(tmp_path), 1, None)


def test_cloze_items_are_fair():
    items = json.loads(CLOZE.read_text(encoding="utf-8"))["items"]
    assert len(items) == 100
    assert len({item["text"] for item in items}) == 100
    assert all(item["text"].count("[MASK]") == 1 and item["accept"] for item in items)


def test_gold_spans_are_iob2():
    row = datasets.TaggedWords(("John", "Smith", "of", "New", "York", "Paris"),
                               ("B-PER", "I-PER", "O", "B-LOC", "I-LOC", "B-LOC"))
    assert evaluate_tasks.gold_spans(row) == {(0, 10, "PER"), (14, 22, "LOC"), (23, 28, "LOC")}


@pytest.mark.parametrize(("found", "gold", "f1"), [
    ("the Broncos", "Broncos", 1.0), ("Denver Broncos", "Broncos", 2 / 3), ("Panthers", "Broncos", 0.0), ("", "x", 0.0),
])
def test_squad_f1(found, gold, f1):
    assert evaluate_tasks.token_f1(found, gold) == pytest.approx(f1)


@pytest.mark.parametrize("task", ["sst2", "ner", "squad", "stsb", "cola"])
def test_labelled_tasks_run_through_the_pages_functions(task, request, tmp_path):
    lines = {
        "sst2": "sentence\tlabel\na good film\t1\na bad film\t0\nit was good\t1\n",
        "cola": "x\t1\t\tShe slept.\nx\t0\t*\tShe slept the.\nx\t1\t\tHe slept.\n",
        "ner": "paris\tB-LOC\nis\tO\ngood\tO\n\nshe\tO\nslept\tO\n",
        "stsb": "a\tb\tc\t1\t5.0\tShe slept\tShe slept\na\tb\tc\t2\t1.0\tA dog\tparis\na\tb\tc\t3\t3.0\tA dog\tA cat\n",
    }
    squad = {"data": [{"title": "t", "paragraphs": [{"context": "The dog slept in paris.", "qas": [
        {"id": "1", "question": "where?", "answers": [{"text": "in paris", "answer_start": 14}]}]}]}]}
    path = tmp_path / "data.txt"
    path.write_text(lines.get(task, json.dumps(squad)), encoding="utf-8")
    fixture = {"ner": "tiny_ner", "squad": "tiny_qa", "stsb": "tiny_bert"}.get(task, "tiny_classifier")
    found = jobs.evaluate(task, request.getfixturevalue(fixture), str(path), 5, None)
    assert found["n"] == {"ner": 2, "squad": 1}.get(task, 3)
    metric = {"ner": "f1", "squad": "f1", "stsb": "spearman", "cola": "matthews", "sst2": "accuracy"}[task]
    assert -1 <= found[metric] <= 1
    assert found[f"{metric}_std"] == 0.0

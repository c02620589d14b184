"""Scores against hand counts, and the same model scored by transformers."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from bert_core.load import load_model
from bert_core.serving.local import LocalEngine
from bert_core.training import datasets, evaluate, evaluate_tasks, jobs
from bert_core.training.cards import METRICS
from bert_core.training.evaluate import CLOZE
from bert_core.training.objectives import Sample
from bert_core.training.packing import IS_NEXT, NOT_NEXT

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


@pytest.mark.parametrize("name", ["BERT", "RoBERTa", "ALBERT"])  # the second ones spell their special tokens otherwise
def test_masked_lm_scores_equal_transformers(tiny_bert, family, text, name):
    import transformers

    folder = tiny_bert if name == "BERT" else family(name)
    loaded = load_model(folder)
    peer = transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()
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


@pytest.mark.parametrize("order", ["left-to-right", "right-to-left"])
def test_causal_perplexity_leaves_out_what_the_vocabulary_lacks(checkpoint, tmp_path, order):
    from bert_core.tasks.vocabulary import score

    model = checkpoint("BertLMHeadModel", is_decoder=True, reading_order=order)
    path = tmp_path / "text.txt"
    path.write_text("The dog \u2603 barked all night.", encoding="utf-8")
    found = jobs.evaluate("clm", model, str(path), seeds=1, limit=None)
    engine = LocalEngine(model, pack=False)
    pieces = score(engine, path.read_text(encoding="utf-8")).pieces
    engine.close()
    known = [piece.log_probability for piece in pieces if piece.token != "[UNK]"]
    assert (found["predictions"], len(pieces)) == (6, 7)
    assert found["perplexity"] == pytest.approx(math.exp(-np.mean(known)), rel=1e-4)


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


def test_nsp_needs_its_head(tiny_gpt, text):
    with pytest.raises(ValueError, match="no nsp head"):
        jobs.evaluate("nsp", tiny_gpt, str(text), 1, None)


def test_nsp_counts_the_pairs_it_gets_right(tiny_bert, text, monkeypatch):
    loaded, none = load_model(tiny_bert), np.zeros(0, dtype=np.int64)
    labels = (IS_NEXT, NOT_NEXT, NOT_NEXT, IS_NEXT, NOT_NEXT)
    pairs = [(Sample(np.array([2, 40, 3, 41 + n, 3]), np.array([0, 0, 0, 1, 1]), none, none, label), label)
             for n, label in enumerate(labels)]
    monkeypatch.setattr(evaluate, "held_out_pairs", lambda *_: pairs)
    for logits, right in (((1.0, 0.0), 2), ((0.0, 1.0), 3)):  # index 0 is IsNext
        monkeypatch.setattr(evaluate.core, "nsp_logits",
                            lambda _, pooled, row=logits: torch.tensor([row] * len(pooled)))
        found = evaluate.next_sentence(loaded, text, seeds=2)
        assert found == {"accuracy": right / 5, "accuracy_std": 0.0, "n": 5}
    assert evaluate.next_sentence(loaded, text, seeds=2, limit=3)["n"] == 3


def test_held_out_pairs_say_what_follows_what(tiny_bert):
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"  # each piece stands once in its document
    docs = ["\n".join(f"{letters[first + 2 * n]} {letters[first + 2 * n + 1]}" for n in range(9)) for first in (0, 18)]
    loaded = load_model(tiny_bert)
    special, pairs = evaluate.special_of(loaded), evaluate.held_out_pairs(loaded, docs, seed=3, tokens=2000)
    assert evaluate.held_out_pairs(loaded, docs, seed=4, tokens=2000)[0][0].input_ids.tolist() != (
        pairs[0][0].input_ids.tolist())
    labels = [label for _, label in pairs]
    assert set(labels) == {IS_NEXT, NOT_NEXT}
    assert 0.3 < np.mean(labels) < 0.7
    for sample, label in pairs:
        ids = sample.input_ids.tolist()
        first = ids.index(special.sep)
        assert sample.token_type_ids.tolist() == [0] * (first + 1) + [1] * (len(ids) - first - 1)
        assert (ids[0], ids[-1], ids.count(special.sep), sample.label) == (special.cls, special.sep, 2, label)
        assert 4 <= len(ids) <= loaded.tokenizer.limit
        assert not len(sample.positions)
        follows = letters.index(loaded.tokenizer.token_of(ids[first + 1])) == (
            letters.index(loaded.tokenizer.token_of(ids[first - 1])) + 1)
        begins = ids[first + 1] == loaded.tokenizer.id_of(letters[18])  # the second document
        assert (follows and not begins) == (label == IS_NEXT)


def test_pieces_are_right_at_rank_0_and_among_five_up_to_rank_4():
    scores = [evaluate.PieceScores(np.log([0.5, 0.25, 0.125]), np.array([0, 4, 5])),
              evaluate.PieceScores(np.log([0.5]), np.array([0]))]
    found = evaluate._piece_metrics(scores)
    assert (found["accuracy"], found["top5"], found["predictions"]) == (2 / 4, 3 / 4, 4)
    assert found["perplexity"] == pytest.approx((2 * 4 * 8 * 2) ** (1 / 4))
    with pytest.raises(ValueError, match="no piece"):
        evaluate._piece_metrics([evaluate.PieceScores(np.zeros(0), np.zeros(0))])


def test_cloze_counts_the_fifth_guess_and_not_the_sixth(tiny_bert, tmp_path, monkeypatch):
    loaded, asked = load_model(tiny_bert), []
    ranked = [loaded.tokenizer.id_of(word) for word in ("dog", "cat", "night", "garden", "home", "paris")]
    monkeypatch.setattr(evaluate.core, "mlm_logits", lambda *_: asked.append(1) or torch.zeros(1, 117).index_put(
        (torch.zeros(6, dtype=torch.long), torch.tensor(ranked)), torch.arange(6.0, 0.0, -1.0)))
    items = [{"text": "the [MASK] slept", "accept": [word]} for word in ("dog", "cat", "home", "paris")]
    path = tmp_path / "cloze.json"
    path.write_text(json.dumps({"items": items}), encoding="utf-8")
    found = evaluate.everyday_cloze(loaded, path)
    assert (found["n"], found["top1"], found["top5"], len(asked)) == (4, 1 / 4, 3 / 4, 4)
    assert found["missed"] == [{"text": "the [MASK] slept", "guesses": ["dog", "cat", "night", "garden", "home"]}]


def test_seeds_give_the_mean_and_the_samples_spread():
    found = evaluate.over_seeds(lambda seed: {"accuracy": (0.2, 0.4, 0.9)[seed]}, 3)
    assert found == pytest.approx({"accuracy": 0.5, "accuracy_std": math.sqrt((0.09 + 0.01 + 0.16) / 2)})
    assert evaluate.over_seeds(lambda seed: {"accuracy": 0.2}, 1) == {"accuracy": 0.2, "accuracy_std": 0.0}


def test_a_sequence_is_cut_at_512_pieces_where_the_model_takes_more(checkpoint):
    loaded = load_model(checkpoint("BertForMaskedLM", max_position_embeddings=601))
    ids = evaluate.encode(loaded, "dog " * 700)
    assert (len(ids), ids[-1]) == (512, loaded.tokenizer.id_of("[SEP]"))
    assert len(loaded.tokenizer.encode("dog " * 700)) == 601


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


def test_a_gold_span_goes_on_only_in_its_own_kind():
    row = datasets.TaggedWords(("John", "Paris", "York"), ("B-PER", "I-LOC", "I-LOC"))
    assert evaluate_tasks.gold_spans(row) == {(0, 4, "PER"), (5, 15, "LOC")}


@pytest.mark.parametrize(("found", "gold", "f1"), [
    ("the Broncos", "Broncos", 1.0), ("Denver Broncos", "Broncos", 2 / 3), ("Panthers", "Broncos", 0.0), ("", "x", 0.0),
])
def test_squad_f1(found, gold, f1):
    assert evaluate_tasks.token_f1(found, gold) == pytest.approx(f1)


@pytest.fixture
def score(tmp_path):
    """score(task, model, lines of the data) -> what `evaluate` finds, through the engine that the pages use."""
    def run(task: str, model: str, lines: str) -> dict:
        path = tmp_path / "data.txt"
        path.write_text(lines, encoding="utf-8")
        return jobs.evaluate(task, model, str(path), 5, None)

    return run


def answering(monkeypatch, logits) -> None:
    """Make the model's head give `logits(encoding)` wherever the scores ask for it."""
    def run_many(engine, requests):
        encodings = [engine.loaded().tokenizer.encode(request.text) for request in requests]
        return [SimpleNamespace(encoding=one, logits=logits(one)) for one in encodings]

    monkeypatch.setattr(LocalEngine, "run_many", run_many)


def test_classes_are_counted_by_hand(score, tiny_classifier, monkeypatch):
    answering(monkeypatch, lambda encoding: np.array([0.0, 1.0 if "good" in encoding.text else -1.0]))
    found = score("sst2", tiny_classifier, "sentence\tlabel\na good film\t1\nit was bad\t0\nnot good\t0\n")
    assert found == {"task": "sst2", "model": tiny_classifier, "n": 3, "accuracy": 2 / 3, "accuracy_std": 0.0}


@pytest.mark.parametrize(("names", "accuracy"), [
    (("NEGATIVE", "POSITIVE"), 2 / 3), (("Positive", "Negative"), 1 / 3), (("LABEL_0", "LABEL_1"), 2 / 3)])
def test_classes_are_known_by_their_names_in_any_order(score, checkpoint, monkeypatch, names, accuracy):
    answering(monkeypatch, lambda encoding: np.array([0.0, 1.0 if "good" in encoding.text else -1.0]))
    model = checkpoint("BertForSequenceClassification", id2label=dict(enumerate(names)))
    assert score("sst2", model, "a good film\t1\nit was bad\t0\nnot good\t0\n")["accuracy"] == accuracy


@pytest.mark.parametrize("names", [("acceptable", "unacceptable"), ("negative", "neutral", "positive"), ("LABEL_0",)])
def test_a_model_of_other_classes_is_not_scored(score, checkpoint, names):
    model = checkpoint("BertForSequenceClassification", id2label=dict(enumerate(names)))
    with pytest.raises(ValueError, match="this task's classes are negative and positive, those of"):
        score("sst2", model, "sentence\tlabel\na good film\t1\n")


def test_a_first_line_with_a_label_is_no_header_and_a_mark_of_windows_is_no_text(score, tiny_classifier):
    rows = "a good film\t1\nit was bad\t0\n"
    assert [score("sst2", tiny_classifier, head + rows)["n"] for head in ("", "\ufeff", "sentence\tlabel\n")] == [2] * 3


def test_matthews_of_a_known_table(score, tiny_acceptability, monkeypatch):
    """3 true positives, 2 true negatives, 1 false positive, 1 false negative: (6 - 1) / sqrt(4 x 4 x 3 x 3)."""
    answering(monkeypatch, lambda encoding: np.array([0.0, 1.0 if "good" in encoding.text else -1.0]))
    rows = ["1 good", "1 good dog", "1 good cat", "0 bad", "0 bad dog", "0 good film", "1 bad film"]
    found = score("cola", tiny_acceptability, "".join(f"x\t{row[0]}\t\t{row[2:]}\n" for row in rows))
    assert found["matthews"] == pytest.approx(5 / 12)
    assert found["accuracy"] == pytest.approx(5 / 7)


def test_entities_are_right_only_as_a_whole(score, tiny_ner, monkeypatch):
    """Four are true, three found, two of them right: one of these has the wrong end, another is not found."""
    labels = {"paris": "B-LOC", "garden": "I-LOC", "he": "B-PER", "dog": "B-PER"}
    names = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-ORG", "I-ORG")
    answering(monkeypatch, lambda encoding: 9.0 * np.eye(7)[
        [names.index(labels.get(token, "O")) for token in encoding.tokens]])
    found = score("ner", tiny_ner, "he\tB-PER\nwalked\tO\nhome\tB-LOC\n\nthe\tO\ndog\tB-PER\nbarked\tI-PER\n\n"
                                   "paris\tB-LOC\ngarden\tI-LOC\nis\tO\ngood\tO\n")
    assert {name: found[name] for name in ("n", "entities", "precision", "recall")} == {
        "n": 3, "entities": 4, "precision": 2 / 3, "recall": 2 / 4}
    assert found["f1"] == pytest.approx(2 * (2 / 3) * (1 / 2) / (2 / 3 + 1 / 2))


def test_answers_are_scored_against_the_best_reference(score, tiny_qa, monkeypatch):
    """Exactly right but for an article; half right by the second reference; wrong."""
    said = {"who?": "the dog", "where?": "in paris", "when?": "never"}
    gold = {"who?": ["a dog"], "where?": ["home", "paris"], "when?": ["all night"]}
    monkeypatch.setattr(evaluate_tasks, "answer", lambda _, question, context: SimpleNamespace(text=said[question]))
    context = "The dog slept all night at home in paris, a dog."
    asked = [{"id": question, "question": question, "answers": [
        {"text": text, "answer_start": context.index(text)} for text in texts]} for question, texts in gold.items()]
    found = score("squad", tiny_qa, json.dumps({"data": [{"title": "t", "paragraphs": [
        {"context": context, "qas": asked}]}]}))
    assert (found["n"], found["exact_match"]) == (3, pytest.approx(1 / 3))
    assert found["f1"] == pytest.approx((1 + 2 / 3 + 0) / 3)


def test_correlations_of_a_known_table(score, tiny_bert, monkeypatch):
    """Cosines 0.8, 0.6, 0 and 1 against 5, 1, 2 and 3: ranks 3 2 1 4 against 4 1 2 3, so 1 - 6 x 4 / (4 x 15)."""
    cosines = {"one": 0.8, "two": 0.6, "three": 0.0, "four": 1.0}
    monkeypatch.setattr(evaluate_tasks, "embed", lambda engine, text: np.array(
        [cosines[text], math.sqrt(1 - cosines[text] ** 2)] if text in cosines else [1.0, 0.0]))
    lines = [f"a\tb\tc\t{n}\t{gold}\t{first}\tbase\n" for n, (first, gold) in enumerate(
        (("one", 5), ("two", 1), ("three", 2), ("four", 3)))]
    found = score("stsb", tiny_bert, "".join(lines))
    assert found["n"] == 4
    assert found["spearman"] == pytest.approx(1 - 6 * 4 / 60)
    assert found["pearson"] == pytest.approx(np.corrcoef([0.8, 0.6, 0.0, 1.0], [5, 1, 2, 3])[0, 1])


def test_one_row_has_no_correlation(score, tiny_bert):
    with pytest.raises(ValueError, match="a correlation needs 2 rows"):
        score("stsb", tiny_bert, "a\tb\tc\t1\t5.0\tShe slept\tShe slept\n")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("said", "rows"), [("scores", (("She slept", 4), ("A dog", 4), ("paris", 4))),
                                            ("cosines", (("She slept", 1), ("She slept", 4), ("She slept", 2)))])
def test_what_is_all_the_same_has_no_correlation(score, tiny_bert, said, rows):
    lines = [f"a\tb\tc\t{n}\t{gold}\t{first}\tShe slept\n" for n, (first, gold) in enumerate(rows)]
    with pytest.raises(ValueError, match=f"the {said} are all the same, so there is no correlation"):
        score("stsb", tiny_bert, "".join(lines))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("labels", ["11", "00", "10", "01"])
@pytest.mark.parametrize("answer", [-1.0, 1.0])
def test_one_class_alone_has_a_matthews_of_0_and_no_warning(score, tiny_acceptability, monkeypatch, labels, answer):
    answering(monkeypatch, lambda encoding: np.array([0.0, answer]))
    found = score("cola", tiny_acceptability, "".join(f"x\t{label}\t\tA dog.\n" for label in labels))
    assert found["matthews"] == 0.0


@pytest.mark.parametrize("task", ["sst2", "ner", "squad", "stsb", "cola"])
def test_labelled_tasks_run_through_the_pages_functions(task, request, score):
    """Random weights: the answers are whatever they are, but each row gets one."""
    lines = {
        "sst2": "sentence\tlabel\na good film\t1\na bad film\t0\nit was good\t1\n",
        "cola": "x\t1\t\tShe slept.\nx\t0\t*\tShe slept the.\nx\t1\t\tHe slept.\n",
        "ner": "paris\tB-LOC\nis\tO\ngood\tO\n\nshe\tO\nslept\tO\n",
        "stsb": "a\tb\tc\t1\t5.0\tShe slept\tShe slept\na\tb\tc\t2\t1.0\tA dog\tparis\na\tb\tc\t3\t3.0\tA dog\tA cat\n",
    }
    squad = {"data": [{"title": "t", "paragraphs": [{"context": "The dog slept in paris.", "qas": [
        {"id": "1", "question": "where?", "answers": [{"text": "in paris", "answer_start": 14}]}]}]}]}
    fixture = {"ner": "tiny_ner", "squad": "tiny_qa", "stsb": "tiny_bert",
               "cola": "tiny_acceptability"}.get(task, "tiny_classifier")
    found = score(task, request.getfixturevalue(fixture), lines.get(task, json.dumps(squad)))
    assert found["n"] == {"ner": 2, "squad": 1}.get(task, 3)
    assert {name for name in found if name.endswith("_std")} == {f"{name}_std" for name in METRICS[task]} | (
        {"recall_std", "precision_std"} if task == "ner" else set())

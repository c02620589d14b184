"""Low-rank updates: exact when merged, small on disk, and they learn."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from bert_core import load
from bert_core import model as core
from bert_core.cli import main
from bert_core.load import load_model
from bert_core.training import block, lora, taskdata
from bert_core.training.datasets import Question
from bert_core.training.finetune import FineTuneRecipe, assemble, batches, finetune, start, with_hidden_pieces
from bert_core.training.optim import adamw
from bert_core.training.packing import Special
from bert_core.training.start import read_start, updates_of
from bert_core.training.taskdata import IGNORED, NER_LABELS, TASKS, Row, collate, sentence_vectors, word_targets

GOOD, BAD = ("a good film", "it was good", "good , good !"), ("a bad film", "it was bad", "bad , bad !")


def sentiment_file(folder: Path) -> Path:
    lines = [f"{text}\t{label}" for label, texts in ((1, GOOD), (0, BAD)) for text in texts]
    path = folder / "train.tsv"
    path.write_text("sentence\tlabel\n" + "\n".join(lines * 8) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def shipped(tiny_bert, tmp_path, monkeypatch) -> Path:
    """assets/models with a tiny twin-bert in it."""
    folder = tmp_path / "models"
    shutil.copytree(tiny_bert, folder / "twin-bert")
    shutil.copyfile(Path(tiny_bert) / "tokenizer.json", folder / "tokenizer.json")
    monkeypatch.setattr(load, "SHIPPED", folder)
    return folder


def test_fresh_updates_change_nothing(tiny_bert):
    base = load_model(tiny_bert)
    config = dataclasses.replace(base.config, architectures=("BertForSequenceClassification",), num_labels=2)
    frozen, learned = start(base.model, config, "classification", FineTuneRecipe(rank=3))
    model = assemble(config, frozen, learned, frozenset({"classification"}), 2.0)
    inputs = collate([((2, 40, 41, 3), (0, 0, 0, 0)), ((2, 42, 3), (0, 0, 0))], 0)
    ours, theirs = core.encode(model, inputs)[1], core.encode(base.model, inputs)[1]
    assert torch.allclose(ours[inputs.attention_mask], theirs[inputs.attention_mask], atol=1e-6)


def test_side_by_side_equals_merged(tiny_bert):
    base = load_model(tiny_bert)
    frozen, learned = start(base.model, base.config, None, FineTuneRecipe(rank=3))
    with torch.no_grad():
        for name, tensor in learned.items():
            if name.endswith(lora.LOW_RANK_OUT):
                tensor.normal_()
    beside = assemble(base.config, frozen, learned, frozenset(), 0.5)
    plain = {n: w for n, w in learned.items() if not lora.is_factor(n)}
    merged = lora.apply({**frozen, **plain}, {n: w for n, w in learned.items() if lora.is_factor(n)}, 0.5)
    inputs = collate([((2, 40, 41, 42, 3), (0, 0, 0, 1, 1))], 0)
    one = core.encode(beside, inputs)[1]
    two = core.encode(dataclasses.replace(beside, weights=merged, fast_linear={}), inputs)[1]
    assert torch.allclose(one, two, atol=1e-5)
    assert torch.allclose(block.encode(beside, inputs), one, atol=1e-5)  # what a training step computes
    assert not torch.allclose(one, core.encode(base.model, inputs)[1], atol=1e-2)


def learn_sentiment(folder: Path, out: Path, *more: str) -> None:
    assert main(["finetune", "--task", "sst2", "--data", str(sentiment_file(folder)), "--out", str(out), "--epochs",
                 "12", "--batch", "8", "--lr", "0.01", *more]) == 0


def share_right(loaded, folder: Path) -> float:
    """Share of the sentiment file that a classifier answers right."""
    rows = TASKS["sst2"].read(sentiment_file(folder), loaded, None, 0)
    inputs = collate([row.sequences[0] for row in rows], 0)
    answers = core.classification_logits(loaded.model, core.encode(loaded.model, inputs)[1]).argmax(-1)
    return float((answers == torch.tensor([row.target for row in rows])).float().mean())


@pytest.mark.parametrize("rank", [4, 0])
def test_finetune_learns_and_loads(shipped, tmp_path, rank):
    learn_sentiment(tmp_path, shipped / "twin-bert-sst2", "--rank", str(rank))
    loaded = load_model("twin-bert-sst2")
    assert loaded.config.id2label == ("negative", "positive")
    assert bool(loaded.config.extra.get("shared_from")) == bool(rank)
    assert share_right(loaded, tmp_path) > 0.9
    assert (shipped / "twin-bert-sst2" / "curve.jsonl").exists()


def test_a_task_model_is_a_start_with_its_updates_and_not_a_base_of_others(shipped, tmp_path):
    folder, second = shipped / "twin-bert-sst2", shipped / "twin-bert-again"
    learn_sentiment(tmp_path, folder, "--rank", "4")
    task = load_model("twin-bert-sst2").model
    _, weights, _ = read_start("twin-bert-sst2")
    for name, tensor in weights.items():
        torch.testing.assert_close(tensor, task.weights[name], atol=1e-3, rtol=1e-3)  # sums rounded at other places
    changed = "bert.encoder.layer.0.attention.self.query.weight"
    assert (weights[changed] - load_model("twin-bert").model.weights[changed]).abs().max() > 1e-2
    learn_sentiment(tmp_path, second, "--rank", "4", "--model", "twin-bert-sst2")
    assert "shared_from" not in load_model("twin-bert-again").config.extra
    assert share_right(load_model("twin-bert-again"), tmp_path) > 0.9


def test_a_warm_start_goes_on_with_the_updates_of_before(shipped, tmp_path):
    folder, again = shipped / "twin-bert-sst2", tmp_path / "again"
    learn_sentiment(tmp_path, folder, "--rank", "4")
    (folder / "card.json").write_text(json.dumps(
        {"rows": 48, "sittings": [{"tokens": None, "steps": 72, "seed": 0, "seconds": 1, "command": "first"}]}))
    learn_sentiment(tmp_path, again, "--rank", "4", "--warm-start", "twin-bert-sst2", "--epochs", "0.1", "--lr", "1e-9",
                    "--head-lr", "1e-9")
    before, after = (load_file(place / "model.safetensors") for place in (folder, again))
    assert before.keys() == after.keys()
    for name, tensor in before.items():
        torch.testing.assert_close(after[name], tensor, atol=1e-6, rtol=1e-3)
    record = json.loads((again / "run.json").read_text())
    assert [(one["rows"], one["command"]) for one in record["before"]] == [(48, "first")]
    assert record["warm_start"] == "twin-bert-sst2"


@pytest.mark.parametrize(("task", "rank", "of", "says"), [
    ("sst2", "3", "twin-bert-sst2", "this run learns it with shape (3,"),
    ("sst2", "4", "twin-bert", "no low-rank update"),
    ("sst2", "0", "twin-bert-sst2", "not at all")])
def test_a_warm_start_of_another_kind_is_refused(shipped, tmp_path, capsys, task, rank, of, says):
    learn_sentiment(tmp_path, shipped / "twin-bert-sst2", "--rank", "4", "--epochs", "0.1")
    assert main(["finetune", "--task", task, "--data", str(sentiment_file(tmp_path)), "--out", str(tmp_path / "out"),
                 "--rank", rank, "--warm-start", of]) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("rank", [4, 0])
def test_a_classifier_on_a_base_without_a_pooler_gets_a_fresh_one(checkpoint, tmp_path, rank):
    base = checkpoint("BertForMaskedLM")
    assert "pooler" not in load_model(base).model.heads
    learn_sentiment(tmp_path, tmp_path / "out", "--rank", str(rank), "--model", base)
    loaded = load_model(str(tmp_path / "out"))
    assert loaded.model.heads >= {"classification", "pooler"}
    assert share_right(loaded, tmp_path) > 0.9


def test_a_pooler_that_is_there_is_the_one_that_learns(tiny_bert):
    base = load_model(tiny_bert).model
    config = dataclasses.replace(base.config, architectures=("BertForSequenceClassification",), num_labels=2)
    _, learned = start(base, config, "classification", FineTuneRecipe(rank=0))
    assert torch.equal(learned["bert.pooler.dense.weight"], base.weights["bert.pooler.dense.weight"])


def test_same_seed_same_model(tiny_bert, tmp_path):
    base = load_model(tiny_bert)
    config = dataclasses.replace(base.config, architectures=("BertForSequenceClassification",), num_labels=2)
    rows = TASKS["sst2"].read(sentiment_file(tmp_path), base, 16, 1)
    recipe = FineTuneRecipe(epochs=2, rank=2, batch=8)
    special = Special.of(base.tokenizer.backend)
    (one, _), (two, _) = (finetune(base.model, config, TASKS["sst2"], rows, recipe, special) for _ in range(2))
    assert all(torch.equal(one[n], two[n]) for n in one)


def test_hidden_pieces_are_masks_and_nothing_else_changes():
    special = Special(pad=0, unk=1, cls=2, sep=3, mask=4)
    rows = [Row(((((2, *range(5, 205), 3)), (0,) * 202),), 1)]
    (hidden,) = with_hidden_pieces(rows, 0.3, special, np.random.default_rng(0))
    ids, kinds = hidden.sequences[0]
    changed = [new for old, new in zip(rows[0].sequences[0][0], ids, strict=True) if new != old]
    assert set(changed) == {special.mask}
    assert 40 <= len(changed) <= 80
    assert (ids[0], ids[-1], kinds, hidden.target) == (2, 3, (0,) * 202, 1)


@pytest.mark.parametrize(("count", "size", "passes"), [(100, 8, 1), (40, 32, 1), (40, 32, 3), (7, 32, 2), (1, 1, 1)])
def test_batches_read_every_row_once_a_pass(count, size, passes):
    rows = [Row((((1,) * (n % 9 + 1), (0,) * (n % 9 + 1)),), n) for n in range(count)]
    made = batches(rows, size, float(passes), 0)
    assert sorted(row.target for batch in made for row in batch) == sorted([*range(count)] * passes)


def test_part_of_a_pass_is_its_share_of_the_steps():
    rows = [Row((((1,), (0,)),), n) for n in range(100)]
    assert [len(batches(rows, 8, passes, 0)) for passes in (0.01, 0.5, 2.5)] == [1, 6, 32]


def test_a_file_with_none_of_the_entities_that_are_learnt_is_refused(tiny_bert, tmp_path):
    loaded, file = load_model(tiny_bert), tmp_path / "train.tsv"
    file.write_text("aspirin\tB-DRUG\nhelps\tO\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"train.tsv has entities of DRUG only; what is learnt here is LOC, ORG, PER"):
        TASKS["ner"].read(file, loaded, None, 0)
    file.write_text("aspirin\tB-MISC\nparis\tB-LOC\n", encoding="utf-8")
    (row,) = TASKS["ner"].read(file, loaded, None, 0)
    assert NER_LABELS.index("B-LOC") in row.target


def test_word_targets_follow_the_tokenizers_words(tiny_bert):
    encoding = load_model(tiny_bert).tokenizer.encode("paris' dog walked")
    targets = word_targets(encoding, ("paris'", "dog", "walked"), ("B-LOC", "O", "B-MISC"))
    named = {encoding.tokens[n]: t for n, t in enumerate(targets) if t != IGNORED}
    assert named["paris"] == NER_LABELS.index("B-LOC")
    assert named["'"] == NER_LABELS.index("I-LOC")
    assert named["dog"] == 0
    assert targets[0] == targets[-1] == IGNORED
    assert NER_LABELS[0] == "O"
    assert sum(t == 0 for t in targets) == 2


def test_question_rows_point_at_the_answer(tiny_bert, tmp_path):
    import json

    context = "The dog slept in the garden. " * 3 + "She walked home in paris. " + "He was not good. " * 5
    start_at = context.index("in paris")
    data = {"data": [{"title": "t", "paragraphs": [{"context": context, "qas": [
        {"id": "1", "question": "where?", "answers": [{"text": "in paris", "answer_start": start_at}]}]}]}]}
    path = tmp_path / "squad.json"
    path.write_text(json.dumps(data))
    loaded = load_model(tiny_bert)
    for seed in range(5):
        (row,) = TASKS["squad"].read(path, loaded, None, seed)
        (ids, segments), (first, last) = row.sequences[0], row.target
        assert loaded.tokenizer.decode(list(ids[first : last + 1])) == "in paris"
        assert set(segments[first : last + 1]) == {1}
        # [CLS] where ? [SEP], as much of the context as fits, and the [SEP] that closes it when a question is asked
        assert [loaded.tokenizer.token_of(i) for i in (*ids[:4], ids[-1])] == ["[CLS]", "where", "?", "[SEP]", "[SEP]"]
        assert (len(ids), ids.count(ids[-1])) == (loaded.tokenizer.limit, 2)
        assert segments == (0,) * 4 + (1,) * (len(ids) - 4)


def test_sentence_vectors_equal_embed(tiny_bert):
    from bert_core.serving.local import LocalEngine
    from bert_core.tasks.sentences import embed

    loaded, engine = load_model(tiny_bert), LocalEngine(tiny_bert, pack=False)
    texts = ["The dog barked", "She walked home in the garden ."]
    encoded = [loaded.tokenizer.encode(text) for text in texts]
    inputs = collate([(e.input_ids, e.token_type_ids) for e in encoded], 0)
    ours = sentence_vectors(inputs, core.encode(loaded.model, inputs)[1])
    for row, text in zip(ours, texts, strict=True):
        assert row.tolist() == pytest.approx(embed(engine, text).tolist(), abs=1e-5)
    engine.close()


def loss_of_two_rows(name: str, base: load.Loaded) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """A task's loss on what starts from `base`, and what learns."""
    task = TASKS[name]
    labels = max(2, len(task.labels))
    config = dataclasses.replace(base.config, architectures=(task.architecture,), num_labels=labels)
    frozen, learned = start(base.model, config, task.head, FineTuneRecipe(rank=2))
    model = assemble(config, frozen, learned, frozenset(), 1.0)
    one, two = ((2, 40, 41, 3, 42, 3), (0, 0, 0, 0, 1, 1)), ((2, 43, 3, 44, 45, 3), (0, 0, 0, 1, 1, 1))
    targets = {"ner": ((IGNORED, 1, 0, IGNORED, 0, IGNORED),) * 2, "squad": ((4, 4), (3, 4)), "stsb": (0.1, 0.9)}
    rows = [Row((a, b) if name == "stsb" else (a,), target)
            for (a, b), target in zip(((one, two), (two, one)), targets.get(name, (0, 1)), strict=True)]
    return task.loss(model, rows, 0), learned


@pytest.mark.parametrize("name", sorted(TASKS))
def test_every_task_has_a_finite_loss_and_gradients(name, tiny_bert):
    loss, learned = loss_of_two_rows(name, load_model(tiny_bert))
    loss.backward()
    assert torch.isfinite(loss)
    assert any(w.grad is not None and w.grad.abs().sum() > 0 for n, w in learned.items() if lora.is_factor(n))


def test_an_answer_is_looked_for_at_cls_and_in_the_context(tiny_qa):
    """Neither in the question nor in the padding; a question without an answer points at [CLS]."""
    loaded = load_model(tiny_qa)
    rows = [Row((((2, 40, 41, 3, 42, 43, 3), (0, 0, 0, 0, 1, 1, 1)),), (0, 0)),
            Row((((2, 44, 3, 45, 3), (0, 0, 0, 1, 1)),), (3, 4))]
    expected = []
    for row, places in zip(rows, ([0, 4, 5, 6], [0, 3, 4]), strict=True):
        hidden = core.encode(loaded.model, collate(row.sequences, 0))[1]
        for logits, target in zip(core.question_answering_logits(loaded.model, hidden), row.target, strict=True):
            allowed = np.exp(logits[0, places].double().numpy())
            expected.append(-np.log(allowed[places.index(target)] / allowed.sum()))
    assert taskdata.answer_loss(loaded.model, rows, 0).item() == pytest.approx(np.mean(expected), rel=1e-4)


@pytest.mark.parametrize(("scores", "larger"), [((0.2, 0.9), 1), ((0.9, 0.2), 0), ((0.5, 0.5), None)])
def test_the_pair_that_people_find_more_alike_should_have_the_larger_cosine(tiny_bert, scores, larger):
    """Of two pairs CoSENT is ln(1 + e^(20 x how far the wrong cosine is ahead)); of equal scores it asks nothing."""
    loaded = load_model(tiny_bert)
    texts = (("The dog barked", "A cat slept in paris"), ("She walked home .", "The garden is not good"))
    encoded = [[loaded.tokenizer.encode(text) for text in pair] for pair in texts]
    pairs = [tuple((tuple(e.input_ids), tuple(e.token_type_ids)) for e in pair) for pair in encoded]
    cosines = []
    for pair in pairs:
        inputs = collate(pair, 0)
        one, other = sentence_vectors(inputs, core.encode(loaded.model, inputs)[1])
        cosines.append(float(one @ other))
    assert abs(cosines[0] - cosines[1]) > 0.01
    loss = taskdata.similarity_loss(loaded.model, [Row(p, s) for p, s in zip(pairs, scores, strict=True)], 0)
    expected = 0.0 if larger is None else np.log1p(np.exp(20 * (cosines[1 - larger] - cosines[larger])))
    assert loss.item() == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(("name", "decay", "head"), [
    ("bert.encoder.layer.0.output.dense.weight", True, False), ("bert.encoder.layer.0.output.dense.bias", False, False),
    ("bert.encoder.layer.0.output.LayerNorm.weight", False, False), ("bert.pooler.dense.weight", True, False),
    ("bert.encoder.layer.0.output.dense.weight.low_rank_in", False, False),
    ("bert.encoder.layer.0.output.dense.weight.low_rank_out", False, False), ("classifier.weight", True, True),
    ("qa_outputs.bias", False, True), ("cls.predictions.transform.dense.weight", True, True)])
def test_what_decays_and_what_learns_at_the_rate_of_the_heads(name, decay, head):
    weight = torch.zeros(2, 2, requires_grad=True)
    (group,) = adamw({name: weight}, lr=1.0, head_lr=2.0, weight_decay=0.1).param_groups
    assert (group["weight_decay"], group["peak_lr"]) == (0.1 if decay else 0.0, 2.0 if head else 1.0)


@pytest.mark.parametrize("device", ["banana", *(() if torch.cuda.is_available() else ("cuda",))])
def test_a_device_that_is_none_is_refused(shipped, tmp_path, capsys, device):
    assert main(["finetune", "--task", "sst2", "--data", str(sentiment_file(tmp_path)), "--out", str(tmp_path / "out"),
                 "--device", device]) == 2
    assert f"--device '{device}'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_finetune_refuses_a_causal_base(tiny_gpt, tmp_path, capsys):
    assert main(["finetune", "--task", "sst2", "--data", str(sentiment_file(tmp_path)), "--model", tiny_gpt,
                 "--out", str(tmp_path / "out")]) == 2
    assert "both-way" in capsys.readouterr().err


def test_what_finetune_writes_opens_from_any_folder(shipped, tmp_path):
    learn_sentiment(tmp_path, tmp_path / "mine", "--rank", "4")
    loaded = load_model(str(tmp_path / "mine"))
    assert loaded.config.extra["shared_from"] == "twin-bert"
    assert share_right(loaded, tmp_path) > 0.9


def test_finetune_writes_over_no_other_model(shipped, tmp_path, capsys):
    out = tmp_path / "taken"
    out.mkdir()
    (out / "run.json").write_text("{}")
    assert main(["finetune", "--task", "sst2", "--data", str(sentiment_file(tmp_path)), "--out", str(out)]) == 2
    assert "not empty" in capsys.readouterr().err
    assert [path.name for path in out.iterdir()] == ["run.json"]
    (out / "run.json").rename(out / "curve.jsonl")  # all that a run leaves which was stopped
    learn_sentiment(tmp_path, out, "--rank", "4", "--epochs", "0.1")


def test_a_warm_start_of_another_task_is_refused(shipped, tmp_path):
    learn_sentiment(tmp_path, shipped / "twin-bert-sst2", "--rank", "4", "--epochs", "0.1")
    config = load_model("twin-bert-sst2").config
    assert updates_of("twin-bert-sst2", "twin-bert", config)
    with pytest.raises(ValueError, match="learned another task"):
        updates_of("twin-bert-sst2", "twin-bert", dataclasses.replace(config, id2label=("unacceptable", "acceptable")))


def test_a_stretch_of_a_long_context_keeps_its_answer():
    loaded, inside = load_model("twin-bert"), "tokenizations unbelievably washing "
    context = inside * 60 + "Paris " + inside * 60
    question = Question("1", "Where?", context, (("Paris", context.index("Paris")),))
    wanted = loaded.tokenizer.encode("Paris").input_ids[1:-1]
    rows = [taskdata._question_row(question, loaded, np.random.default_rng(seed)) for seed in range(60)]
    assert len({row.target for row in rows}) > 20
    for row in rows:
        (ids, _), (first, last) = row.sequences[0], row.target
        assert ids[first : last + 1] == wanted

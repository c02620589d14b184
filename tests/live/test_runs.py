"""Whole runs in this process: a film that starts at random, ways that leave alone what they should, a model to keep."""

import io
import zipfile
from collections import OrderedDict

import numpy as np
import pytest
import torch

from bert_core.load import load_model
from bert_core.measures import classification
from bert_core.training.live import baselines, classifier, film, tables
from bert_core.training.live.finetuning import WORD, FinetuneRun, classifier_config, start_weights
from bert_core.training.live.folder import RunFolder
from bert_core.training.live.pretraining import PretrainRun, film_steps, start_of, waves
from bert_core.training.live.specs import FinetuneSpec, PretrainSpec
from bert_core.training.live.tables import Labelled, write_rows
from tests.stepping import finish

ROWS = [Labelled(f"the {a} was {b}", label) for a in ("dog", "cat", "film", "garden", "river")
        for b, label in (("good", "good"), ("bad", "bad"))]


def folder_at(path, **files: str) -> RunFolder:
    path.mkdir()
    made = RunFolder(path)
    for name, content in files.items():
        made.write(name.replace("_", "."), content.encode())
    return made


def test_a_run_leaves_its_random_start_and_every_curve(tmp_path):
    spec = PretrainSpec(layers=1, width=64, heads=2, steps=6, batch=4)
    run = PretrainRun(spec, folder_at(tmp_path / "run"))
    while run.step < run.steps:
        run.advance()
    run.report()
    folder = RunFolder(tmp_path / "run")
    assert folder.frames() == (0, 1, 2, 3, 4, 5, 6)
    curves = folder.arrays("curves")
    assert {len(curves[name]) for name in ("loss", "accuracy", "nsp_loss", "lr", "gradient")} == {6}
    assert curves["held_step"][0] == 0
    assert folder.values("scored") == {"lines": 242, "known": 0}
    start = start_of(spec, run.model.config.vocab_size)
    for name, tensor in folder.frame(0).items():
        torch.testing.assert_close(tensor, start[name].half().float())
    one = film.shoot(0, film.run_frame(folder, 0), "anna the [MASK]", spec)
    before = film.shoot(0, film.frame_zero(spec), "anna the [MASK]", spec)
    np.testing.assert_allclose(one.attention, before.attention, atol=2e-3)
    assert film.project([one, before]).shape == (2, len(one.words), 2)


@pytest.mark.parametrize(("changes", "blind"), [({"causal": True}, True), ({}, False)])
def test_a_causal_run_never_looks_ahead(changes, blind):
    spec = PretrainSpec(layers=1, width=64, heads=2, **changes)
    shot = film.shoot(0, film.frame_zero(spec), "anna the [MASK] bakes", spec)
    ahead = np.triu(np.ones(shot.attention.shape[-2:], dtype=bool), 1)
    assert (shot.attention[..., ahead] == 0).all() == blind


def test_a_run_without_nsp_is_asked_for_it_all_the_same(tmp_path):
    spec = PretrainSpec(layers=1, width=64, heads=2, steps=6, batch=4, nsp=False)
    run = PretrainRun(spec, folder_at(tmp_path / "run"))
    while run.step < run.steps:
        run.advance()
    run.report()
    curves = run.folder.arrays("curves")
    assert np.isnan(curves["nsp_loss"]).all()
    assert curves["held_nsp"] == pytest.approx(0.5, abs=0.1)


def test_film_steps_begin_at_random_end_at_the_end_and_are_few():
    for steps in (1, 7, 300, 6000):
        found = film_steps(steps)
        assert {0, steps} <= found
        assert len(found) <= 24


def test_waves_are_sines_and_cosines_of_falling_rate():
    table = waves(5, 4)
    assert table.shape == (5, 4)
    torch.testing.assert_close(table[:, 0], torch.arange(5.0).sin())
    torch.testing.assert_close(table[:, 3], (torch.arange(5) / 100).cos())


@pytest.mark.parametrize(("way", "still"), [
    ("frozen", "bert.encoder.layer.1.output.dense.weight"), ("last", "bert.embeddings.position_embeddings.weight"),
    ("full", None),
])
def test_each_way_leaves_alone_what_it_should(tiny_bert, tmp_path, way, still):
    base = load_model(tiny_bert)
    folder = folder_at(tmp_path / "run", train_tsv=write_rows(ROWS[:6]), test_tsv=write_rows(ROWS[6:]))
    run = FinetuneRun(FinetuneSpec("own", way, epochs=2, batch=4, base=tiny_bert), folder, base)
    while run.step < run.steps:
        run.advance()
    run.report()
    assert folder.frames() == (0, 1, 2)
    model = classifier.epoch_model(folder, 2, base, "mine:own")
    names = [n for n in base.model.weights if n.startswith("bert.")]
    moved = {n for n in names if not torch.equal(model.model.weights[n], base.model.weights[n])}
    assert still not in moved
    assert bool(moved) == (way != "frozen")
    trace = classifier.try_sentence(model, ROWS[6].text)
    kept = folder.arrays("epoch-2")["probabilities"]
    np.testing.assert_allclose(classifier.probabilities(trace), kept[0], atol=5e-3)
    untouched = classifier.epoch_model(folder, 0, base, "start")
    assert all(torch.equal(untouched.model.weights[n], base.model.weights[n]) for n in names)


@pytest.fixture
def nothing_kept(monkeypatch):
    """No split has been compared before."""
    monkeypatch.setattr(baselines, "_kept", OrderedDict())


def test_preparing_goes_in_pieces_and_shows_nothing_half_done(tiny_bert, tmp_path, nothing_kept):
    folder = folder_at(tmp_path / "run", train_tsv=write_rows(ROWS[:6]), test_tsv=write_rows(ROWS[6:]))
    run = FinetuneRun(FinetuneSpec("own", "frozen", epochs=1, batch=4, base=tiny_bert), folder)
    pieces = 0
    while not folder.frames():
        assert not folder.arrays("curves")
        run.advance()
        run.report()
        pieces += 1
    assert pieces > baselines.LSTM_EPOCHS
    assert run.step == 0
    assert len(folder.arrays("curves")["test_accuracy"]) == 1
    assert set(folder.arrays("baselines")) == {"words", "lstm"}


def test_the_last_step_is_done_when_its_epoch_is_on_disk(tiny_bert, tmp_path):
    folder = folder_at(tmp_path / "run", train_tsv=write_rows(ROWS[:4]), test_tsv=write_rows(ROWS[4:] * 10))
    run = FinetuneRun(FinetuneSpec("own", "full", epochs=1, batch=4, base=tiny_bert), folder)
    while run.step < run.steps:
        assert 1 not in folder.frames()
        run.advance()
    assert folder.frames() == (0, 1)
    assert "bert.pooler.dense.weight" in folder.moves(1)


def test_a_second_run_on_the_same_split_waits_for_no_baseline(nothing_kept):
    first, pauses = finish(baselines.both(tables.dataset("own", ROWS[:6], ROWS[6:]), seed=0))
    again, none = finish(baselines.both(tables.dataset("own", ROWS[:6], ROWS[6:]), seed=0))
    assert pauses > baselines.LSTM_EPOCHS
    assert none == 0
    assert all(np.array_equal(first[name], again[name]) for name in ("words", "lstm"))
    assert finish(baselines.both(tables.dataset("own", ROWS[:6], ROWS[6:]), seed=1))[1] > 0
    assert finish(baselines.both(tables.dataset("own", ROWS[:4], ROWS[4:]), seed=0))[1] > 0


def test_no_more_than_the_last_few_splits_are_kept(nothing_kept, monkeypatch):
    monkeypatch.setattr(baselines, "MAX_KEPT", 2)
    data = tables.dataset("own", ROWS[:6], ROWS[6:])
    for seed in (0, 1, 0, 2):  # 0 was used after 1
        finish(baselines.both(data, seed))
    assert [finish(baselines.both(data, seed))[1] > 0 for seed in (0, 1)] == [False, True]


@pytest.mark.parametrize(("words", "epochs"), [(2_000, 30), (30_000, 10), (10**6, 3)])
def test_the_lstm_goes_through_a_large_table_less_often(words, epochs):
    assert baselines.lstm_epochs(words) == epochs
    assert words * baselines.lstm_epochs(words) <= 300_000 or epochs == baselines.LSTM_LEAST


def test_the_largest_table_is_read_in_bounded_time():
    rows = [Labelled("a " * 199 + str(n), "xy"[n % 2]) for n in range(tables.MAX_READ // 400)]
    reads = sum(len(baselines.words(row.text)) for row in rows)
    assert reads * baselines.lstm_epochs(reads) < 2 * baselines.LSTM_READS


def test_a_kept_model_opens_with_transformers(tiny_bert, tmp_path):
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    base = load_model(tiny_bert)
    folder = folder_at(tmp_path / "run", train_tsv=write_rows(ROWS[:6]), test_tsv=write_rows(ROWS[6:]))
    run = FinetuneRun(FinetuneSpec("own", "full", epochs=1, batch=4, base=tiny_bert), folder, base)
    while run.step < run.steps:
        run.advance()
    run.report()
    model = classifier.epoch_model(folder, 1, base, "mine:own-full")
    with zipfile.ZipFile(io.BytesIO(classifier.to_zip(model))) as archive:
        archive.extractall(tmp_path)
    theirs = AutoModelForSequenceClassification.from_pretrained(tmp_path / "own-full").eval()
    inputs = AutoTokenizer.from_pretrained(tmp_path / "own-full")(ROWS[0].text, return_tensors="pt")
    with torch.no_grad():
        logits = theirs(**inputs).logits[0].numpy()
    np.testing.assert_allclose(classifier.try_sentence(model, ROWS[0].text).logits, logits, atol=1e-5)
    assert theirs.config.id2label == {0: "bad", 1: "good"}


def test_an_epoch_that_left_nothing_is_said(tmp_path, tiny_bert):
    base = load_model(tiny_bert)
    with pytest.raises(ValueError, match="not begun"):
        classifier.epoch_model(folder_at(tmp_path / "run"), 0, base, "x")
    with pytest.raises(ValueError, match="step 7 has no checkpoint"):
        RunFolder(tmp_path / "run").frame(7)


def test_confusion_calibration_and_mistakes_by_hand():
    found = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.05, 0.95]])
    classes = np.array([0, 1, 1, 0])
    assert classification.confusion(found, classes).tolist() == [[1, 1], [1, 1]]
    assert classification.accuracy(found, classes) == 0.5
    wrong = classification.mistakes(found, classes)
    assert [(m.index, m.given, m.true) for m in wrong] == [(3, 1, 0), (1, 0, 1)]
    bins = classification.calibration(found, classes)
    assert bins.count.tolist() == [1, 1, 2]
    assert bins.accuracy.tolist() == [0, 1, 0.5]
    assert bins.error == pytest.approx((0.6 + 0.2 + 2 * 0.425) / 4)


def test_from_scratch_the_words_outside_the_data_are_random_too(tiny_bert, tmp_path):
    base = load_model(tiny_bert)
    folder, used, spec = RunFolder(tmp_path), np.array([0, 5]), FinetuneSpec(way="scratch", seed=3)
    config = classifier_config(base.config, ("good", "bad"))
    begun = start_weights(base, config, spec)
    folder.set_values("config", config.to_dict())
    folder.set_values("task", {"way": spec.way, "seed": spec.seed})
    folder.set_arrays("rows", {"used": used})
    folder.set_moves(1, {WORD: torch.ones(2, config.hidden_size)})
    model = classifier.epoch_model(folder, 1, base, "mine").model
    table = model.weights[WORD]
    assert torch.equal(table[6:], begun[WORD][6:])
    assert torch.allclose(table[5], begun[WORD][5] + 1)
    assert not torch.equal(table[6:], base.model.weights[WORD][6:])
    pooler = "bert.pooler.dense.weight"
    assert torch.equal(model.weights[pooler], begun[pooler])


@pytest.mark.parametrize("way", ["full", "scratch"])
def test_an_epoch_takes_a_byte_for_each_number_that_learns_and_gives_the_weights_back(tiny_bert, tmp_path, way):
    base = load_model(tiny_bert)
    folder = folder_at(tmp_path / "run", train_tsv=write_rows(ROWS[:6]), test_tsv=write_rows(ROWS[6:]))
    run = FinetuneRun(FinetuneSpec("own", way, epochs=2, batch=4, base=tiny_bert), folder, base)
    while run.step < run.steps:
        run.advance()
    wide = sum(t.numel() for t in run.weights.values() if t.dim() > 1)
    other = sum(4 * len(t) + t.numel() for t in run.weights.values())  # a row's step, and what has no rows
    sizes = [(folder.path / f"frame-{epoch:06d}.safetensors").stat().st_size for epoch in folder.frames()]
    assert sizes[0] < 2000
    assert max(sizes) < wide + other + 20_000
    read = classifier.epoch_model(folder, 2, base, "mine").model.weights
    for name, true in run.weights.items():
        found = read[name][run.table.used] if name == WORD else read[name]
        true = true.detach()
        furthest = (true - run.start[name]).abs().max()
        assert furthest > 0
        assert (found - true).abs().max() <= furthest / 250 + 1e-7, name

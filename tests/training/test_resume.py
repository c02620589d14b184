"""A run goes on as what it was, or not at all."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
import torch
from filelock import FileLock
from safetensors import SafetensorError

from bert_core.cli import main
from bert_core.config import BertConfig
from bert_core.loading.files import put_in_place, write_tensors
from bert_core.training import resume
from bert_core.training.cards import sittings_of
from bert_core.training.packing import Packed
from bert_core.training.start import turned_round
from tests.training.tiny import corpus, trainer

SETTINGS = {"out": "runs/a", "lr": 4e-4, "mix": "a=0.9,b=0.1", "seed": 6, "packed": "runs/p.npz", "device": None,
            "save_seconds": 600.0, "stop_after": None, "tokens": 5000, "freeze_words": True}


@pytest.mark.parametrize(("name", "value", "words"), [
    ("lr", 5e-4, "--lr 0.0004, not 0.0005"), ("seed", 7, "--seed 6, not 7"), ("freeze_words", False, "--freeze-words"),
    ("mix", None, "--mix 'a=0.9,b=0.1', not None"), ("packed", "runs/q.npz", "--packed 'runs/p.npz'"),
])
def test_another_setting_is_refused_with_both_values(name, value, words):
    with pytest.raises(ValueError, match="another --out") as refused:
        resume.check_settings(SETTINGS | {name: value}, SETTINGS)
    assert words in str(refused.value)


@pytest.mark.parametrize("changes", [
    {}, {"device": "cuda"}, {"save_seconds": 9.0}, {"stop_after": 60.0}, {"tokens": 7000}, {"out": "elsewhere/a"},
    {"workers": 3}, {"packed": "./runs/p.npz"}, {"packed": str(Path("runs/p.npz").absolute())},
])
def test_what_a_sitting_may_choose_and_other_spellings_of_a_place_pass(changes):
    resume.check_settings(SETTINGS | changes, SETTINGS)


def test_what_an_old_record_lacks_is_not_compared():
    resume.check_settings(SETTINGS, {name: SETTINGS[name] for name in ("lr", "mix")} | {"steps": 9, "before": []})


@pytest.mark.parametrize(("steps", "old", "new", "refused"), [
    (11, 2500, 2000, False), (12, 2500, 2000, True),  # by the new number: 16 steps, the last 6 of them fall
    (9, 2500, 1500, False), (10, 2500, 1500, True), (19, 2500, 1500, True),
    (11, 2000, None, False), (12, 2000, None, True),  # by the old one
    (19, 2500, 2499, False), (19, 2500, None, False),  # the same 19 steps
])
def test_tokens_may_change_until_the_rate_falls(tmp_path, steps, old, new, refused):
    begun, later = trainer(tokens=old), trainer(tokens=new)
    assert {tokens: trainer(tokens=tokens).steps for tokens in (2500, 2000, 1500)} == {2500: 19, 2000: 16, 1500: 12}
    begun.step = steps
    begun.save(tmp_path)
    resume.check_tokens(later, tmp_path, {})  # an old record that does not say
    if refused:
        with pytest.raises(ValueError, match=f"--tokens {old}, not {new}, and after {steps} steps"):
            resume.check_tokens(later, tmp_path, {"tokens": old})
    else:
        resume.check_tokens(later, tmp_path, {"tokens": old})


@pytest.mark.parametrize(("steps", "old", "new", "refused"), [
    (0, 1500, 2500, False), (1, 1500, 2500, True),  # the rate rises over 3 or 4 of 12 or 19 steps: from 1/3 to 2/4
    (3, 1500, 2500, True), (4, 1500, 2500, False),  # after 3 it would be whole in both, but the third was 3/4
    (3, 2500, 1500, True), (4, 2500, 1500, False),  # down and up alike
    (2, 2500, 2499, False), (2, 2500, 2000, False),  # as many steps; as long a rise
])
def test_tokens_may_not_change_while_the_rate_rises(tmp_path, steps, old, new, refused):
    begun, later = trainer(tokens=old, warmup=0.25), trainer(tokens=new, warmup=0.25)
    assert {tokens: int(0.25 * trainer(tokens=tokens).steps) for tokens in (2500, 1500)} == {2500: 4, 1500: 3}
    begun.step = steps
    begun.save(tmp_path)
    if refused:
        with pytest.raises(ValueError, match=f"--tokens {old}, not {new}, and after {steps} steps .* still rising"):
            resume.check_tokens(later, tmp_path, {"tokens": old})
    else:
        resume.check_tokens(later, tmp_path, {"tokens": old})


def test_the_last_whole_step_is_the_schedules():
    from bert_core.training.optim import learning_rate_factor

    for steps, decay in ((22, 0.4), (10, 0.0), (7, 1.0), (100, 0.33)):
        rates = [learning_rate_factor(step, steps, 0, int(decay * steps)) for step in range(steps)]
        assert max(step for step, rate in enumerate(rates) if rate == 1) == min(
            steps - 1, resume.last_whole_step(steps, decay))


@pytest.fixture
def half_done(tmp_path) -> list[str]:
    """The command of a run that stopped after its first step."""
    command = ["pretrain", "--corpus", str(corpus(tmp_path / "corpus")), "--objective", "clm", "--init", "scratch",
               "--out", str(tmp_path / "run"), "--tokens", "2000", "--step-tokens", "200", "--vocab-size", "150",
               "--layers", "1", "--hidden", "12", "--heads", "3", "--device", "cpu", "--seed", "4"]
    assert main([*command, "--precision", "bf16", "--stop-after", "0"]) == 0
    return command


def record(folder: Path, name: str = "run") -> dict:
    return json.loads((folder / name / "run.json").read_text(encoding="utf-8"))


def test_a_run_that_is_asked_to_be_another_stays_as_it_is(half_done, tmp_path, capsys):
    before = record(tmp_path)
    for flag, value in (("--lr", "0.1"), ("--seed", "5"), ("--mix", "stories=1"), ("--optimizer", "muon"),
                        ("--loss-fraction", "0.5"), ("--precision", "fp32"), ("--no-nsp", None)):
        capsys.readouterr()
        assert main([*half_done, flag, *([value] if value else [])]) == 2
        out, error = capsys.readouterr()
        assert (out, error.count("\n")) == ("", 1)
        assert f"{flag} " in error
    assert record(tmp_path) == before


def test_a_run_that_ended_before_its_first_checkpoint_is_no_other_run(half_done, tmp_path, capsys):
    (tmp_path / "run" / resume.STATE).unlink()
    for flag, value in (("--vocab-size", "120"), ("--lr", "0.1")):
        assert main([*half_done, flag, value]) == 2
        assert f"holds a run with {flag} " in capsys.readouterr().err
    assert main(half_done) == 0
    assert record(tmp_path)["seconds"] >= 0


def test_a_run_that_could_not_begin_leaves_nothing_that_another_would_take_for_its_own(half_done, tmp_path, capsys):
    out = str(tmp_path / "other")
    for slip in (["--corpus", str(tmp_path / "none")], ["--mix", "poems=1"]):
        assert main([*half_done, "--out", out, *slip]) == 2
        assert capsys.readouterr().err.startswith("error: ")
        assert not Path(out).exists()


def test_a_model_that_stands_in_out_is_no_run_and_stays_as_it_is(half_done, tmp_path, capsys):
    """A finished run's model too: its record says what it was made with, not what goes on."""
    assert main(half_done) == 0
    model = tmp_path / "run" / "model"
    before = {path.name: path.read_bytes() for path in model.iterdir()}
    for out, init in ((model, "scratch"), (model, str(tmp_path / "run" / "model"))):
        capsys.readouterr()
        assert main([*half_done, "--out", str(out), "--init", init]) == 2
        assert "is a model's folder" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in model.iterdir()} == before


def test_a_folder_of_other_things_is_refused_as_it_is(half_done, tmp_path, capsys):
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "one.txt").write_text("Dear Anna")
    assert main([*half_done, "--out", str(tmp_path / "letters")]) == 2
    assert "is not empty; give a new folder" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "letters").iterdir()] == ["one.txt"]


def test_a_vocabulary_that_lies_in_out_is_never_written_over(half_done, tmp_path, capsys):
    assert main(half_done) == 0
    own = tmp_path / "own" / "tokenizer.json"
    own.parent.mkdir()
    start = [*half_done, "--init", str(tmp_path / "run" / "model"), "--out", str(own.parent), "--stop-after", "0"]
    for held, slip in (("{}", []), ("{}", ["--corpus", str(tmp_path / "none")])):
        own.write_text(held)
        assert main([*start, *slip]) == 2
        assert own.read_text() == held
        assert {path.name for path in own.parent.iterdir()} == {"tokenizer.json", "run.lock"}
    assert "is no folder" in capsys.readouterr().err
    shutil.copyfile(tmp_path / "run" / "tokenizer.json", own)  # the very same is no other
    assert main(start) == main(start) == 0


def test_more_pieces_than_are_packed_are_refused(half_done, tmp_path, capsys):
    assert main([*half_done, "--out", str(tmp_path / "other"), "--pack-tokens", "500"]) == 2
    assert "--tokens asks for 2,000" in capsys.readouterr().err


@pytest.mark.parametrize("device", ["banana", "cuda:x", *(() if torch.cuda.is_available() else ("cuda",))])
def test_a_device_that_is_none_is_refused_first(half_done, tmp_path, capsys, device):
    assert main([*half_done, "--out", str(tmp_path / "other"), "--device", device]) == 2
    assert f"--device '{device}'" in capsys.readouterr().err


def test_it_goes_on_in_the_precision_it_began_in(half_done, tmp_path, monkeypatch):
    monkeypatch.setattr("torch.cpu._is_avx512_bf16_supported", lambda: False)
    monkeypatch.setattr("torch.cpu._is_amx_tile_supported", lambda: False)
    assert main(half_done) == 0
    assert record(tmp_path)["precision"] == "bf16"
    assert record(tmp_path)["seconds"] >= 0  # it is done


def test_a_run_that_ends_early_is_the_start_of_the_whole_one(half_done, tmp_path, capsys):
    whole, short = tmp_path / "whole", tmp_path / "run"
    shutil.copytree(short, whole)
    assert main([*half_done, "--out", str(whole)]) == 0
    capsys.readouterr()
    assert main([*half_done, "--end-at", "1000", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["step"] == said["steps"] == record(tmp_path)["steps"]
    curves = [[json.loads(line) for line in (out / "curve.jsonl").read_text().splitlines()] for out in (whole, short)]
    assert 1 < len(curves[1]) == record(tmp_path)["steps"] < len(curves[0])
    assert curves[1][-1]["tokens"] >= 1000 > curves[1][-2]["tokens"]
    for long, cut in zip(*curves, strict=False):
        assert {k: long[k] for k in ("loss", "lr")} == pytest.approx({k: cut[k] for k in ("loss", "lr")})
    assert (short / "model" / "model.safetensors").is_file()


def test_a_run_cannot_end_where_it_has_been(half_done, tmp_path, capsys):
    assert main([*half_done, "--end-at", "1000"]) == 0
    assert main([*half_done, "--end-at", "300"]) == 2
    assert "after --end-at" in capsys.readouterr().err
    assert main(half_done) == 0  # to the end of the plan


def test_pairs_packed_with_something_else_are_refused(half_done, tmp_path, capsys):
    other = [*half_done, "--packed", str(tmp_path / "run" / "packed.npz"), "--out", str(tmp_path / "other")]
    for flag, value, words in (("--seed", "5", "with seed 4, not 5"), ("--excerpt", "99", "with excerpt 1200, not 99"),
                               ("--mix", "stories=1", "with mix None, not 'stories=1'"),
                               ("--vocab-size", "140", "with vocab-size 150, not 140")):
        capsys.readouterr()
        assert main([*other, "--out", str(tmp_path / flag), flag, value]) == 2
        assert words in capsys.readouterr().err


@pytest.mark.parametrize(("decoder", "order", "objective", "said"), [
    (True, "right-to-left", "rtl", ""), (True, "left-to-right", "clm", ""), (False, "left-to-right", "rtl", ""),
    (False, "left-to-right", "mlm", ""),
    (True, "right-to-left", "clm", "was trained with --objective rtl and starts anew with clm"),
    (True, "left-to-right", "mlm", "was trained with --objective clm and starts anew with mlm"),
])
def test_who_turns_a_causal_model_round_is_told(decoder, order, objective, said):
    config = BertConfig(is_decoder=decoder, reading_order=order)
    assert turned_round(config, objective) == said


@pytest.mark.parametrize("text", ["[]", "{", ""])
def test_a_damaged_record_is_one_line_that_names_it(tmp_path, text):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(ValueError, match="run.json is damaged"):
        resume.earlier_record(tmp_path)


def test_a_damaged_checkpoint_is_one_line_that_names_it(tmp_path):
    (tmp_path / "state.safetensors").write_bytes(b"not tensors")
    with pytest.raises(ValueError, match="state.safetensors is no checkpoint"):
        resume.steps_done(tmp_path)


def test_a_full_disk_is_an_error_with_the_file_and_leaves_nothing(tmp_path, monkeypatch):
    def full(_tensors, path, _metadata):
        path.write_bytes(b"half")
        raise SafetensorError("No space left on device")

    monkeypatch.setattr("safetensors.torch.save_file", full)
    with pytest.raises(OSError, match="w.safetensors can't be written"):
        write_tensors({"w": torch.ones(2)}, tmp_path / "w.safetensors")
    assert not list(tmp_path.iterdir())


def test_a_model_whose_run_has_gone_on_keeps_the_record_it_was_made_with(half_done, tmp_path):
    end = ["--end-at", "1000"]
    assert main([*half_done, *end]) == 0
    out = Path(half_done[half_done.index("--out") + 1])
    first = sittings_of(out / "model")
    assert main([*half_done, "--stop-after", "0"]) == 0
    assert "seconds" not in json.loads((out / "run.json").read_text())
    assert sittings_of(out / "model") == first
    assert first[-1]["tokens"] == 1000
    (out / "model" / "run.json").unlink()  # as runs of before have it
    assert sittings_of(out / "model") is None


@pytest.fixture
def twin(half_done, tmp_path):
    """twin(name, flags): the exit status of a run that reads and makes one file of pairs with the others."""
    def run(name: str, *flags: str) -> int:
        return main([*half_done, "--packed", str(tmp_path / "pairs" / "both.npz"), "--out", str(tmp_path / name),
                     "--stop-after", "0", *flags])

    return run


def test_twins_from_scratch_share_their_pairs_and_with_them_the_vocabulary(twin, tmp_path):
    assert twin("one", "--objective", "clm") == twin("two", "--objective", "mlm") == 0
    one, two = ((tmp_path / name / "tokenizer.json").read_text() for name in ("one", "two"))
    assert json.loads(one)["model"]["vocab"] == json.loads(two)["model"]["vocab"]


def test_a_twin_reads_what_another_packed_that_was_killed_right_after(twin, tmp_path, monkeypatch):
    save = Packed.save

    def save_and_stop(*args) -> None:
        save(*args)
        raise KeyboardInterrupt

    with monkeypatch.context() as during:
        during.setattr(Packed, "save", save_and_stop)
        assert twin("one") == 130
    assert (tmp_path / "pairs" / "both.npz.tokenizer.json").is_file()
    assert twin("two") == twin("one") == 0


def test_what_is_no_file_holds_no_pairs_and_stays_what_it_is(half_done, tmp_path, capsys):
    pipe, words = tmp_path / "pipe", tmp_path / "words.txt"
    os.mkfifo(pipe)
    words.write_text("no pairs", encoding="utf-8")
    for path, said in ((pipe, "is no file"), (tmp_path, "is no file"), (words, "holds no packed pairs\n")):
        assert main([*half_done, "--packed", str(path), "--out", str(tmp_path / "another")]) == 2
        assert said in capsys.readouterr().err
    with pytest.raises(FileExistsError, match="is no file"):
        put_in_place(words, pipe)
    assert pipe.is_fifo()


def test_a_twin_that_asks_for_other_pairs_than_are_packed_is_refused(twin, tmp_path, capsys):
    assert twin("one") == 0
    other = corpus(tmp_path / "another" / "corpus")
    (other / "lines.txt").write_text("Another text.\n", encoding="utf-8")
    for flag, value, words in (
            ("--vocab-size", "140", "with vocab-size 150, not 140"),
            ("--pack-tokens", "2500", "with pack-tokens 2000, not 2500"),
            ("--corpus", str(other), "bytes)', not 'lines.txt (1"),
            ("--corpus", str(tmp_path / "none"), "none' is no folder")):
        capsys.readouterr()
        assert twin("two", flag, value) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert words in error
        assert not (tmp_path / "two").exists()
    assert twin("two", "--corpus", str(corpus(tmp_path / "moved"))) == 0  # the same text, elsewhere


def test_a_run_goes_on_with_its_pairs_whatever_became_of_the_corpus(half_done, tmp_path):
    shutil.rmtree(tmp_path / "corpus")
    assert main([*half_done, "--stop-after", "0"]) == 0


def test_the_record_says_how_much_is_packed_where_it_is_not_what_the_run_would_pack(twin, tmp_path):
    assert twin("one") == twin("two", "--tokens", "1000") == twin("two", "--tokens", "1200") == 0
    assert [record(tmp_path, name)["pack_tokens"] for name in ("one", "two")] == [None, 2000]


def test_the_progress_of_a_run_that_ends_early_ends_at_its_end(half_done, capsys):
    assert main([*half_done, "--end-at", "1000"]) == 0
    assert "[####################] 5/5" in capsys.readouterr().err


def test_two_runs_at_once_do_not_write_into_one_folder(half_done, tmp_path, capsys):
    with FileLock(tmp_path / "run" / "run.lock"):
        assert main([*half_done, "--stop-after", "0"]) == 2
    assert "is being written by another run" in capsys.readouterr().err
    assert main([*half_done, "--stop-after", "0"]) == 0

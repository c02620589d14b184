"""Cards say what the run recorded and what evaluate printed, and every shipped model has one."""

from __future__ import annotations

import argparse
import json
import re
import shlex

import pytest

from bert_core.load import SHIPPED, shipped_names
from bert_core.training.cards import (
    CORPUS_MADE_BY,
    METRICS,
    READ_SCORES,
    card,
    command,
    read_card,
    sittings_of,
    to_markdown,
    write_card,
)
from bert_core.training.commands import add_parsers
from bert_core.training.flags import OF_A_SITTING

PRETRAINED = {"objective": "mlm", "corpus": "data/pretrain", "init": "start", "out": "runs/a", "tokens": 5000,
              "seed": 1, "mix": "enwiki2015=0.9,captions=0.1", "steps": 7, "seconds": 120, "lr": 4e-4}
FINETUNED = {"task": "ner", "model": "twin-bert", "data": "data", "rows": 9, "steps": 3, "seconds": 60, "seed": 0}
SCORE = {"task": "mlm", "model": "twin-bert", "n": 3, "accuracy": 0.25, "accuracy_std": 0.01, "top5": 0.5,
         "top5_std": 0.0, "perplexity": 99.5, "perplexity_std": 1.0,
         "command": "python -m bert_core evaluate --task mlm"}


def test_a_card_holds_the_runs_own_numbers(tmp_path):
    found = card("twin-bert", PRETRAINED, [SCORE], "two cores")
    assert [sitting["tokens"] for sitting in found["sittings"]] == [5000]
    assert [d["share"] for d in found["data"]] == [0.9, 0.1]
    assert {s["metric"]: s["value"] for s in found["scores"]} == {"accuracy": 0.25, "top5": 0.5, "perplexity": 99.5}
    write_card(tmp_path, found)
    assert read_card(tmp_path) == found
    text = (tmp_path / "CARD.md").read_text()
    assert text == to_markdown(found)
    for part in ("CC BY-SA 3.0", "5,000 word pieces", "two cores; 2 minutes", "0.25", SCORE["command"], "shared start"):
        assert part in text


def test_a_finished_runs_own_folder_knows_what_its_model_has_read(tmp_path):
    model, other = tmp_path / "model", tmp_path / "other"
    model.mkdir()
    assert sittings_of(model) is None
    earlier = card("twin-bert", PRETRAINED, [], "two cores")["sittings"]
    (tmp_path / "run.json").write_text(json.dumps(PRETRAINED | {"init": "twin-bert", "seed": 2, "before": earlier}))
    first, last = sittings_of(model)
    assert [first] == earlier
    assert (last["seed"], last["tokens"], last["hardware"]) == (2, 5000, "not noted")
    assert "--init twin-bert" in last["command"]
    assert sittings_of(other) is None
    (tmp_path / "run.json").write_text(json.dumps(PRETRAINED | {"end_at": 3000}))
    assert [sitting["tokens"] for sitting in sittings_of(model)] == [3000]
    write_card(model, card("twin-bert", PRETRAINED, [], "four cores"))
    assert [sitting["hardware"] for sitting in sittings_of(model)] == ["four cores"]


def test_a_card_tells_every_sitting(tmp_path):
    first = card("twin-bert", PRETRAINED, [], "two cores")
    later = PRETRAINED | {"init": "twin-bert", "tokens": 70_000, "optimizer": "muon", "freeze_words": True,
                          "before": first["sittings"]}
    found = card("twin-bert", later, [], "four cores")
    assert found["sittings"][0] == first["sittings"][0]
    text = to_markdown(found)
    for part in ("75,000 word pieces in 2 sittings", "two cores; 2 minutes", "four cores; 2 minutes",
                 "--init start", "--init twin-bert --tokens 70000", "--optimizer muon", "--freeze-words"):
        assert part in text


def test_a_task_that_went_on_tells_the_rows_of_every_sitting(tmp_path):
    first = card("twin-bert-ner", FINETUNED, [], "two cores")
    del first["sittings"][0]["rows"]  # as the first cards were
    write_card(tmp_path, first)
    later = FINETUNED | {"rows": 5, "epochs": 0.5, "warm_start": "twin-bert-ner", "before": sittings_of(tmp_path)}
    text = to_markdown(card("twin-bert-ner", later, [], "four cores"))
    for part in ("Trained in 2 sittings", "on the twin-bert of its day", "Read: 2 passes over 9 rows in 3 steps",
                 "Read: 0.5 passes over 5 rows", "--warm-start twin-bert-ner"):
        assert part in text


def test_a_task_that_went_on_from_a_run_keeps_the_runs_sitting(tmp_path):
    (tmp_path / "run.json").write_text(json.dumps(FINETUNED | {"rows": 27, "seed": 4}))
    later = FINETUNED | {"warm_start": str(tmp_path), "before": sittings_of(tmp_path)}
    found = card("twin-bert-ner", later, [], "two cores")["sittings"]
    assert [(sitting["rows"], sitting["seed"]) for sitting in found] == [(27, 4), (9, 0)]


def test_the_shares_are_those_of_all_sittings(tmp_path):
    first = {"tokens": 300, "command": "python -m bert_core pretrain --mix enwiki2015=1.0 --seed 1"}
    run = PRETRAINED | {"mix": "enwiki2015=0.5,captions=0.5", "tokens": 100, "before": [first]}
    shares = {one["source"]: one["share"] for one in card("twin-bert", run, [], "two cores")["data"]}
    assert shares == {"enwiki2015": 0.875, "captions": 0.125}


def test_shares_are_those_that_training_took_from_the_mix():
    """Weights that don't sum to 1 are shares all the same, and a blank behind a comma is none of a name's."""
    first = {"tokens": 300, "command": "python -m bert_core pretrain --mix enwiki2015=5 --seed 1"}
    run = PRETRAINED | {"mix": "enwiki2015=4, captions=4", "tokens": 100, "before": [first]}
    assert [one["share"] for one in card("twin-bert", run, [], "two cores")["data"]] == [0.875, 0.125]


def test_without_a_mix_no_card_makes_the_shares_up():
    with pytest.raises(ValueError, match="names no --mix"):
        card("twin-bert", {**PRETRAINED, "mix": None}, [], "two cores")


@pytest.mark.parametrize(("right", "words"), [(0.52, "as good as a coin"), (0.75, "often wrong"), (0.85, None)])
def test_a_card_says_what_next_sentence_prediction_is_worth(right, words):
    score = {"task": "nsp", "model": "twin-bert", "n": 9, "accuracy": right, "command": "python -m bert_core evaluate"}
    said = [line for line in card("twin-bert", PRETRAINED, [score], "two cores")["bad_at"] if "Next-sentence" in line]
    assert len(said) == (words is not None)
    assert words is None or words in said[0]


def test_the_command_is_the_one_to_type():
    assert command(PRETRAINED).startswith(
        "python -m bert_core pretrain --corpus data/pretrain --objective mlm --init start --tokens 5000 --mix enw")
    assert command(FINETUNED) == "python -m bert_core finetune --task ner --data data --model twin-bert --seed 0"


def test_the_command_can_be_typed_whatever_its_values_hold():
    run = PRETRAINED | {"corpus": "my texts", "mix": "a=0.9, b=0.1", "out": "it's"}
    words = shlex.split(command(run))
    assert [words[words.index(flag) + 1] for flag in ("--corpus", "--mix", "--out")] == [
        "my texts", "a=0.9, b=0.1", "it's"]


def test_the_command_tells_every_flag_that_is_not_at_its_default():
    changed = PRETRAINED | {"excerpt": 900, "mask_rate": 0.3, "no_nsp": True, "precision": "bf16", "layers": 2,
                            "freeze_words": True, "heads": 6, "warmup": 0.03}
    assert command(changed) == command(PRETRAINED).replace(
        " --seed", " --warmup 0.03 --seed") + (
        " --excerpt 900 --mask-rate 0.3 --no-nsp --freeze-words --precision bf16 --layers 2")
    sitting = {"device": "cuda", "save_seconds": 9.0, "stop_after": 60.0}
    assert command(PRETRAINED | sitting) == command(PRETRAINED)


@pytest.mark.parametrize("name", shipped_names())
def test_a_shipped_models_command_gives_the_settings_of_its_run(name):
    run = json.loads((SHIPPED / name / "run.json").read_text(encoding="utf-8"))
    parser = argparse.ArgumentParser()
    add_parsers(parser.add_subparsers())
    again = vars(parser.parse_args(shlex.split(command(run))[3:]))
    assert {key: again[key] for key in again.keys() & run.keys() - set(OF_A_SITTING)} == {
        key: run[key] for key in again.keys() & run.keys() - set(OF_A_SITTING)}


def test_a_fine_tuned_card_names_its_base():
    found = card("twin-bert-ner", FINETUNED, [], "two cores")
    assert found["start"] == "twin-bert"
    assert found["shared_start"] is None
    assert "2 passes over 9 rows" in to_markdown(found)


def test_no_card_is_none(tmp_path):
    assert read_card(tmp_path) is None


@pytest.mark.parametrize("name", shipped_names())
def test_every_shipped_model_has_a_complete_card(name):
    found = read_card(SHIPPED / name)
    assert found["name"] == name
    assert found["scores"], "a shipped model says how good it is"
    assert found["data"]
    assert found["bad_at"]
    assert all(s["metric"] in METRICS[s["task"]] and s["command"].startswith("python -m bert_core evaluate")
               for s in found["scores"])
    text = (SHIPPED / name / "CARD.md").read_text(encoding="utf-8")
    assert text == to_markdown(found)
    assert not re.search(r"/(work|tmp|home|root)/", text)


def test_a_card_says_how_its_scores_are_read():
    found = read_card(SHIPPED / "twin-bert")
    lines = to_markdown(found).splitlines()
    table = [n for n, line in enumerate(lines) if line.startswith("| mlm |")]
    assert READ_SCORES in lines[table[-1]:lines.index("## Bad at")]
    assert {name for metrics in METRICS.values() for name in metrics} - {"perplexity"} >= {
        "matthews", "pearson", "spearman"}
    for name in ("matthews", "pearson", "spearman", "perplexity"):
        assert name in READ_SCORES


@pytest.mark.parametrize("name", ["twin-bert", "twin-gpt", "twin-rtl"])
def test_a_card_says_how_its_tokenised_corpus_is_made(name):
    """As `scripts/lent_gpu.py` says it, by flags that are known."""
    words = (SHIPPED / name / "CARD.md").read_text(encoding="utf-8")
    made = CORPUS_MADE_BY["runs/pieces"]
    assert words.count(f"`{made}`") == words.count("--corpus runs/pieces") == 1
    lent = (SHIPPED.parents[1] / "scripts" / "lent_gpu.py").read_text(encoding="utf-8")
    there = lent[lent.index("python -m bert_core pieces") :].split("\n    python")[0]
    assert shlex.split(made) == shlex.split(there.replace("\\\n", ""))
    parser = argparse.ArgumentParser()
    add_parsers(parser.add_subparsers())
    parser.parse_args(shlex.split(made)[3:])  # ends the test where a flag is unknown

"""Training's own commands: bad numbers, empty data, models of another kind; JSON only with --json."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from bert_core.training import jobs
from bert_core.training.datasets import PLACES
from tests.adapters.families import FAMILIES, make_family
from tests.training.tiny import corpus

PRETRAIN = ("pretrain", "--corpus", "c", "--objective", "mlm", "--init", "scratch", "--out", "o")
FINETUNE = ("finetune", "--task", "sst2", "--data", "d", "--out", "o")
EVALUATE = ("evaluate", "--task", "mlm", "--data", "d")


@pytest.fixture
def file(tmp_path):
    """file(text) -> its path."""
    def write(text: str) -> str:
        path = tmp_path / "data.txt"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


@pytest.mark.parametrize(("command", "flag", "values"), [
    *((PRETRAIN, flag, ("0", "-3", "1.5", "x")) for flag in (
        "--tokens", "--end-at", "--pack-tokens", "--excerpt", "--step-tokens", "--micro-tokens", "--layers", "--hidden",
        "--heads", "--vocab-size")),
    *((PRETRAIN, flag, ("0", "-1", "nan", "inf")) for flag in ("--lr", "--head-lr")),
    (PRETRAIN, "--length", ("0", "15", "513", "64.5")),
    *((PRETRAIN, flag, ("-0.1", "1.1", "nan")) for flag in ("--warmup", "--decay")),
    *((PRETRAIN, flag, ("0", "1.1", "nan")) for flag in ("--mask-rate", "--loss-fraction")),
    *((PRETRAIN, flag, ("-1", "nan")) for flag in ("--nsp-weight", "--save-seconds", "--stop-after", "--seed")),
    *((FINETUNE, flag, ("0", "-3", "1.5")) for flag in ("--limit", "--batch")),
    (FINETUNE, "--epochs", ("0", "-1", "nan", "inf")), (FINETUNE, "--rank", ("-1",)), (FINETUNE, "--lr", ("0",)),
    (FINETUNE, "--word-dropout", ("-0.1", "2")), (FINETUNE, "--seed", ("-1",)),
    *((EVALUATE, flag, ("0", "-3", "1.5")) for flag in ("--limit", "--seeds")),
], ids=lambda value: value[0] if isinstance(value, tuple) else value)
def test_numbers_have_bounds(command, flag, values, refused):
    for value in values:
        assert f"argument {flag}: must be a" in refused(*command, f"{flag}={value}")


def test_an_empty_source_is_said(refused, tmp_path):
    folder = corpus(tmp_path / "corpus")
    (folder / "empty.txt").touch()
    said = refused("pretrain", "--corpus", str(folder), "--objective", "mlm", "--init", "scratch", "--out",
                   str(tmp_path / "out"), "--tokens", "500", "--vocab-size", "150", "--hidden", "12", "--heads", "3")
    assert "no documents in 'empty'" in said


@pytest.mark.parametrize(("task", "model"), [
    ("mlm", "tiny_bert"), ("clm", "tiny_gpt"), ("nsp", "tiny_bert"), ("blimp", "tiny_gpt"), ("sst2", "tiny_classifier"),
    ("cola", "tiny_acceptability"), ("ner", "tiny_ner"), ("stsb", "tiny_bert"),
])
def test_empty_data_is_said(task, model, refused, file, request):
    model = request.getfixturevalue(model)
    assert "nothing to score" in refused("evaluate", "--task", task, "--data", file("\n \n"), "--model", model)


def test_documents_of_one_sentence_have_no_next(refused, file, tiny_bert):
    data = file("The dog barked.\n\nA cat slept.\n\nWe walked home.\n")
    assert "no pairs" in refused("evaluate", "--task", "nsp", "--data", data, "--model", tiny_bert)


@pytest.mark.parametrize(("task", "model", "text", "words"), [
    ("squad", "tiny_qa", "{}", "SQuAD 1.1 (KeyError: 'data')"), ("squad", "tiny_qa", "[1]", "SQuAD 1.1"),
    ("squad", "tiny_qa", '{"data": []}', "nothing to score"),
    ("squad", "tiny_qa", '{"data": [{"paragraphs": [{"context": "a dog", "qas": [{"id": "1", "question": "who?", '
                         '"answers": []}]}]}]}', "without an answer"),
    ("blimp", "tiny_gpt", '{"sentence_good": "a dog"}', "BLiMP (KeyError: 'sentence_bad')"),
    ("cloze", "tiny_bert", "{}", "cloze items (KeyError: 'items')"),
    ("cloze", "tiny_bert", '{"items": [{"text": "no gap", "accept": []}]}', "no [MASK]"),
])
def test_a_file_of_another_form_is_said(task, model, text, words, refused, file, request):
    model = request.getfixturevalue(model)
    assert words in refused("evaluate", "--task", task, "--data", file(text), "--model", model)


def test_cloze_scores_the_items_asked_for_or_none(refused, run, tiny_bert, tmp_path):
    arguments = ("evaluate", "--task", "cloze", "--model", tiny_bert)
    assert "is not there" in refused(*arguments, "--data", str(tmp_path / "nope.json"))
    shipped = run(*arguments, "--limit", "3", "--json")
    assert json.loads(shipped[1])["n"] == 3
    assert run(*arguments, "--limit", "3", "--json", "--data", str(tmp_path)) == shipped  # a data folder has none


def test_all_takes_no_model(refused, tiny_bert):
    assert "leave out --model" in refused("evaluate", "--all", "--model", tiny_bert, "--data", "d")


@pytest.fixture
def empty_files(tmp_path):
    """A data folder in which every file is there and empty."""
    for place in (place for places in PLACES.values() for place in places if place):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).touch()
    return tmp_path


def test_all_keeps_the_scores_that_it_has(run, empty_files):
    code, out, err = run("evaluate", "--all", "--data", str(empty_files), "--limit", "2", "--json")
    found = json.loads(out)
    assert (code, err, [(one["task"], one["model"]) for one in found]) == (0, "", list(jobs.ALL))
    scored = [one for one in found if "error" not in one]
    assert [one["task"] for one in scored] == ["cloze"]  # the shipped items
    assert scored[0]["n"] == 2
    whys = {one["task"]: one["error"] for one in found if one not in scored}
    assert "not in the form of SQuAD 1.1" in whys.pop("squad")
    assert all(why.startswith(f"nothing to score in '{empty_files}") for why in whys.values())
    assert len(whys) == 8


def test_all_says_what_is_missing_before_the_first_task(refused, empty_files, tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "evaluate", None)
    assert "a correlation (stsb)" in refused("evaluate", "--all", "--data", str(tmp_path), "--limit", "1")
    (tmp_path / PLACES["cola"][1]).unlink()
    assert "tasks/cola/dev.tsv is not there" in refused("evaluate", "--all", "--data", str(tmp_path))
    (tmp_path / "one.txt").write_text("A dog.\n")
    assert "needs the folder" in refused("evaluate", "--all", "--data", str(tmp_path / "one.txt"), "--limit", "2")


def test_pieces_of_no_text_is_said_and_leaves_nothing(refused, run, tmp_path, tiny_bert):
    made, out = tmp_path / "made", tmp_path / "again"
    arguments = ("pieces", "--model", tiny_bert, "--corpus", str(corpus(tmp_path / "corpus")), "--out", str(made))
    assert run(*arguments, "--limit", "stories=20, lines=2")[0] == 0
    assert "holds word pieces only" in refused("pieces", "--model", tiny_bert, "--corpus", str(made), "--out", str(out))
    assert not out.exists()


def test_finetune_without_rows_is_said(refused, file, tiny_bert, tmp_path):
    rest = ("--model", tiny_bert, "--out", str(tmp_path / "out"))
    assert "no training rows" in refused("finetune", "--task", "sst2", "--data", file("sentence\tlabel\n"), *rest)
    nothing = {"text": "", "answer_start": 0}  # so that the row is left out
    asked = file(json.dumps({"data": [{"paragraphs": [{"context": "a dog", "qas": [
        {"id": "1", "question": "who?", "answers": [nothing]}]}]}]}))
    assert "no training rows" in refused("finetune", "--task", "squad", "--data", asked, *rest)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_no_library_warns_of_a_correlation(run, refused, file, tiny_bert, tiny_acceptability, form):
    same = file("".join(f"a\tb\tc\t{n}\t3.0\tShe slept\t{words}\n" for n, words in enumerate(("A dog", "paris"))))
    assert refused("evaluate", "--task", "stsb", "--data", same, "--model", tiny_bert, *form) == (
        "error: the scores are all the same, so there is no correlation\n")
    for label in "01":
        code, _, error = run("evaluate", "--task", "cola", "--data", file(f"x\t{label}\t\tShe slept.\n"),
                             "--model", tiny_acceptability, *form)
        assert (code, error) == (0, "")


@pytest.mark.parametrize(("family", "words"), [
    ("unknown: MPNet", "runs through transformers"), ("PhoBERT", "PhobertTokenizer"),
])
def test_a_model_or_tokenizer_that_is_transformers_own_is_refused(family, words, refused, file, tmp_path):
    (tmp_path / "model").mkdir()
    model = str(make_family(tmp_path / "model", next(one for one in FAMILIES if one.name == family)))
    if family != "PhoBERT":  # its own block is ours, and scores need no more than its pieces
        assert words in refused("evaluate", "--task", "mlm", "--data", file("The dog barked."), "--model", model)
    assert words in refused("export", model, str(tmp_path / "out"))
    assert "both-way BERT" in refused("finetune", "--task", "sst2", "--data", file("x\ty\na dog\t1\n"), "--model",
                                      model, "--out", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_json_only_where_it_is_asked_for(run, file, tiny_gpt, tmp_path):
    arguments = ("evaluate", "--task", "clm", "--data", file("The dog barked.\nShe slept."), "--model", tiny_gpt)
    code, out, error = run(*arguments, "--json")
    found = json.loads(out)
    assert (code, error, out.count("\n")) == (0, "", 1)
    code, out, error = run(*arguments)
    assert (code, error) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["task", "clm"]
    assert ["n", "2"] in lines
    assert ["loss", f"{found['loss']:.4f}"] in lines
    assert len(lines) == len(found)
    code, out, _ = run("export", tiny_gpt, str(tmp_path / "out"))
    assert code == 0
    assert f"  folder           {tmp_path / 'out'}\n" in out


def test_an_export_says_which_heads_it_leaves_behind(run, tmp_path):
    headless = "ElectraForPreTraining is written as ElectraModel"
    for name, said in (("ELECTRA, discriminator", None), ("BERT", None), ("ELECTRA, discriminator", headless)):
        family = next(one for one in FAMILIES if one.name == name)
        place = tmp_path / f"{name} {bool(said)}"
        place.mkdir()
        model = str(make_family(place, family))
        if said:
            weights = Path(model, "model.safetensors")
            kept = {n: w for n, w in load_file(weights).items() if not n.startswith("discriminator")}
            save_file(kept, weights, {"format": "pt"})
        code, out, error = run("export", model, str(place / "out"), "--json")
        assert (code, error) == (0, "")
        left_out = json.loads(out).get("left_out")
        assert left_out is None if said is None else said in left_out

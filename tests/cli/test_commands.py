"""The command line as outside checks use it: JSON out, one line of error, exit code 2."""

from __future__ import annotations

import argparse
import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bert_core.cli import TRAINING, build_parser
from tests.cases import quick_are

ROOT = Path(__file__).resolve().parents[2]


def answer(run, *arguments: str):
    code, out, error = run(*arguments, "--json")
    assert (code, error) == (0, "")
    return json.loads(out)


def test_fill_mask_gives_every_gap_with_its_position(run, tiny_bert):
    found = answer(run, "fill-mask", "the [MASK] barked all [MASK] .", "--model", tiny_bert, "--top", "3")
    assert [gap["position"] for gap in found] == [2, 5]
    for gap in found:
        probabilities = [prediction["probability"] for prediction in gap["predictions"]]
        assert len(probabilities) == 3
        assert probabilities == sorted(probabilities, reverse=True)
        assert set(gap["predictions"][0]) == {"token", "id", "probability"}


def test_masks_beyond_the_cut_have_no_predictions_and_a_warning_says_so(run, tiny_bert):
    text = "dog " * 50 + "[MASK] night [MASK]"
    code, out, error = run("fill-mask", "[MASK] " + text, "--model", tiny_bert, "--json")
    found = json.loads(out)
    assert code == 0
    assert [gap["position"] for gap in found] == [1, 52, 54]
    assert [len(gap["predictions"]) for gap in found] == [5, 0, 0]
    assert error.startswith("warning: cut at the model's limit of 37 tokens; 19 more")
    assert error.count("\n") == 1


def test_of_a_text_too_long_to_be_looked_at_that_is_said(run, refused, tiny_bert):
    text = "dog " * 60_000
    assert "no [MASK] to fill in its first 200,000 characters" in refused("fill-mask", f"{text}[MASK]",
                                                                          "--model", tiny_bert)
    _, _, warning = run("embed", text, "--model", tiny_bert)
    assert "49965 more of the first 200,000 characters, and all behind them, were not read" in warning


def test_top_is_bounded_by_the_vocabulary_and_must_be_positive(run, refused, tiny_bert):
    found = answer(run, "fill-mask", "[MASK]", "--model", tiny_bert, "--top", "100000")
    assert len(found[0]["predictions"]) == 117
    assert sum(p["probability"] for p in found[0]["predictions"]) == pytest.approx(1)
    for top in ("0", "-3"):
        assert "at least 1" in refused("fill-mask", "[MASK]", "--model", tiny_bert, "--top", top)


@pytest.mark.parametrize("wrong", [("fill-mask", "--top", "0"), ("next", "--top", "3"), ("classify",)])
def test_what_is_wrong_with_every_line_is_no_lines_error(wrong, refused, tiny_bert, tmp_path):
    file = tmp_path / "lines.txt"
    file.write_text("the [MASK] barked\nwe [MASK] home\n")
    command, *options = wrong
    assert refused(command, "--file", str(file), "--model", tiny_bert, *options)


@pytest.mark.parametrize("lines", ["", "\n", "  \n\n"])
def test_a_head_that_is_not_there_is_said_whatever_the_file_holds(lines, refused, tiny_bert, tiny_gpt, tmp_path):
    file = tmp_path / "lines.txt"
    file.write_text(lines)
    for command, model in (("fill-mask", tiny_gpt), ("nsp", tiny_gpt), ("next", tiny_bert), ("classify", tiny_bert),
                           ("ner", tiny_bert), ("answer", tiny_bert)):
        refused(command, "--file", str(file), "--model", model)


def test_a_file_that_cant_be_used_is_named(refused, tiny_bert, tmp_path):
    gone = str(tmp_path / "gone" / "t.npz")
    assert refused("trace", "x", "--out", gone, "--model", tiny_bert) == f"error: No such file or directory: {gone!r}\n"
    assert refused("embed", "--file", gone) == f"error: No such file or directory: {gone!r}\n"
    assert refused("embed", "--file", str(tmp_path)) == f"error: Is a directory: {str(tmp_path)!r}\n"


def test_a_mask_is_needed_and_a_causal_model_cant_fill_it(refused, tiny_bert, tiny_gpt):
    assert "no [MASK]" in refused("fill-mask", "the dog", "--model", tiny_bert)
    assert "is causal" in refused("fill-mask", "the [MASK]", "--model", tiny_gpt)


@pytest.mark.parametrize(("command", "texts", "head"), [
    ("next", ["x"], "next-token"), ("classify", ["x"], "classification"), ("ner", ["x"], "token-classification"),
    ("answer", ["x", "y"], "question-answering"),
])
def test_a_head_that_is_not_there_never_answers(command, texts, head, refused, tiny_bert):
    assert f"no trained {head} head" in refused(command, *texts, "--model", tiny_bert)


def test_nsp_needs_its_head(refused, run, tiny_bert, tiny_gpt):
    assert 0 < answer(run, "nsp", "the dog", "barked", "--model", tiny_bert)["is_next"] < 1
    assert "no trained next-sentence head" in refused("nsp", "a", "b", "--model", tiny_gpt)


def test_next_reads_the_last_row_and_score_sums_the_chain(run, tiny_gpt):
    from bert_core import TraceRequest, load_engine

    trace = load_engine(tiny_gpt).run(TraceRequest("the dog barked"))
    logs = trace.lm_logits - np.logaddexp.reduce(trace.lm_logits, axis=1, keepdims=True)
    found = answer(run, "next", "the dog barked", "--model", tiny_gpt)
    assert found["predictions"][0]["id"] == int(trace.lm_logits[3].argmax())
    score = answer(run, "score", "the dog barked", "--model", tiny_gpt)
    assert score["tokens"] == 3
    assert score["log_likelihood"] == pytest.approx(sum(logs[n, trace.input_ids[n + 1]] for n in range(3)), abs=1e-4)


@pytest.mark.parametrize(("command", "text", "lines"), [
    ("score", "the dog barked", lambda found: [
        *(f"{p['log_probability']:.4f} {p['token']}" for p in found["pieces"]),
        f"{found['log_likelihood']:.4f} nats over 3 tokens"]),
    ("ner", "Ada Lovelace lived in London.", lambda found: [
        f"{e['label']} {e['score']:.2%} {e['text']} ({e['start']}-{e['end']})" for e in found["entities"]]),
    ("ner", "the dog barked", lambda found: ["no entities"]),
    ("classify", "a fine film", lambda found: [f"{p:.2%} {name}" for name, p in found["probabilities"].items()]),
])
def test_what_people_read_are_the_numbers_of_the_json(command, text, lines, run):
    expected = lines(answer(run, command, text))
    code, out, error = run(command, text)
    assert (code, error) == (0, "")
    assert [" ".join(line.split()) for line in out.splitlines()] == expected
    assert expected


def test_score_of_a_bert_masks_one_piece_at_a_time(run, tiny_bert):
    from bert_core import TraceRequest, load_engine

    engine, total = load_engine(tiny_bert), 0.0
    plain = engine.run(TraceRequest("the dog barked"))
    for place in (1, 2, 3):
        row = engine.run(TraceRequest("the dog barked", masked=(place,))).mlm_logits[0].astype(np.float64)
        total += row[plain.input_ids[place]] - np.logaddexp.reduce(row)
    assert answer(run, "score", "the dog barked", "--model", tiny_bert)["log_likelihood"] == \
        pytest.approx(total, abs=1e-4)


def test_classify_gives_every_number_of_a_regression(run, checkpoint):
    model = checkpoint("BertForSequenceClassification", problem_type="regression", id2label={0: "calm", 1: "sad"})
    found = answer(run, "classify", "the dog barked", "--model", model)
    assert found["probabilities"] == {}
    assert list(found["values"]) == ["calm", "sad"]
    assert (found["label"], found["probability"]) == max(found["values"].items(), key=lambda one: one[1])
    _, out, _ = run("classify", "the dog barked", "--model", model)
    assert out.split() == [part for name, value in found["values"].items() for part in (f"{value:.4f}", name)]


def test_classify_one_text_or_two(run, tiny_classifier):
    for texts in (["a good film"], ["a good film", "it was bad"]):
        found = answer(run, "classify", *texts, "--model", tiny_classifier)
        assert set(found["probabilities"]) == {"negative", "positive"}
        assert found["probability"] == max(found["probabilities"].values())
        assert sum(found["probabilities"].values()) == pytest.approx(1)


def test_ner_offsets_are_code_points(run, tiny_ner):
    text = "😀 paris, the 中 dog"
    for entity in answer(run, "ner", text, "--model", tiny_ner)["entities"]:
        assert text[entity["start"]:entity["end"]] == entity["text"]
        assert entity["label"] in {"PER", "LOC", "ORG"}
        assert 0 < entity["score"] <= 1


def test_answer_is_a_span_of_the_context(run, tiny_qa):
    context = "😀 the dog slept in the garden . " * 9
    found = answer(run, "answer", "where was the dog?", context, "--model", tiny_qa)
    assert context[found["start"]:found["end"]] == found["text"] != ""


def test_a_long_question_is_cut_and_said(run, tiny_qa):
    code, out, error = run("answer", "who " * 30, "the dog", "--model", tiny_qa, "--json")
    assert (code, error) == (0, "warning: the question is too long: its last 12 tokens were not read\n")
    assert json.loads(out)["text"] in "the dog"


def test_of_a_context_too_long_to_be_looked_at_that_is_said(run, tiny_qa, monkeypatch):
    monkeypatch.setattr("bert_core.tokenizer.MAX_CHARACTERS", 92)
    unread = "the context is too long: all behind its first 92 characters was not read"
    for question, said in (("who?", unread), ("who " * 30, f"the question is too long: its last 5 tokens of the first "
                                              f"92 characters, and all behind them, were not read; {unread}")):
        code, out, error = run("answer", question, "the dog slept . " * 6, "--model", tiny_qa, "--json")
        assert (code, error) == (0, f"warning: {said}\n")
        assert json.loads(out)["end"] <= 92
    assert run("answer", "who?", "the dog slept . " * 5, "--model", tiny_qa)[2] == ""


def test_embed_is_the_normalised_mean_of_the_words(run, tiny_bert):
    from bert_core import TraceRequest, load_engine

    vector = np.array(answer(run, "embed", "the dog", "--model", tiny_bert)["vector"])
    mean = load_engine(tiny_bert).run(TraceRequest("the dog")).hidden_states[-1, 1:3].mean(axis=0)
    np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), atol=1e-6)


def test_trace_writes_plain_arrays(run, tiny_bert, tmp_path):
    out = tmp_path / "t.npz"
    options = ("--pair", "a [MASK]", "--attention", "causal", "--model", tiny_bert, "--out", str(out))
    answer(run, "trace", "the dog", *options)
    with np.load(out, allow_pickle=False) as arrays:
        assert arrays["attention_kind"] == "causal"
        assert arrays["tokens"].tolist() == ["[CLS]", "the", "dog", "[SEP]", "a", "[MASK]", "[SEP]"]
        assert arrays["attention_probs"].shape == (2, 3, 7, 7)
        assert arrays["mlm_logits"].shape == (1, 117)
    answer(run, "trace", "", "--all-logits", "--model", tiny_bert, "--out", str(out))
    with np.load(out, allow_pickle=False) as arrays:
        assert arrays["mlm_positions"].tolist() == [0, 1]


def test_a_trace_that_finds_no_room_leaves_the_one_before(tiny_bert, tmp_path, monkeypatch, run, refused):
    def full(file, **_) -> None:
        file.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    out = tmp_path / "t.npz"
    answer(run, "trace", "the dog", "--model", tiny_bert, "--out", str(out))
    before = out.read_bytes()
    monkeypatch.setattr("bert_core.trace.np.savez", full)
    assert str(out) in refused("trace", "the dog barked", "--model", tiny_bert, "--out", str(out))
    assert out.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["t.npz"]


def test_a_file_gives_a_list_with_errors_in_their_places(run, tiny_bert, tmp_path):
    file = tmp_path / "lines.txt"
    file.write_bytes(b"\xef\xbb\xbfthe [MASK]\n\nno gap\r\n\xff\n[MASK]\x0bx\na\tb\n[MASK]")
    code, out, error = run("fill-mask", "--file", str(file), "--model", tiny_bert)
    found = json.loads(out)
    assert (code, error) == (0, "")
    assert [type(entry).__name__ for entry in found] == ["list", "dict", "dict", "dict", "list", "dict", "list"]
    assert [entry["error"] for entry in found if isinstance(entry, dict)] == [
        "the text is empty", "the text has no [MASK] to fill", "the line is not UTF-8",
        "fill-mask takes TEXT; got 2 texts"]
    assert found[0] == answer(run, "fill-mask", "the [MASK]", "--model", tiny_bert)


def test_a_text_that_begins_with_a_dash_comes_after_two(run, refused, tiny_bert):
    code, out, error = run("embed", "--model", tiny_bert, "--json", "--", "-ing")
    assert (code, error) == (0, "")
    assert json.loads(out) == answer(run, "embed", " -ing", "--model", tiny_bert)  # the blank is no piece
    assert "-ing" in refused("embed", "-ing", "--model", tiny_bert)


def test_a_file_of_pairs(run, tiny_bert, tmp_path):
    file = tmp_path / "pairs.tsv"
    file.write_text("the dog\tbarked\nonly one\n", encoding="utf-8")
    found = json.loads(run("nsp", "--file", str(file), "--model", tiny_bert)[1])
    assert found[0] == answer(run, "nsp", "the dog", "barked", "--model", tiny_bert)
    assert found[1] == {"error": "nsp takes A and B; got 1 text"}


@pytest.mark.parametrize("arguments", [
    [], ["nonsense"], ["fill-mask"], ["fill-mask", "a", "b"], ["fill-mask", " "], ["fill-mask", "x", "--top", "two"],
    ["fill-mask", "x", "--bogus"], ["nsp", "only one"], ["trace", "x"], ["trace", "x", "--out", "/no/such/dir/x.npz"],
    ["trace", "x", "--out", "x.npz", "--attention", "sideways"], ["fill-mask", "--file", "/no/such/file"],
    ["fill-mask", "x [MASK]", "--model", "no such model"], ["fill-mask", "x", "--file", "y"], ["score", ""],
    ["pretrain"], ["fill-mask", "x [MASK]", "--model", ""],
])
def test_every_misuse_is_one_line_and_exit_code_two(arguments, refused, tiny_bert):
    with_model = ["--model", tiny_bert] if arguments[:1] and arguments[0] in ("trace", "score") else []
    refused(*arguments, *with_model)


@pytest.mark.parametrize("arguments", [
    ("nsp", "the dog", "--json", "barked", "--model"), ("nsp", "--json", "the dog", "barked", "--model"),
    ("nsp", "--json", "the dog", "--model", "MODEL", "barked"),
    ("nsp", "--json", "--model", "MODEL", "--", "the dog", "barked"),
])
def test_options_stand_before_between_and_after_the_texts(arguments, run, tiny_bert):
    given = [tiny_bert if one == "MODEL" else one for one in arguments]
    code, out, error = run(*given, *([tiny_bert] if given[-1] == "--model" else []))
    assert (code, error) == (0, "")
    assert json.loads(out) == answer(run, "nsp", "the dog", "barked", "--model", tiny_bert)


def test_what_stands_behind_two_dashes_is_text(run, refused, tiny_bert):
    code, out, _ = run("fill-mask", "--model", tiny_bert, "--json", "--", "--top [MASK]")
    assert (code, [gap["position"] for gap in json.loads(out)]) == (0, [6])
    assert "takes TEXT; got 2 texts" in refused("fill-mask", "a [MASK]", "--model", tiny_bert, "--", "--json")
    assert "expected one argument" in refused("fill-mask", "a [MASK]", "--model", "--", tiny_bert)


def test_help_says_what_every_flag_does():
    from bert_core.training.commands import add_parsers

    trained = argparse.ArgumentParser().add_subparsers()
    add_parsers(trained)
    of_texts = next(action for action in build_parser()._actions if action.dest == "command")
    for name, parser in [*of_texts.choices.items(), *trained.choices.items()]:
        unsaid = [flag.dest for flag in parser._actions if not flag.help]
        assert not unsaid, name
    assert set(TRAINING) == set(trained.choices)


def test_models_lists_what_is_shipped(run):
    from bert_core.load import shipped_names

    found = answer(run, "models")
    assert [model["name"] for model in found] == list(shipped_names())
    for model in found:
        assert set(model) == {"name", "architecture", "tasks", "parameters", "shipped"}


def test_people_get_lines(run, tiny_bert):
    code, out, error = run("fill-mask", "the [MASK]", "--model", tiny_bert)
    assert (code, error) == (0, "")
    assert out.startswith("[MASK] at 2\n")


def test_as_a_process_with_any_bytes_the_usual_path_never_imports_transformers(tiny_bert):
    """What a shell hands over, odd bytes included; what is imported comes on standard error, and nothing else."""
    whole = [sys.executable, "-X", "importtime", "-m", "bert_core"]
    done = subprocess.run([*whole, "fill-mask", b"\xff [MASK] \xf0\x9f\x98\x80", "--model", tiny_bert, "--json"],
                          cwd=ROOT, capture_output=True, check=False)
    lines = done.stderr.splitlines()
    assert (done.returncode, [line for line in lines if not line.startswith(b"import time:")]) == (0, [])
    assert len(json.loads(done.stdout)[0]["predictions"]) == 5
    imported = {line.rpartition(b"|")[2].strip() for line in lines}
    assert b"torch" in imported
    assert b"transformers" not in imported


def test_a_misuse_needs_no_torch():
    light = "import sys; from bert_core.cli import main; main(['nonsense']); assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", light], cwd=ROOT, capture_output=True, check=False).returncode == 0


ENDS = {"> /dev/full": "No space left on device", "| true": "Broken pipe", ">&-": "standard output is closed"}
#: What prints, whether each write is made at once, and where it goes: what takes seconds to print at the end.
NOWHERE = [(arguments, unbuffered, ends) for arguments in ("nsp --help", "pretrain --help", "models")
           for ends in (">&-", "> /dev/full", "| true") for unbuffered in ("", "1")]


@pytest.mark.parametrize(("arguments", "unbuffered", "ends"), quick_are(len(NOWHERE) - 1, NOWHERE))
def test_an_output_that_takes_nothing_is_one_line(arguments, unbuffered, ends):
    """The command alone in a subshell, so that its exit code is the one that is said, whatever reads it."""
    done = subprocess.run(f"( {sys.executable} -m bert_core {arguments}; echo code $? >&2 ) {ends}", shell=True,
                          cwd=ROOT, env={**os.environ, "PYTHONUNBUFFERED": unbuffered}, capture_output=True, text=True,
                          check=False)
    error, code = done.stderr.splitlines()
    assert error.startswith("error: ")
    assert error.endswith(ENDS[ends])
    assert (code, done.stdout) == ("code 2", "")


def test_without_standard_error_nothing_of_it_is_on_standard_output(tiny_bert):
    command = f"{sys.executable} -m bert_core embed '{'dog ' * 60}' --model {tiny_bert} --json 2>&-"
    done = subprocess.run(command, shell=True, cwd=ROOT, stdout=subprocess.PIPE, check=False)
    assert done.returncode == 0
    assert len(json.loads(done.stdout)["vector"]) == 15

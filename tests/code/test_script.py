"""The copied script runs on its own and prints what the page shows."""

from __future__ import annotations

import ast
import html
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import BertForSequenceClassification

from bert_core import script, tasks
from bert_core.load import Loaded, load_model
from bert_core.serving.local import LocalEngine
from bert_core.trace import TraceRequest, run_batch
from tests.cases import quick_are
from tests.payloads import is_ready, said, visit
from ui.views import code

ROOT = Path(__file__).resolve().parents[2]
TEXT = 'She said "it\'s {mine}" and\tpoured the [MASK] \\ into 杯.'
PAIR = "Then <b>she</b> drank it."
#: Shipped task models, each with what it is asked.
TASKS = [
    ("twin-bert-sst2", "A film that is warm, funny and never dull.", ""),
    ("twin-bert-ner", "Angela Merkel met Tim Cook of Apple in Paris.", ""),
    ("twin-bert-squad", "Where was she born?", "Marie Curie was born in Warsaw in 1867."),
    ("twin-bert-stsb", "A man is playing a guitar.", "Someone makes music."),
    ("twin-bert-cola", "The book was wrote by her.", ""),
]
#: Absolute difference allowed between what a script prints and the page shows; float32 sums in another order.
NEAR = 1e-5


def run(source: str, folder: Path) -> dict:
    """Run the file in a fresh process, from elsewhere, with nothing of this process's environment."""
    file = folder / "sentence.py"
    file.write_text(source, encoding="utf-8")
    clean = {"PATH": os.defpath, "HOME": str(folder), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, str(file)], cwd=folder, capture_output=True, text=True, encoding="utf-8",
                          timeout=280, env=clean, check=False)
    assert done.returncode == 0, done.stderr[-800:]
    return lines_of(done.stdout)


def run_here(source: str, capsys) -> dict:
    """Run it in this process, which takes no time to start.

    Scripts of one form begin with the same imports: a fresh process is asked for one of each.
    """
    capsys.readouterr()
    exec(compile(source, "sentence.py", "exec"), {})
    return lines_of(capsys.readouterr().out)


def with_decimals(source: str) -> str:
    """The file with this process's decimals: its own has bert_core.script as it is."""
    return f"import bert_core.script\nbert_core.script.DECIMALS = {script.DECIMALS}\n{source}"


def numbers_of(request: TraceRequest, loaded: Loaded) -> dict:
    """What the page shows of a request."""
    trace, *alone = run_batch(loaded, [request, *script.alone_requests(request, loaded)])
    return script.screen_numbers(trace, loaded, alone)


def lines_of(text: str) -> dict:
    """Lines as the page shows and the script prints them, as name -> value."""
    return {name: json.loads(value) for name, value in (line.split(": ", 1) for line in text.splitlines())}


def assert_same(printed: dict, shown: dict) -> None:
    """The same names in the same order, and numbers less than NEAR apart."""
    assert list(printed) == list(shown)
    for name, value in shown.items():
        if name == "tokens":
            assert printed[name] == value
        elif isinstance(value, list) and isinstance(value[-2], str):  # what a token is said to be
            assert printed[name][:-1] == value[:-1], name
            assert printed[name][-1] == pytest.approx(value[-1], abs=NEAR)
        elif isinstance(value, dict):
            assert list(printed[name]) == list(value), name
            assert list(printed[name].values()) == pytest.approx(list(value.values()), abs=NEAR)
        else:
            assert printed[name] == pytest.approx(value, abs=NEAR)


@pytest.fixture
def more_decimals(monkeypatch):
    """Page and script show so many that their last one is no matter of rounding."""
    monkeypatch.setattr(script, "DECIMALS", 9)


@pytest.mark.parametrize(("model", "pair", "last", "form"), quick_are(2, [
    ("twin-bert", PAIR, "is next", code.LINE_BY_LINE), ("twin-gpt", "", "next", code.ENGINE),
    ("twin-bert", PAIR, "is next", code.ENGINE), ("twin-gpt", "", "next", code.LINE_BY_LINE)]))
def test_script_of_the_page_prints_the_numbers_beside_it(tmp_path, more_decimals, model, pair, last, form):
    at = visit("code", view="Script", text=TEXT, pair=pair, model=model, form=form)
    is_ready(at)
    source, beside = (block.value for block in at.code)
    shown = lines_of(beside)
    assert list(shown)[-1] == last
    assert_same(run(with_decimals(source), tmp_path), shown)


@pytest.mark.parametrize(("model", "text", "pair", "form"), quick_are(5, [
    (*case, (code.LINE_BY_LINE, code.ENGINE)[(n + turn) % 2]) for turn in range(2) for n, case in enumerate(TASKS)]))
def test_a_task_model_s_script_prints_its_answer(more_decimals, capsys, model, text, pair, form):
    at = visit("code", view="Script", text=text, pair=pair, model=model, form=form)
    is_ready(at)
    source, beside = (block.value for block in at.code)
    shown = lines_of(beside)
    assert_same(run_here(source, capsys), shown)
    assert_answers(shown, LocalEngine(model, pack=False), text, pair)
    words = html.unescape(said(at))
    assert ("most probable valid sequence" in words) == ("most probable valid sequence" in source) == (
        model == "twin-bert-ner")
    assert ("read by itself" in words) == ("cosine" in shown)


def assert_answers(shown: dict, engine: LocalEngine, text: str, pair: str) -> None:
    """What is shown of a model's head is what the task's own command answers."""
    heads = engine.loaded().model.heads
    if "classification" in heads:
        found = tasks.classify(engine, text, pair or None)
        assert shown["labels"] == pytest.approx(dict(found.probabilities), abs=NEAR)
    elif "token_classification" in heads:
        found = tasks.find_entities(engine, text, aggregation="simple", decoding="argmax").tokens
        labels = [value for name, value in shown.items() if name.startswith("position")]
        assert [(token, label) for token, label, _ in labels] == [(one.token, one.label) for one in found]
        assert [p for *_, p in labels] == pytest.approx([one.probability for one in found], abs=NEAR)
    elif "question_answering" in heads:
        found = tasks.answer(engine, text, pair)
        assert (shown["start"][0], shown["end"][0]) == found.tokens
        assert shown["start"][2] * shown["end"][2] == pytest.approx(found.score, abs=NEAR)
    else:
        assert shown["cosine"] == pytest.approx(float(tasks.embed(engine, text) @ tasks.embed(engine, pair)), abs=NEAR)


@pytest.mark.parametrize("form", [True, False])
@pytest.mark.parametrize(("changes", "name", "total"), [
    ({"num_labels": 3}, "labels", 1.0),
    ({"num_labels": 3, "problem_type": "multi_label_classification"}, "labels", None),
    ({"id2label": {0: "neg", 1: "neg", 2: "pos"}}, "labels", 1.0), ({"num_labels": 1}, "labels", None),
    ({"num_labels": 1, "problem_type": "regression"}, "numbers", None)])
def test_a_classifier_s_script_prints_what_transformers_says(
        checkpoint, more_decimals, capsys, changes, name, total, form):
    folder = checkpoint("BertForSequenceClassification", **changes)
    loaded = load_model(folder)
    request = TraceRequest("the dog barked", "it was good", parts=script.PARTS)
    printed = run_here(script.write_script(request, loaded, form), capsys)
    assert_same(printed, numbers_of(request, loaded))
    encoding = loaded.tokenizer.encode(request.text, request.pair)
    reference = BertForSequenceClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        logits = reference(torch.tensor([encoding.input_ids]),
                           token_type_ids=torch.tensor([encoding.token_type_ids])).logits[0]
    exact = {1.0: logits.softmax(-1), None: logits.sigmoid()}[total] if name == "labels" else logits
    assert list(printed[name].values()) == pytest.approx(exact.tolist(), abs=NEAR)
    assert len(printed[name]) == reference.config.num_labels


@pytest.mark.parametrize(("problem", "form"), quick_are(1, [(None, True), ("multi_label_classification", False)]))
def test_a_saved_checkpoint_s_script_runs_as_a_file(checkpoint, tmp_path, more_decimals, problem, form):
    loaded = load_model(checkpoint("BertForSequenceClassification", num_labels=3, problem_type=problem))
    request = TraceRequest("the dog barked", parts=script.PARTS)
    shown = numbers_of(request, loaded)
    assert (sum(shown["labels"].values()) == pytest.approx(1, abs=NEAR)) == (problem is None)
    assert_same(run(with_decimals(script.write_script(request, loaded, form)), tmp_path), shown)


@pytest.mark.parametrize("form", [True, False])
@pytest.mark.parametrize(("architecture", "last"), [
    ("BertForTokenClassification", "position 8"), ("BertForQuestionAnswering", "end"), ("BertModel", "cosine")])
def test_a_checkpoint_s_script_prints_what_its_head_says(
        checkpoint, more_decimals, capsys, architecture, last, form):
    loaded = load_model(checkpoint(architecture, num_labels=2))
    request = TraceRequest("the dog barked [SEP]", "it was good", "causal", parts=script.PARTS)
    shown = numbers_of(request, loaded)
    assert list(shown)[-1] == last
    assert_same(run_here(script.write_script(request, loaded, form), capsys), shown)


@pytest.mark.parametrize("pair", [None, " "])
@pytest.mark.parametrize("model", ["twin-bert-squad", "twin-bert-stsb"])
def test_without_a_second_sentence_there_is_no_word_of_an_answer(capsys, model, pair):
    loaded = load_model(model)
    request = TraceRequest("Where was she born?", pair, parts=script.PARTS)
    shown = numbers_of(request, loaded)
    assert list(shown)[-1] == "layer 6"
    source = script.write_script(request, loaded)
    assert not {word for word in ("answer", "qa_outputs", "cosine", "alone") if word in source}
    assert "alone" not in script.write_script(request, loaded, line_by_line=False)
    assert_same(run_here(source, capsys), shown)


def test_an_answer_takes_its_bounds_as_on_tasks(tiny_qa, more_decimals, capsys):
    loaded = load_model(tiny_qa)
    starts = {}
    for text in ("who slept", "where", "the dog", "a cat in paris"):
        request = TraceRequest(text, "she walked home in the night. he slept in the garden all night, it was good",
                               parts=script.PARTS)
        shown = numbers_of(request, loaded)
        assert_same(run_here(script.write_script(request, loaded), capsys), shown)
        assert shown["start"][0] <= shown["end"][0]
        trace = run_batch(loaded, [request])[0]
        starts[text] = int(trace.start_logits.argmax()), int(trace.end_logits.argmax())
    assert any(end < start for start, end in starts.values())  # the two best places alone are no answer


@pytest.mark.parametrize(("model", "needed"), [
    ("twin-bert", "cls.predictions"), ("twin-bert-sst2", "classifier"), ("twin-bert-ner", "classifier"),
    ("twin-bert-squad", "qa_outputs"), ("twin-bert-stsb", "cosine_similarity")])
def test_the_line_by_line_script_has_only_what_its_model_needs(model, needed):
    source = script.write_script(TraceRequest("Who drank it?", "She did."), load_model(model))
    every = ("cls.predictions", "classifier", "qa_outputs", "cosine_similarity")
    assert [lines for lines in every if lines in source] == [needed]
    assert "masked_fill" not in source
    assert ("def best" in source) == (model == "twin-bert")
    assert max(map(len, source.splitlines())) <= 120


def test_what_a_run_changes_at_positions_of_a_pair_leaves_no_cosine():
    loaded = load_model("twin-bert-stsb")
    pair = TraceRequest("She sang.", "He sang.")
    assert [one.text for one in script.alone_requests(pair, loaded)] == ["She sang.", "He sang."]
    for changed in (replace(pair, masked=(2,)), replace(pair, heads_off=((0, 1),))):
        assert script.alone_requests(changed, loaded) == ()


@pytest.mark.parametrize(("text", "pair"), [("The cat sat on the", " "), ("The cat sat on the [SEP]", None)])
def test_what_comes_next_is_asked_behind_the_last_piece_whatever_specials_follow(more_decimals, capsys, text, pair):
    loaded = load_model("twin-gpt")
    request = TraceRequest(text, pair, parts=script.PARTS)
    shown = script.screen_numbers(run_batch(loaded, [request])[0], loaded)
    assert_same(run_here(script.write_script(request, loaded), capsys), shown)


def test_script_carries_masked_positions_over(more_decimals, capsys):
    loaded = load_model("twin-bert")
    request = TraceRequest(TEXT, PAIR, masked=(2,), parts=script.PARTS)
    shown = script.screen_numbers(run_batch(loaded, [request])[0], loaded)
    assert "position 2" in shown
    assert_same(run_here(script.write_script(request, loaded), capsys), shown)


def test_numbers_name_each_layer_and_gap(tiny_bert):
    loaded = load_model(tiny_bert)
    trace = run_batch(loaded, [TraceRequest("the [MASK] slept [MASK]", "it was good", parts=script.PARTS)])[0]
    shown = script.screen_numbers(trace, loaded)
    assert list(shown) == ["tokens", "embeddings", "layer 1", "layer 2", "position 2", "position 4", "is next"]
    assert len(shown["position 2"]) == script.TOP
    assert shown["layer 2"] == [round(float(v), 4) for v in trace.hidden_states[2][0, :3]]
    assert script.screen_text(shown).splitlines()[1].startswith("embeddings: [")


@pytest.mark.parametrize("text", ['"""', "\\", "{0}", "'; import os #", "\u202e", "\x00", "", "x" * 3000])
def test_any_text_stays_a_string(tiny_bert, text):
    loaded = load_model(tiny_bert)
    for form in (True, False):
        tree = ast.parse(script.write_script(TraceRequest(text), loaded, form))
        constants = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        assert text in constants


def test_line_by_line_says_what_it_leaves_to_the_engine(tiny_bert):
    loaded = load_model(tiny_bert)
    request = TraceRequest("the dog", heads_off=((0, 1),), window=3)
    with pytest.raises(ValueError, match="take the short one"):
        script.write_script(request, loaded)
    short = script.write_script(request, loaded, line_by_line=False)
    assert "TraceRequest(text='the dog', window=3, heads_off=((0, 1),))" in short
    rtl = load_model("twin-rtl")
    with pytest.raises(ValueError, match="read from left to right"):
        script.write_script(TraceRequest("the dog"), rtl)

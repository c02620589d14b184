"""The copied script runs on its own and prints what the page shows."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bert_core import script
from bert_core.load import load_model
from bert_core.trace import TraceRequest, run_batch
from tests.cases import quick_are
from tests.payloads import is_ready, visit
from ui.views import code

ROOT = Path(__file__).resolve().parents[2]
TEXT = 'She said "it\'s {mine}" and\tpoured the [MASK] \\ into 杯.'
PAIR = "Then <b>she</b> drank it."
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


def lines_of(text: str) -> dict:
    """Lines as the page shows and the script prints them, as name -> value."""
    return {name: json.loads(value) for name, value in (line.split(": ", 1) for line in text.splitlines())}


def assert_same(printed: dict, shown: dict) -> None:
    """The same names in the same order, and numbers less than NEAR apart."""
    assert list(printed) == list(shown)
    for name, value in shown.items():
        if name == "tokens":
            assert printed[name] == value
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
    if form == code.ENGINE:  # the script's own process has bert_core.script as it is
        source = f"import bert_core.script\nbert_core.script.DECIMALS = {script.DECIMALS}\n{source}"
    assert_same(run(source, tmp_path), shown)


@pytest.mark.parametrize(("text", "pair"), [("The cat sat on the", " "), ("The cat sat on the [SEP]", None)])
def test_what_comes_next_is_asked_behind_the_last_piece_whatever_specials_follow(tmp_path, more_decimals, text, pair):
    loaded = load_model("twin-gpt")
    request = TraceRequest(text, pair, parts=script.PARTS)
    shown = script.screen_numbers(run_batch(loaded, [request])[0], loaded)
    assert_same(run(script.write_script(request, loaded), tmp_path), shown)


def test_script_carries_masked_positions_over(tmp_path, more_decimals):
    loaded = load_model("twin-bert")
    request = TraceRequest(TEXT, PAIR, masked=(2,), parts=script.PARTS)
    shown = script.screen_numbers(run_batch(loaded, [request])[0], loaded)
    assert "position 2" in shown
    assert_same(run(script.write_script(request, loaded), tmp_path), shown)


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

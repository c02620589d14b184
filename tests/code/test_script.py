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

ROOT = Path(__file__).resolve().parents[2]
TEXT = 'She said "it\'s {mine}" and\tpoured the [MASK] \\ into 杯.'


def run(source: str, tmp_path: Path) -> dict:
    """Run the file in a fresh process, from elsewhere; its lines as name -> value."""
    file = tmp_path / "sentence.py"
    file.write_text(source, encoding="utf-8")
    done = subprocess.run([sys.executable, str(file)], cwd=tmp_path, capture_output=True, text=True, timeout=280,
                          env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}, check=False)
    assert done.returncode == 0, done.stderr[-800:]
    return {name: json.loads(value) for name, value in (line.split(": ", 1) for line in done.stdout.splitlines())}


def assert_same(printed: dict, shown: dict) -> None:
    """Equal to the last decimal shown, rounding apart."""
    assert printed.keys() == shown.keys()
    for name, value in shown.items():
        if isinstance(value, dict):
            assert list(printed[name]) == list(value), name
            assert list(printed[name].values()) == pytest.approx(list(value.values()), abs=1.01e-4)
        elif name == "tokens":
            assert printed[name] == value
        else:
            assert printed[name] == pytest.approx(value, abs=1.01e-4)


@pytest.mark.parametrize(("model", "pair", "masked", "line_by_line"), [
    ("twin-bert", "Then <b>she</b> drank it.", (2,), True), ("twin-gpt", None, (), True),
    ("twin-bert", "Then <b>she</b> drank it.", (2,), False)])
def test_script_prints_the_numbers_of_the_screen(tmp_path, model, pair, masked, line_by_line):
    loaded = load_model(model)
    request = TraceRequest(TEXT, pair, masked=masked, parts=script.PARTS)
    shown = script.screen_numbers(run_batch(loaded, [request])[0], loaded)
    assert_same(run(script.write_script(request, loaded, line_by_line), tmp_path), shown)


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

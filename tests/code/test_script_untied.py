"""The line-by-line script of a model whose decoder is not its word table."""

from __future__ import annotations

import json

import pytest

from bert_core import script
from bert_core.load import load_model
from bert_core.trace import TraceRequest, run_batch


def test_the_script_predicts_with_the_models_own_decoder(checkpoint, capsys):
    loaded = load_model(checkpoint("BertForMaskedLM", tie_word_embeddings=False))
    request = TraceRequest("the [MASK] barked", parts=script.PARTS)
    shown = script.screen_numbers(run_batch(loaded, [request])[0], loaded)
    exec(compile(script.write_script(request, loaded), "script.py", "exec"), {})
    printed = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())
    found = json.loads(printed["position 2"])
    assert list(found) == list(shown["position 2"])
    assert list(found.values()) == pytest.approx(list(shown["position 2"].values()), abs=1e-4)

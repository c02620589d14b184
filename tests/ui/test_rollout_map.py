"""The Attribution view draws rollout from every token, as the strip's row and as a table has it."""

from __future__ import annotations

import numpy as np
import pytest

from bert_core import TraceRequest, load_engine
from bert_core.measures.rollout import rollout
from tests.payloads import drawn, is_ready, visit

TEXT = "The dog [MASK] all night."


def test_the_map_is_rollout_and_its_row_is_the_strips():
    at = visit("attention", view="Attribution", text=TEXT)
    is_ready(at)
    strips, maps = drawn(at, "attention_strips"), drawn(at, "maps")
    probs = load_engine().run(TraceRequest(TEXT, model="twin-bert", parts=("attention_probs",))).attention_probs
    assert maps["arrays"]["rollout"] == pytest.approx(rollout(probs)[-1], abs=1e-6)
    assert maps["arrays"]["attention"] == pytest.approx(probs[-1].mean(axis=0), abs=1e-6)
    row = [method["key"] for method in strips["methods"]].index("rollout")
    np.testing.assert_array_equal(maps["arrays"]["rollout"][3], strips["arrays"]["values"][row])
    assert (maps["row_word"], maps["column_word"], maps["rows"][3]) == ("from", "to", "“[MASK]” (3)")

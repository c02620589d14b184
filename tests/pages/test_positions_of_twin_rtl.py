"""The Embeddings page reverses the positions of the model that counts from the right."""

from __future__ import annotations

from tests.payloads import drawn, visit


def test_reversed_positions_change_its_tokens():
    at = visit("embeddings", text="the king spoke to the people", view="Switch off and shuffle", model="twin-rtl",
               order="reversed")
    assert min(chip["v"] for chip in drawn(at, "chips")["chips"]) < 0.999

"""What the Embeddings page sends to its components, against the Trace."""

from __future__ import annotations

import numpy as np
import pytest

from bert_core import TraceRequest, load_engine
from bert_core.measures.embeddings import position_table
from bert_core.measures.similarity import cosine_matrix
from tests.payloads import drawn, is_ready, said, visit

TEXT, PAIR = "She poured the [MASK].", "It was hot."


LONG = "the old dog barked at a small cat under the bridge " * 30


def added_up(arrays: dict[str, np.ndarray]) -> np.ndarray:
    """The sum as the component makes it of what it is sent, in float32."""
    total = np.zeros_like(arrays["output"])
    for name in ("token", "segment", "position"):
        total += arrays[name][arrays[f"{name}_at"]]
    return total


@pytest.mark.parametrize("asked", [
    {"text": TEXT, "pair": PAIR}, {"text": LONG}, {"text": TEXT, "order": "reversed"},
    {"text": TEXT, "off": "segment"}])
def test_strips_are_the_traces_arrays_and_add_up_to_the_last_bit(asked):
    at = visit("embeddings", cell="3,7", **asked)
    is_ready(at)
    sent = drawn(at, "embeddings")
    arrays = sent["arrays"]
    count = len(sent["tokens"])
    off, order = (asked["off"],) if "off" in asked else (), (0, *range(count - 2, 0, -1), count - 1)
    trace = load_engine("twin-bert").run(TraceRequest(
        asked["text"], asked.get("pair"), embeddings_off=off, position_order=order if "order" in asked else None))
    np.testing.assert_array_equal(arrays["token"][arrays["token_at"]], trace.token_embeddings)
    np.testing.assert_array_equal(added_up(arrays), trace.embedding_sum)
    np.testing.assert_array_equal(arrays["output"], trace.embedding_output)
    total = added_up(arrays).astype(np.float64)
    normed = (total - total.mean(1, keepdims=True)) / np.sqrt(total.var(1, keepdims=True) + sent["epsilon"])
    np.testing.assert_allclose(normed * arrays["weight"] + arrays["bias"], arrays["output"], atol=1e-5)
    assert sent["cell"] == [3, 7]


def test_a_long_text_takes_no_more_bytes_than_in_half_precision():
    arrays = drawn(visit("embeddings", text=LONG), "embeddings")["arrays"]
    assert sum(array.nbytes for array in arrays.values()) < 5 * 2 * arrays["output"].size


def test_a_switch_in_the_address_takes_the_addend_out():
    sent = drawn(visit("embeddings", text=TEXT, off="position"), "embeddings")
    assert not sent["arrays"]["position"].any()
    assert sent["arrays"]["token"].any()


def test_consequences_show_both_runs_side_by_side():
    at = visit("embeddings", text=TEXT, view="Switch off and shuffle", order="reversed")
    card = drawn(at, "gaps")["cards"][0]
    assert [one["name"] for one in card["lists"]] == ["as trained", "positions reversed"]
    assert card["lists"][0]["rows"] != card["lists"][1]["rows"]
    left = [chip["v"] for chip in drawn(at, "chips")["chips"]]
    assert all(0 <= value <= 1 for value in left)
    assert min(left) < 0.999


def test_nothing_switched_off_says_so_instead_of_a_second_equal_picture():
    at = visit("embeddings", text=TEXT, view="Switch off and shuffle")
    assert "Nothing is switched off yet" in said(at)
    with pytest.raises(AssertionError, match="no component chips"):
        drawn(at, "chips")


def test_position_map_is_the_cosine_of_the_table():
    sent = drawn(visit("embeddings", view="Positions"), "maps")
    expected = cosine_matrix(position_table(load_engine("twin-bert").loaded().model))
    np.testing.assert_allclose(sent["arrays"]["cosine"], expected[np.tril_indices(len(expected))], atol=1e-7)


def test_neighbours_of_the_tokens_of_a_link():
    sent = drawn(visit("embeddings", text="the king spoke", view="Neighbours", token="2"), "neighbours")
    assert sent["chosen"] == 2
    names = [row["t"] for row in sent["rows"]]
    assert "king" not in names
    assert "kings" in names
    cosines = [row["cosine"] for row in sent["rows"]]
    assert cosines == sorted(cosines, reverse=True)
    assert cosines[-1] > sent["baseline"]


@pytest.mark.parametrize("text", ["", "[MASK]", "x"])
@pytest.mark.parametrize("view", ["The sum", "Switch off and shuffle", "Neighbours"])
def test_the_shortest_texts_have_their_picture(text, view):
    is_ready(visit("embeddings", text=text, view=view))

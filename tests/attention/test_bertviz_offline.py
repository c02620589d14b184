"""bertviz's views from our Trace: the right numbers, once, and nothing fetched."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from bert_core import bertviz_offline as offline


def numbers(page: str, view: str) -> dict:
    """The parameters that stand in the page."""
    found = re.search(r"(?:const params|window\.bertviz_params) = (\{.*?\})(?:;|\n)", page.replace("<\\/", "</"))
    return json.loads(found[1])


@pytest.mark.parametrize("view", ["Head view", "Model view"])
def test_the_page_holds_the_trace_s_attention_once(trace, view):
    page = offline.page(trace, view, layer=1)
    held = numbers(page, view)["attention"]
    assert np.array_equal(held[0]["attn"], np.round(trace.attention_probs.astype(np.float64), 3))
    assert [part["name"] for part in held][1:] == ["Sentence A -> Sentence A", "Sentence B -> Sentence B",
                                                   "Sentence A -> Sentence B", "Sentence B -> Sentence A"]
    assert held[0]["left_text"] == list(trace.tokens)
    assert page.count('"left_text": [') == 5


def test_the_neuron_view_shows_the_trace_s_queries_and_keys(trace):
    held = numbers(offline.page(trace, "Neuron view", 2, 3), "Neuron view")
    assert (held["layer"], held["head"]) == (2, 3)
    assert np.array_equal(held["attention"]["all"]["queries"], np.round(trace.query.astype(np.float64), 3))
    assert np.array_equal(held["attention"]["all"]["keys"], np.round(trace.key.astype(np.float64), 3))
    assert held["attention"]["ab"]["right_text"] == list(trace.tokens[offline.second_sentence(trace):])


@pytest.mark.parametrize("view", list(offline.LIMITS))
def test_nothing_is_fetched_and_equal_input_gives_equal_pages(trace, view):
    page = offline.page(trace, view)
    assert not re.findall(r"""(?:src|href)=["'](?!data:|#)[^"']+""", page)
    assert "cdnjs" not in page
    assert "default-src 'none'" in page
    assert page == offline.page(trace, view)
    assert offline.height(trace, view) > 200
    assert offline.page(trace, view, scale=1.25) == page.replace("zoom:1}", "zoom:1.25}") != page


def test_text_that_would_end_the_script_does_not(trace):
    tokens = ("[CLS]", "</script><b>x", *trace.encoding.tokens[2:])
    hostile = replace(trace, encoding=replace(trace.encoding, tokens=tokens))
    for view in offline.LIMITS:
        page = offline.page(hostile, view)
        assert "</script><b>x" not in page
        assert "<\\/script><b>x" in page


def test_one_sentence_has_no_second(small_engine, pair_request):
    single = small_engine.run(replace(pair_request, pair=None))
    assert offline.second_sentence(single) is None
    assert list(numbers(offline.page(single, "Neuron view"), "Neuron view")["attention"]) == ["all"]


def test_what_it_can_not_bear_it_says(small_engine, pair_request):
    long = small_engine.run(replace(pair_request, text="dog " * 40, pair=None))
    assert offline.page(long, "Head view").startswith("<!doctype html>")
    with pytest.raises(offline.TooLong, match="bears 32 tokens; this input has 42"):
        offline.page(long, "Model view")
    with pytest.raises(ValueError, match="choose one of Head view"):
        offline.page(long, "Best view")

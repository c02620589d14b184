"""The Attention page: every view draws, links and messages are checked, a file that stands alone is whole."""

from __future__ import annotations

import gc
import io
import re
import weakref
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamlit.delta_generator import DeltaGenerator

from bert_core.measures.flow import LENGTH_PARTS, by_lengths, by_weights, flow
from bert_core.measures.lens import read_layers
from bert_core.serving.local import LocalEngine
from bert_core.tasks import softmax
from bert_core.trace import TraceRequest
from tests.payloads import drawn, is_ready, said, visit
from tests.waiting import wait_until
from ui import components, state
from ui.state import Here
from ui.views import attention, attention_act, attention_export, attention_flow, attention_steps

TEXT = "The old dog saw the [MASK]."
HERE = Here(TEXT, None, "twin-bert", "attention")


@pytest.mark.parametrize("view", attention.VIEWS)
def test_every_view_draws(view):
    assert is_ready(visit("attention", text=TEXT, view=view))["text"] == TEXT


@pytest.mark.parametrize(("model", "view", "is_said"), [
    ("twin-gpt", "Neuron view", True), ("twin-rtl", "Neuron view", True),
    ("twin-bert", "Neuron view", False), ("twin-gpt", "Head view", False),
])
def test_bertvizs_products_that_a_mask_forbids_are_named(model, view, is_said):
    at = visit("attention", text=TEXT, view="bertviz", bertviz=view, model=model)
    assert any("where a token may not look" in one.value for one in at.markdown) == is_said


def test_act_says_which_word_it_hides_and_what_reads_the_sentence_without_it():
    at = visit("attention", text="The dog chased the cat.", pair="It ran.", view="Act")
    guess, follows, sentiment = drawn(at, "effect")["blocks"]
    assert guess["title"] == "The gap at position 2: “dog” is hidden"
    assert follows["by"] == "of the sentence with the gap"
    assert sentiment["title"] == "Sentiment of the whole sentence"
    whole = state.trace(TraceRequest("The dog chased the cat.", "It ran.", model="twin-bert-sst2"))
    assert sentiment["before"] == pytest.approx(softmax(whole.logits).tolist(), rel=1e-5)
    assert "The map reads the sentence with the gap: [MASK] in place of “dog”." in said(at)
    assert drawn(at, "attention")["tokens"][:4] == ["[CLS]", "the", "[MASK]", "chased"]


def test_act_hides_no_word_of_a_sentence_with_its_own_gap():
    at = visit("attention", text=TEXT, view="Act")
    guess, sentiment = drawn(at, "effect")["blocks"]
    assert (guess["title"], sentiment["title"]) == ("The gap at position 6", "Sentiment")
    assert "in place of" not in said(at)


def test_attribution_says_which_word_is_hidden():
    at = visit("attention", text="The dog chased the cat.", view="Attribution")
    assert "at position 2, where “dog” is hidden, by twin-bert?" in said(at)
    assert drawn(at, "attention_strips")["tokens"][2] == drawn(at, "maps")["ticks"][2] == "[MASK]"
    assert "is hidden" not in said(visit("attention", text=TEXT, view="Attribution"))


@pytest.mark.parametrize(("view", "nonsense"), [
    ("All heads", {"layer": "0", "head": "13", "look": "<script>"}),
    ("Through the layers", {"token": "99", "shares": "taste"}),
    ("Act", {"layer": "99", "head": "x", "off": "1-99", "cut": "a-b", "window": "17", "fed": "9"}),
])
def test_a_link_with_nonsense_is_said_and_the_page_drawn(view, nonsense):
    lines = " ".join(is_ready(visit("attention", text=TEXT, view=view, **nonsense))["lines"])
    assert all(f"“{value}” for “{key}”" in lines for key, value in nonsense.items())


@pytest.mark.parametrize("raw", ["", "map", "lines.words.hide.ab.t5.n3.h2-5", "renormalise", "show.all.aa.ba.bb",
                                 "t50.n10.h117-118", "t9.n1", ".".join(["h100"] * 40)])
def test_a_look_is_read(raw):
    assert attention.parse_look(raw) == raw


@pytest.mark.parametrize("raw", ["maps", "MAP", "map.", ".map", "map..lines", "map lines", "map\n", "t", "t100",
                                 "t51", "t99", "n0", "n4", "n7", "n11",
                                 "n1000", "t-5", "t5.5", "h", "h2-", "h1234", "h2,5", "٣", "<script>", "map&head=3",
                                 ".".join(["h100"] * 41)])
def test_anything_else_is_no_look(raw):
    with pytest.raises(ValueError, match="no look"):
        attention.parse_look(raw)


def test_a_look_gives_the_numbers_their_options():
    options = attention.options_of("map.words.renormalise.ba.t12.n3.h2-5")
    assert (options.words, options.specials, options.segments, options.threshold, options.top) == (
        True, "renormalise", "ba", 0.12, 3)


@pytest.fixture
def address(monkeypatch) -> dict[str, str | None]:
    """What messages put in the address."""
    written: dict[str, str | None] = {}
    monkeypatch.setattr(state, "set_param", written.__setitem__)
    monkeypatch.setattr(attention, "sizes", lambda here: (6, 12))
    monkeypatch.setattr(Here, "encoding", property(lambda self: range(9)))
    return written


def test_a_good_message_goes_into_the_address(address):
    good = {"layer": 2, "head": 8, "token": 4, "look": "map.words"}
    attention.receive_view(HERE)(good)
    assert address == {"layer": "3", "head": "9", "token": "4", "look": "map.words"}
    attention_act._receive(HERE, 6, 12)(good | {"head": 7, "heads": [25, 0]})
    assert (address["head"], address["off"], "cut" in address) == ("8", "1-1,3-2", False)
    attention_act._receive(HERE, 6, 12)(good | {"pairs": [4 * 9 + 1]})
    assert (address["head"], address["off"], address["cut"]) == ("9", "1-1,3-2", "4-1")
    attention_steps._receive(6, 12, 9, 40)({"layer": 5, "head": 0, "token": 8, "step": 3, "key": 7, "neuron": 39})
    assert (address["layer"], address["token"], address["step"]) == ("6", "8", "4")
    assert (address["key"], address["neuron"]) == ("7", "39")
    attention_steps._receive(6, 12, 9, 40)({"layer": 5, "head": 0, "token": 8, "step": 3, "key": None, "neuron": None})
    assert (address["key"], address["neuron"]) == (None, None)
    with pytest.raises(components.BadMessage):
        attention_steps._receive(6, 12, 9, 40)({"layer": 5, "head": 0, "token": 8, "step": 3, "key": 9})


def test_a_link_opens_the_key_and_the_neuron_that_were_looked_at():
    link = {"view": "Step by step", "layer": "2", "head": "5", "token": "6", "key": "3", "neuron": "285"}
    shown = drawn(visit("attention", **link, step="4"), "attention_steps")
    assert (shown["key"], shown["neuron"]) == (3, None)  # neurons have a step of their own
    shown = drawn(visit("attention", **link, step="7"), "attention_steps")
    assert (shown["key"], shown["neuron"]) == (3, 285)


BAD = st.dictionaries(
    st.sampled_from(["layer", "head", "token", "look", "heads", "pairs", "step", "key", "neuron"]),
    st.one_of(st.none(), st.booleans(), st.floats(), st.text(max_size=9), st.integers(-9, 10**9),
              st.lists(st.one_of(st.integers(-3, 10**6), st.text(max_size=3)), max_size=6),
              st.sampled_from(["", "map.words", "lines"])))


@given(BAD)
@settings(max_examples=200, deadline=None)
def test_no_message_does_more_than_be_dropped(message):
    written: dict[str, str | None] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "set_param", written.__setitem__)
        patch.setattr(attention, "sizes", lambda here: (6, 12))
        patch.setattr(Here, "encoding", property(lambda self: range(9)))
        for receive in (attention.receive_view(HERE), attention_act._receive(HERE, 6, 12),
                        attention_steps._receive(6, 12, 9, 40)):
            try:
                receive(message)
            except components.BadMessage:
                continue
    for key, value in written.items():
        assert key in ("layer", "head", "token", "look", "off", "cut", "step", "key", "neuron")
        assert value is None or re.fullmatch(r"[\w.,-]*", value)


def test_heads_off_in_a_link_are_counted_from_one():
    parse = attention_act._pairs(1, 6, 12)
    assert parse("3-9,1-1") == ((0, 0), (2, 8))
    for wrong in ("0-1", "7-1", "1-13", "1", "a-b", ""):
        with pytest.raises(ValueError, match="."):
            parse(wrong)


def test_the_file_that_stands_alone_fetches_nothing_and_escapes(small_engine, pair_request):
    hostile = replace(pair_request, text="</script><script>alert(1)</script> dog", pair=None)
    page = attention_export.standalone(small_engine.run(hostile), 1, 2)
    assert "default-src 'none'" in page
    assert "<script>alert" not in page
    assert not re.findall(r"""(?:src|href)=["']http""", page)
    assert page.count("<script") == page.count("</script>") == 1


def test_a_page_with_files_to_save_keeps_no_trace_until_a_click(small_folder, monkeypatch):
    engine, made, buttons = LocalEngine(small_folder, cache_bytes=0), [], {}

    def traced(request):
        trace = engine.run(request)
        made.append(weakref.ref(trace))
        return trace

    monkeypatch.setattr(state, "engine", lambda: engine)
    monkeypatch.setattr(state, "trace", traced)
    monkeypatch.setattr(state, "param", lambda key, *_: {"look": "hide.n1", "token": 2}[key])
    monkeypatch.setattr(attention, "opened", lambda here: (0, 1))
    monkeypatch.setattr(attention, "request", lambda here: TraceRequest(TEXT, parts=("attention_probs",)))

    def button(self, label, data, *_, **__):
        buttons[label] = data

    monkeypatch.setattr(DeltaGenerator, "download_button", button)
    attention_export.draw(HERE)
    gc.collect()
    wait_until(lambda: [one() for one in made] == [None])  # the engine's thread has its last batch for a second
    trace = engine.run(TraceRequest(TEXT, parts=("attention_probs",)))
    assert buttons["Save CSV"]() == attention_export.shown_csv(trace, 0, 1, "hide.n1")
    assert buttons["Save HTML"]() == attention_export.standalone(trace, 0, 1, "hide.n1", 2)
    with np.load(io.BytesIO(buttons["Save npz"]())) as saved:
        np.testing.assert_array_equal(saved["attention_probs"], trace.attention_probs)
    engine.close()


def test_the_csv_is_what_the_picture_shows(trace):
    lines = attention_export.shown_csv(trace, 0, 1, "hide.n1").splitlines()
    assert len(lines) == len(trace) + 1
    row = [float(p) for p in lines[2].split(",")[1:]]
    content = list(trace.encoding.content)
    assert max(row) == pytest.approx(trace.attention_probs[0, 1, 1, content].max(), rel=1e-4)
    assert sum(p > 0 for p in row) == 1


@pytest.mark.parametrize("shares", [attention_flow.LENGTHS, attention_flow.WEIGHTS])
def test_the_stream_is_that_of_the_token_and_the_count_that_were_chosen(shares):
    at = visit("attention", text=TEXT, view="Through the layers", token="3", shares=shares)
    header = drawn(at, "flow")
    trace = state.engine().run(TraceRequest(TEXT, model="twin-bert", parts=LENGTH_PARTS))
    by_length = shares == attention_flow.LENGTHS
    mixed = by_lengths(trace, state.engine().loaded("twin-bert")) if by_length else by_weights(trace)
    assert np.allclose(header["arrays"]["shares"], flow(mixed, 3).shares, atol=1e-6)
    assert header["rows"][header["target"]]["t"] == "dog"
    gaps = state.engine().call(read_layers, TraceRequest(TEXT, model="twin-bert"), 3, 1)
    assert header["lens"] == [[gap.guesses[0].token, pytest.approx(gap.guesses[0].probability)] for gap in gaps]

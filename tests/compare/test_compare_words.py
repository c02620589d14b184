"""The page One way, both ways: whose word stands behind a gap, and which token is not expected."""

from __future__ import annotations

import numpy as np

from bert_core import TraceRequest, load_engine
from bert_core.load import load_model
from bert_core.measures import compare
from tests.payloads import said, visit
from ui.views.compare_ask import DEFAULT_TEXT, DEFAULT_WORD, Given


def given(at) -> str:
    """What stands in the field for the word behind the gap."""
    return at.text_input(key="behind").value


def test_the_word_behind_a_gap_is_not_another_gaps_and_no_other_sentences():
    at = visit("compare", text="The [MASK] chased the mouse up the [MASK].", behind="cat")
    assert given(at) == "cat"
    assert "“cat”" in said(at)
    at.query_params["at"] = "8"
    assert given(at.run()) == ""
    assert "“cat”" not in said(at)
    at.text_input(key="behind").set_value("tree").run()
    assert given(at) == "tree"
    at.text_input(key="text").set_value("Today the [MASK] chased the mouse up the [MASK].").run()
    assert given(at) == "tree"  # the same gap of the same sentence, which was edited before it
    at.text_input(key="text").set_value("Paris is [MASK] of France.").run()
    assert given(at) == ""


def test_a_word_stays_behind_its_gap_under_a_model_that_cuts_words_otherwise():
    inputs = ("The [MASK] ran to the [MASK].", None)
    bert = Given("cat", inputs, (0, 4), ("[CLS]", "the", "[MASK]", "ran", "to", "the", "[MASK]", ".", "[SEP]"), 2)
    other = ("<s>", "The", "<mask>", "Ġran", "Ġto", "Ġthe", "<mask>", ".", "</s>")
    assert bert.is_of(Given("cat", inputs, (0, 4), other, 2))
    assert not bert.is_of(Given("cat", inputs, (0, 22), other, 6))


def test_the_first_sentences_word_is_not_behind_the_second_ones_gap():
    pair = "He put it on the [MASK]."
    at = visit("compare", pair=pair)
    assert at.text_input(key="behind").placeholder == DEFAULT_WORD
    tokens = load_model("twin-bert").tokenizer.encode(DEFAULT_TEXT, pair)
    at.query_params["at"] = str(tokens.mask_positions[-1])
    assert at.run().text_input(key="behind").placeholder == "unknown"
    assert f"“{DEFAULT_WORD}”" not in said(at)


def test_surprise_names_the_token_that_the_left_reader_did_not_expect():
    text = "The horse raced past the barn fell."
    at = visit("compare", view="Surprise", text=text)
    engine = load_engine()
    trace = engine.run(TraceRequest(text, model="twin-gpt"))
    ids, content = trace.input_ids, trace.encoding.content
    nats = [-float(compare.log_softmax(trace.lm_logits[n - 1])[ids[n]]) for n in content]
    token = trace.encoding.tokens[content[int(np.argmax(nats))]]
    assert f"surprised most by “{token}”: {max(nats):.1f} nats. BERT, with both sides in sight," in said(at)

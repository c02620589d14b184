"""The Attention page with models of other families and other words, and on a text without words."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from bert_core.load import Loaded, load_model
from bert_core.measures.ablation import masked_moves
from bert_core.measures.attention import head_numbers
from bert_core.measures.attribution import finish, leave_one_out
from bert_core.measures.head_places import head_places
from bert_core.measures.heads import PLACES, place_shares
from bert_core.measures.neurons import corpus_activations, strongest_places
from bert_core.measures.target import Target
from bert_core.trace import Trace, TraceRequest, run_batch
from tests.payloads import drawn, is_ready, said, visit
from ui import state
from ui.views import attention
from ui.views.attention_attribution import CLASSIFIER

TEXT = "the dog barked"


@pytest.fixture(scope="module")
def gpt2(family) -> Loaded:
    """A tiny GPT-2, which runs through transformers and has no special tokens."""
    return load_model(family("GPT-2"))


@pytest.fixture(scope="module")
def gpt2_trace(gpt2) -> Trace:
    return run_batch(gpt2, [TraceRequest(TEXT)])[0]


@pytest.fixture
def look(monkeypatch):
    """look(model, view, **parameters) -> the page run with that model."""

    def run(model: str, view: str, text: str = TEXT, **parameters: object):
        monkeypatch.setenv("BOTH_WAYS_MODEL", model)
        at = visit("attention", view=view, text=text, **parameters)
        is_ready(at)
        return at

    return run


@pytest.mark.parametrize("view", attention.VIEWS)
def test_a_text_without_words_opens_every_view(look, view):
    at = look("twin-bert", view, text="\u200b")
    if view == "Roles":
        lines = drawn(at, "attention")["roles"]
        assert any("this text has no words" in line for line in lines)
        assert not any("for this text" in line for line in lines)


def test_a_regression_moves_its_score_and_no_probability(look, checkpoint):
    model = checkpoint("BertForSequenceClassification", problem_type="regression", id2label={0: "similarity"})
    at = look(model, "Act", off="1-1,1-2,2-1")
    assert re.search(r"similarity: (-?\d\.\d{3}) as it is, (?!\1)-?\d\.\d{3} after the change", said(at))
    assert "has no head that answers" not in said(at)
    with pytest.raises(AssertionError, match="no component effect"):
        drawn(at, "effect")


@pytest.mark.parametrize("view", attention.VIEWS)
def test_a_model_of_another_family_opens_every_view(look, gpt2, view):
    at = look(gpt2.name, view)
    assert ("gives no query" in said(at)) == (view == "Step by step")


def test_the_neurons_are_sent_while_their_step_is_open(look, checkpoint):
    model = checkpoint("BertForMaskedLM", hidden_act="relu")
    assert "neurons" not in drawn(look(model, "Step by step", step=6), "attention_steps")["arrays"]
    shown = drawn(look(model, "Step by step", step=7, layer=2, token=2), "attention_steps")
    trace = run_batch(load_model(model), [TraceRequest(TEXT)])[0]
    neurons = shown["arrays"]["neurons"]
    assert shown["activation"] == "ReLU"
    assert np.array_equal(shown["arrays"]["activations"], trace.intermediate[1][:, neurons].T)
    assert np.array_equal(shown["arrays"]["layer_output"], trace.hidden_states[2, 2])
    assert np.array_equal(shown["arrays"]["output"], trace.attention_output[1, 2])


def test_where_else_a_neuron_is_strong_is_told_when_it_is_asked_for(look):
    assert "elsewhere" not in drawn(look("twin-bert", "Step by step", step=7), "attention_steps")
    shown = drawn(look("twin-bert", "Step by step", step=7, layer=3, strong="true"), "attention_steps")
    found = corpus_activations(state.engine(), "twin-bert", 2)
    assert [[tuple(place) for place in places] for places in shown["elsewhere"]] == [
        list(strongest_places(found, neuron)) for neuron in shown["arrays"]["neurons"]]


def test_where_else_a_head_looks_is_told_when_it_is_asked_for(look, gpt2):
    assert "places" not in drawn(look(gpt2.name, "All heads"), "attention")
    shown = drawn(look(gpt2.name, "All heads", elsewhere="true"), "attention")
    found = head_places(state.engine(), gpt2.name)
    assert np.array_equal(shown["arrays"]["place_weight"], found.weight)
    sentences = [shown["places"]["sentences"][n] for n in shown["arrays"]["place_sentence"][:, 0, 0]]
    assert sentences == [list(found.sentences[n]) for n in found.sentence[:, 0, 0]]


def test_the_feed_forward_part_of_layers_is_left_out_and_put_back(look, checkpoint):
    model = checkpoint("BertForMaskedLM")
    at = look(model, "Act", text="the dog [MASK]", fed="2")
    shown, engine = drawn(at, "effect"), load_model(model)
    request = TraceRequest("the dog [MASK]")
    plain, changed = run_batch(engine, [request, replace(request, feed_forward_off=(1,))])
    (moved,) = masked_moves(plain, changed, engine.tokenizer)
    assert shown["changed"]
    assert shown["blocks"][0]["after"] == pytest.approx(list(moved.after), rel=1e-5)
    assert shown["blocks"][0]["before"] == pytest.approx(list(moved.before), rel=1e-5)
    assert moved.after != pytest.approx(moved.before)
    (undo,) = [button for button in at.button if button.label == "Undo all changes"]
    undo.click().run()
    assert not drawn(at, "effect")["changed"]
    assert at.session_state["fed"] == []


def test_bertviz_says_that_there_are_no_neurons_to_see(look, gpt2):
    at = look(gpt2.name, "bertviz", bertviz="Neuron view")
    assert "gives no query: transformers does not give it out" in said(at)


def test_a_model_without_gradients_and_masks_keeps_its_attention(look, gpt2, gpt2_trace):
    at = look(gpt2.name, "Attribution", explain="The next word")
    strips = drawn(at, "attention_strips")
    assert [method["key"] for method in strips["methods"]] == ["attention", "rollout"]
    assert "gradients are taken only" in said(at)
    assert "No token is left out: gpt2 runs through transformers" in said(at)
    weights = gpt2_trace.attention_probs[-1, :, len(gpt2_trace) - 1].mean(axis=0)
    assert strips["arrays"]["values"][0] == pytest.approx(weights, abs=1e-5)


@pytest.mark.parametrize(("model", "moved", "explained"), [
    ("twin-gpt", "Next after “barked”", "as the next word"),
    ("twin-rtl", "Before “the”", "as the word before the sentence")])
def test_what_a_one_way_model_guesses_next_stands_on_its_side_of_the_sentence(look, model, moved, explained):
    assert drawn(look(model, "Act"), "effect")["blocks"][0]["title"] == moved
    assert explained in said(look(model, "Attribution"))


def test_a_model_without_gradients_but_with_masks_is_asked_what_is_lost(look, family):
    model = load_model(family("unknown: MPNet"))
    strips = drawn(look(model.name, "Attribution", explain="A guessed word", mask=1), "attention_strips")
    assert [method["key"] for method in strips["methods"]] == ["attention", "rollout", "left_out"]
    asked = TraceRequest(TEXT, masked=(1,))
    best = int(run_batch(model, [asked])[0].mlm_logits[0].argmax())
    expected = finish(leave_one_out(model, asked, Target("mlm", best, 1))).values
    assert strips["arrays"]["values"][2] == pytest.approx(expected, abs=1e-4)


def test_a_single_token_has_none_before_or_after_it(gpt2):
    alone = run_batch(gpt2, [TraceRequest("the")])[0]
    numbers = head_numbers(alone)
    assert len(alone) == 1
    assert np.isnan(numbers.previous).all()
    assert np.isnan(numbers.following).all()
    assert (numbers.itself == 1).all()


def test_without_special_tokens_there_is_no_share_on_them(gpt2_trace, trace):
    none, some = head_numbers(gpt2_trace), head_numbers(trace)
    assert np.isnan(none.cls).all()
    assert np.isnan(none.sep).all()
    assert not any(np.isnan(values).any() for values in (*some, none.previous, none.itself))
    assert (place_shares(gpt2_trace)[PLACES.index("[CLS]")] == 0).all()
    assert (gpt2_trace.attention_probs[:, :, 1:].argmax(axis=-1) == 0).any()  # the first token is looked at, as a word


def test_the_sentiment_is_told_of_the_words_of_the_model_that_reads_it(look, small_folder):
    text = "A wonderfully unpretentious film"
    strips = drawn(look(small_folder, "Attribution", text=text, explain="The sentiment"), "attention_strips")
    judge = load_model(CLASSIFIER)
    trace = run_batch(judge, [TraceRequest(text)])[0]
    assert strips["tokens"] == list(trace.encoding.tokens)
    assert len(strips["tokens"]) < len(load_model(small_folder).tokenizer.encode(text))
    best = Target("classification", int(trace.logits.argmax()))
    keys = [method["key"] for method in strips["methods"]]
    assert strips["arrays"]["values"][keys.index("left_out")] == pytest.approx(
        finish(leave_one_out(judge, TraceRequest(text), best)).values, abs=1e-4)


@pytest.mark.parametrize("model", ["twin-bert", "other words"])
def test_the_classifier_is_asked_only_beside_a_model_of_its_words(look, checkpoint, model):
    config = load_model("twin-bert").config
    if model != "twin-bert":
        model = checkpoint("BertForPreTraining", hidden_size=2 * config.num_attention_heads,
                           num_hidden_layers=config.num_hidden_layers, num_attention_heads=config.num_attention_heads)
    at = look(model, "Act", text="a good film", off="1-1")
    asked = [block["title"] for block in drawn(at, "effect")["blocks"] if block["by"] == f"by {CLASSIFIER}"]
    assert asked == (["Sentiment of the whole sentence"] if model == "twin-bert" else [])
    assert ("is not asked beside" in said(at)) == (model != "twin-bert")


@pytest.mark.parametrize("view", ["All heads", "Roles", "Act"])
def test_an_address_changed_from_outside_sends_the_picture_there(look, view):
    at = look("twin-bert", view, layer=2)
    assert drawn(at, "attention")["jump"] is None
    at.query_params["layer"], at.query_params["look"] = "5", "map.words"
    is_ready(at.run())
    assert drawn(at, "attention")["layer"] == 4
    jump = drawn(at, "attention")["jump"]
    assert jump == {"number": 1, "address": "layer=5&look=map.words"}
    is_ready(at.run())
    assert drawn(at, "attention")["jump"] == jump


def test_where_the_component_says_that_it_is_sends_it_nowhere(monkeypatch):
    session, address = {}, {"layer": "2"}
    monkeypatch.setattr(attention.st, "session_state", session)
    monkeypatch.setattr(attention.st, "query_params", address)
    monkeypatch.setattr(attention, "sizes", lambda here: (6, 12))
    here = state.Here(TEXT, None, "twin-bert", "attention")
    assert attention.jump() is None
    attention.receive_view(here)({"layer": 3, "head": 0, "token": -1, "look": "map"})
    assert attention.jump() is None
    assert address == {"layer": "4", "head": "1", "look": "map"}
    address["layer"] = "2"
    assert attention.jump() == {"number": 1, "address": "layer=2&head=1&look=map"}


def test_the_stream_of_a_model_of_transformers_is_counted_by_its_weights(look, gpt2, gpt2_trace):
    at = look(gpt2.name, "Through the layers", shares="vectors that are added", token="1")
    assert "shares are counted by attention weights" in said(at)
    header = drawn(at, "flow")
    assert (header["lens"], header["kind"]) == ([], "causal")
    assert [row["t"] for row in header["rows"]] == list(gpt2_trace.tokens)

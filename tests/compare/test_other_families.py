"""Readers of other architectures: they answer what they can, and the others answer on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bert_core import TraceRequest
from bert_core.figures import compare as figures
from bert_core.measures import compare, compare_writing, reveal, surprise
from bert_core.measures.compare import NoReading, allowed_pairs
from tests.payloads import unpack
from ui.views.compare_masks import _packed

SENTENCE = "the dog barked all night"
ENCODERS = ("FlauBERT", "ModernBERT")


def asked(engine, readers, position=2):
    return compare.question_at(engine.loaded(readers.masked).tokenizer.encode(SENTENCE), position)


@pytest.mark.parametrize("name", ENCODERS)
def test_an_encoder_that_takes_no_mask_leaves_the_other_readings(engine, readers, family, name):
    others = replace(readers, masked=family(name))
    readings, gaps = compare.read(engine, asked(engine, others), others, ("both", "left", "hidden", "right"))
    assert set(readings) == {"both", "left", "right"}
    assert "only with its own attention" in gaps["hidden"]


def test_a_word_is_asked_without_the_space_that_its_piece_holds(engine, readers, family):
    encoding = engine.loaded(family("ModernBERT")).tokenizer.encode(SENTENCE)
    question = compare.question_at(encoding, encoding.content[1])
    assert question.word == "dog"
    assert encoding.text[slice(*encoding.offsets[compare.positions_of(encoding, question)[0]])].startswith(" ")


def test_a_local_layer_may_see_its_window_alone(engine, readers, family):
    """transformers: every third layer of a ModernBERT sees all, the others half of `local_attention` to either side."""
    text, others = "the dog barked all night in the garden", replace(readers, masked=family("ModernBERT"))
    question = compare.question_at(engine.loaded(others.masked).tokenizer.encode(text), 2)
    readings, _ = compare.read(engine, question, others, ("both", "left"), ("attention_probs",))
    trace = readings["both"].trace
    place = np.arange(len(trace))
    near = np.abs(place[:, None] - place) <= 6 // 2
    assert near.sum() < near.size
    assert [figures.panel_arrays(trace, (2,), layer, 0, True)["allowed"].tolist() for layer in (0, 1)] == [
        np.ones_like(near).tolist(), near.tolist()]
    assert figures.panel(trace, "both", (2,), 1, 0, True)["what"] == "mask of layer 2"
    left = readings["left"].trace
    assert figures.panel(left, "left", (2,), 1, 0, True)["what"] == "mask"


def test_a_weight_that_is_nought_by_itself_is_no_mask(engine, readers, family):
    """Scores that lie more than a hundred apart leave some places no weight, in float32."""
    others = replace(readers, masked=family("ModernBERT"))
    trace = engine.run(TraceRequest("the dog barked all night in the garden", model=others.masked,
                                    parts=("attention_probs",)))
    sharp = trace.attention_probs.copy()
    sharp[:, :, 3, 5] = sharp[:, :, 6, 2] = 0
    sharper = replace(trace, arrays={**trace.arrays, "attention_probs": sharp})
    for layer in (0, 1):
        assert np.array_equal(allowed_pairs(sharper, layer), allowed_pairs(trace, layer))


@pytest.mark.parametrize("name", ENCODERS)
def test_its_surprise_is_that_of_each_single_question(engine, readers, family, name):
    others = replace(readers, masked=family(name))
    found = {one.reader: one for one in surprise.surprises(engine, SENTENCE, None, others)}
    assert list(found) == ["both", "left", "right", "elmo"]
    places = engine.loaded(others.masked).tokenizer.encode(SENTENCE).content
    run = engine.run(TraceRequest(SENTENCE, model=others.masked, masked=(places[1],)))
    truth = engine.loaded(others.masked).tokenizer.encode(SENTENCE).input_ids[places[1]]
    assert found["both"].nats[1] == pytest.approx(-compare.log_softmax(run.mlm_logits[0])[truth], abs=1e-5)


def test_it_can_not_be_revealed_word_by_word(engine, readers, family):
    others = replace(readers, masked=family("FlauBERT"))
    with pytest.raises(ValueError, match="only with its own attention"):
        reveal.reveal(engine, asked(engine, others), others.masked)


@pytest.mark.parametrize("name", [*ENCODERS, "GPT-2"])
def test_a_writer_without_keys_writes_and_says_so(engine, family, name):
    model = family(name)
    assert len(list(compare_writing.write(engine, model, "the dog", 3))) == 3
    with pytest.raises(NoReading, match="shows no keys"):
        compare_writing.prefix_change(engine, model, "the dog barked", "the dog")


def test_gpt2_writes_what_the_plain_text_gives(engine, family):
    model = family("GPT-2")
    first, second = compare_writing.write(engine, model, "the dog", 2)
    plain = engine.run(TraceRequest("the dog", model=model))
    assert first.probability == pytest.approx(np.exp(compare.log_softmax(plain.lm_logits[-1])[first.id]), rel=1e-4)
    place = len(plain)
    longer = engine.run(TraceRequest("the dog a", model=model, replaced=((place, first.id),)))
    row = compare.log_softmax(longer.lm_logits[place])
    assert second.probability == pytest.approx(np.exp(row[second.id]), rel=1e-4)
    assert compare_writing.read_before(engine.loaded(model).tokenizer, "the dog") == place


def test_a_panel_says_which_head_it_holds_and_other_pieces_stay_out_of_the_table(engine, readers, family, checkpoint):
    deep = checkpoint("BertForPreTraining", seed=11, num_hidden_layers=5)
    others = replace(readers, masked=deep, left=family("GPT-2"))
    readings, _ = compare.read(engine, asked(engine, others), others, ("both", "left", "hidden"), ("attention_probs",))
    payload = unpack(_packed(readings, 4, 0, only_mask=False))
    both, left, hidden = payload["readers"]
    assert [one["what"] for one in (both, left, hidden)] == ["layer 5, head 1", "layer 2, head 1", "layer 5, head 1"]
    assert [one["in_table"] for one in (both, left, hidden)] == [True, False, True]
    assert len(left["tokens"]) != len(both["tokens"])
    assert figures.NAMES["left"] in payload["caption"]
    np.testing.assert_array_equal(payload["arrays"]["weights1"], readings["left"].trace.attention_probs[1, 0])

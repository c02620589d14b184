"""Typed masks, masks beyond the cut, and texts of no token."""

from __future__ import annotations

import pytest

from bert_core import tasks
from bert_core.load import load_model
from bert_core.serving.local import LocalEngine
from bert_core.trace import TraceRequest, run_batch
from tests.adapters.families import FAMILIES, make_family


@pytest.mark.parametrize("fixture", ["tiny_bert", "tiny_gpt"])
def test_a_typed_mask_is_no_piece_to_score(fixture, request):
    engine = LocalEngine(request.getfixturevalue(fixture), pack=False)
    found = tasks.score(engine, "the [MASK] barked")
    assert [piece.token for piece in found.pieces] == ["the", "barked"]
    assert found.tokens == 2
    with pytest.raises(ValueError, match="no piece to score"):
        tasks.score(engine, "[MASK]")
    engine.close()


def beyond(folder: str, text: str, pair: str) -> tuple[list[int], tuple[int, ...]]:
    """How many masks of each sentence fit, and where the others stood."""
    found = load_model(folder).tokenizer.encode(text, pair)
    kept = [found.sequence_ids[n] for n in found.mask_positions]
    return [kept.count(0), kept.count(1)], found.masks_beyond


def test_a_mask_at_the_end_of_the_first_sentence_is_cut_before_one_of_the_second(tiny_bert):
    assert beyond(tiny_bert, "dog " * 60 + "[MASK]", "the [MASK] sat") == ([0, 1], (61,))


def test_each_sentence_loses_the_masks_at_its_own_end(tiny_bert):
    text, pair = "[MASK] " + "dog " * 60 + "[MASK]", "the [MASK] " + "cat " * 60 + "[MASK] [MASK]"
    second = 1 + 62 + 1  # where the second sentence begins
    assert beyond(tiny_bert, text, pair) == ([1, 1], (62, second + 62, second + 63))


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory) -> str:
    return str(make_family(tmp_path_factory.mktemp("gpt2"), next(f for f in FAMILIES if f.name == "GPT-2")))


def test_a_text_of_no_token_is_refused_among_others_too(gpt2):
    loaded = load_model(gpt2)
    for requests in ([TraceRequest("")], [TraceRequest("the dog"), TraceRequest("")]):
        with pytest.raises(ValueError, match="the text is empty, and .* adds no special tokens"):
            run_batch(loaded, requests)


def test_it_is_kept_nowhere_and_the_others_get_their_answer(gpt2):
    engine = LocalEngine(gpt2)
    alone = engine.run(TraceRequest("the dog"), keep=False)
    with pytest.raises(ValueError, match="the text is empty"):
        engine.run_many([TraceRequest("the dog"), TraceRequest("")])
    assert engine.cache.get(TraceRequest("", model=gpt2)) is None
    assert engine.run(TraceRequest("the dog")).lm_logits == pytest.approx(alone.lm_logits)
    with pytest.raises(ValueError, match="the text is empty"):
        tasks.continuation(engine, "")
    engine.close()

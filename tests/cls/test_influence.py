"""The page's attributions on the models that are shipped: complete, and the same as by hand."""

import numpy as np
import pytest

from bert_core import TraceRequest, load_engine
from bert_core.measures.attribution import complete_gradients, finish, gradient_accounts, leave_one_out
from bert_core.measures.target import Target
from bert_core.tasks import classify, is_next

PAIR = ("The girl opened the old wooden box.", "Inside she found a letter.")
SENTENCES = ("The film was slow, but I loved every minute of it.", "I would not recommend this place to anyone.",
             "What a wonderful surprise!", "The actors are good, but the story is dull.")


def test_gradients_are_complete_for_the_next_sentence_head():
    loaded = load_engine().loaded("twin-bert")
    for index in (0, 1):
        result = finish(complete_gradients(loaded, TraceRequest(*PAIR), Target("nsp", index)))
        change = result.output - result.baseline
        assert abs(result.values.sum() - change) <= 0.01 * abs(change)
        assert result.gap <= 0.01


@pytest.mark.parametrize("text", SENTENCES)
def test_gradients_are_complete_for_the_shipped_classifier(text):
    loaded = load_engine().loaded("twin-bert-sst2")
    result = finish(complete_gradients(loaded, TraceRequest(text), Target("classification", 1)))
    assert result.gap <= 0.01


def test_leaving_out_is_masking_and_running_again(tiny_classifier):
    engine = load_engine(tiny_classifier)
    text = "the film was not good ."
    result = finish(leave_one_out(engine.loaded(), TraceRequest(text), Target("classification", 1)))
    whole = classify(engine, text).logits[1]
    words = text.split()
    for n in range(len(words)):
        without = " ".join("[MASK]" if m == n else word for m, word in enumerate(words))
        assert result.values[n + 1] == pytest.approx(whole - classify(engine, without).logits[1], abs=1e-5)
    assert result.values[[0, -1]].tolist() == [0.0, 0.0]


def test_leaving_out_works_on_a_pair(tiny_bert):
    engine = load_engine(tiny_bert)
    target, first, second = Target("nsp", 0, scale="probability"), "the dog barked", "we walked home"
    result = finish(leave_one_out(engine.loaded(), TraceRequest(first, second), target))
    moved = is_next(engine, first, second) - is_next(engine, first, "we [MASK] home")
    assert result.values[result.tokens.index("walked")] == pytest.approx(moved, abs=1e-6)
    assert np.isfinite(result.values).all()


def test_the_attention_pages_path_is_complete_where_32_points_were_not_enough():
    """Two sentences that the first 32 points missed by 8 and 2 %."""
    loaded = load_engine("twin-bert-sst2").loaded()
    for text in ("The movie was neither good nor bad.", "It was a film."):
        request, index = TraceRequest(text), 1
        _, few = finish(gradient_accounts(loaded, request, Target("classification", index), 32))
        _, path = finish(gradient_accounts(loaded, request, Target("classification", index)))
        assert few.gap > 0.01
        assert path.gap < 0.01
        assert path.values.sum() == pytest.approx(path.output - path.baseline, rel=0.01)

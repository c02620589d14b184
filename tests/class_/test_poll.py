"""The class's guesses beside the model's."""

from __future__ import annotations

import numpy as np
import pytest

from bert_core.figures.class_poll import poll_figure
from bert_core.load import load_model
from bert_core.measures.poll import compare_guesses
from bert_core.trace import TraceRequest, run_batch


@pytest.fixture(scope="module")
def loaded(tiny_bert):
    return load_model(tiny_bert)


def trace_of(loaded, text: str):
    return run_batch(loaded, [TraceRequest(text, parts=("mlm_positions", "mlm_logits"))])[0]


def test_shares_and_probabilities(loaded):
    trace = trace_of(loaded, "the [MASK] barked")
    guesses = compare_guesses((("dog", 3), ("cat", 1)), trace, loaded)
    by_word = {guess.word: guess for guess in guesses}
    logits = trace.mlm_logits[0].astype(np.float64)
    expected = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    assert by_word["dog"].share == 0.75
    assert by_word["dog"].probability == pytest.approx(expected[loaded.tokenizer.id_of("dog")])
    assert len(by_word) == len(guesses)
    best = loaded.tokenizer.token_of(int(expected.argmax()))
    assert by_word[best].probability == pytest.approx(expected.max())


def test_most_of_each_and_no_word_twice(loaded):
    trace = trace_of(loaded, "the [MASK] barked")
    own = [loaded.tokenizer.token_of(int(i)) for i in np.argsort(-trace.mlm_logits[0])[:4]]
    guesses = compare_guesses(((own[1], 5), ("dog", 3), ("cat", 2)), trace, loaded, most=2)
    assert [guess.word for guess in guesses] == [own[1], "dog", own[0]]  # two of the class's, two of the model's
    assert [guess.share for guess in guesses] == [0.5, 0.3, 0.0]


def test_a_word_of_several_pieces_has_no_probability(loaded):
    guesses = compare_guesses((("xylophone", 1),), trace_of(loaded, "the [MASK] barked"), loaded)
    assert guesses[0].probability is None
    drawn = poll_figure(guesses, "tiny").data
    assert drawn[0].x[0] == 1.0
    assert drawn[1].x[0] is None
    assert drawn[0].y[0] == "xylophone"


def test_a_word_the_vocabulary_lacks_has_not_the_probability_of_unk(loaded):
    guesses = compare_guesses((("🙂", 1),), trace_of(loaded, "the [MASK] barked"), loaded)
    assert guesses[0] == ("🙂", 1.0, None)


def test_without_a_gap_there_is_nothing_to_compare(loaded):
    with pytest.raises(ValueError, match="no gap"):
        compare_guesses((), trace_of(loaded, "the dog barked"), loaded)

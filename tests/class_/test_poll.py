"""The class's guesses beside the model's."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

from bert_core.figures.class_poll import poll_figure
from bert_core.load import load_model
from bert_core.measures.poll import compare_guesses, piece_in_gap
from bert_core.tasks import softmax
from bert_core.trace import TraceRequest, run_batch
from tests.checkpoints import make_bert


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


def test_a_word_without_a_row_of_the_table_has_no_probability(loaded):
    """One that was added to the tokenizer later, and not to the model."""
    trace, last = trace_of(loaded, "the [MASK] barked"), loaded.tokenizer.id_of("dog")
    short = SimpleNamespace(has=trace.has, mlm_logits=trace.mlm_logits[:, :last], encoding=trace.encoding)
    assert compare_guesses((("dog", 1),), short, loaded)[0] == ("dog", 1.0, None)


@pytest.fixture(scope="module")
def cased(tmp_path_factory):
    """A model that knows Paris and the dog, and neither paris nor Dog."""
    folder = make_bert(tmp_path_factory.mktemp("cased"))
    wordpiece = tokenizer_of(folder)
    wordpiece["normalizer"]["lowercase"] = False
    wordpiece["model"]["vocab"] = {{"paris": "Paris"}.get(piece, piece): n
                                   for piece, n in wordpiece["model"]["vocab"].items()}
    (folder / "tokenizer.json").write_text(json.dumps(wordpiece), encoding="utf-8")
    settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8")) | {"do_lower_case": False}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return load_model(str(folder))


def tokenizer_of(folder):
    return json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("typed", "scored"), [("Paris", "Paris"), ("paris", "Paris"), ("Dog", "dog"), ("dog", "dog")])
def test_a_model_that_knows_case_is_asked_for_the_spelling_that_it_has(cased, typed, scored):
    trace = trace_of(cased, "the [MASK] barked")
    first = compare_guesses(((typed, 1),), trace, cased)[0]
    assert first.word == scored
    assert first.probability == pytest.approx(softmax(trace.mlm_logits[0])[cased.tokenizer.id_of(scored)])


@pytest.mark.parametrize("name", ["RoBERTa", "FlauBERT", "HerBERT"])
def test_a_guess_is_scored_as_the_piece_that_it_is_in_its_place(family, name):
    """RoBERTa's vocabulary has another piece for a word behind a space than for one at the start."""
    loaded = load_model(family(name))
    text = "the [MASK], we walked home"
    pieces = loaded.tokenizer.encode("a the, we")
    there = next(pieces.input_ids[n] for n in pieces.content if "the" in pieces.tokens[n])
    trace = trace_of(loaded, text)
    guesses = compare_guesses((("the", 1),), trace, loaded, most=2 * len(trace.mlm_logits[0]))
    assert guesses[0].probability == pytest.approx(softmax(trace.mlm_logits[0])[there])
    assert sum(guess.probability for guess in guesses) == pytest.approx(1, abs=1e-6)  # no piece stands there twice


def test_a_longer_piece_than_the_word_is_not_its(loaded):
    assert piece_in_gap("dog", "the [MASK] barked", loaded.tokenizer) == loaded.tokenizer.id_of("dog")
    assert piece_in_gap("ho", "we walked [MASK]me", loaded.tokenizer) is None


def test_without_a_gap_there_is_nothing_to_compare(loaded):
    with pytest.raises(ValueError, match="no gap"):
        compare_guesses((), trace_of(loaded, "the dog barked"), loaded)

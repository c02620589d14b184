"""Anything typed gets an answer: any text and any request gives a Trace or a ValueError, nothing else."""

from __future__ import annotations

import resource
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from bert_core import load_engine, tasks
from bert_core.load import load_model
from bert_core.tokenizer import MAX_CHARACTERS
from bert_core.trace import TraceRequest, prepare, run_batch
from tests.core.sentences import ODD, check_one_line

TEXT = st.one_of(st.text(alphabet=st.characters(exclude_categories=()), max_size=80), st.sampled_from(ODD),
                 st.lists(st.sampled_from([*ODD, "the", "dog", "barked", " "]), max_size=12).map("".join))
SMALL = st.integers(-2, 45)
REQUEST = st.builds(
    TraceRequest, TEXT, st.none() | TEXT, attention=st.sampled_from([None, "bidirectional", "causal"]),
    masked=st.lists(SMALL, max_size=3).map(tuple), hidden=st.lists(SMALL, max_size=2).map(tuple),
    replaced=st.lists(st.tuples(SMALL, st.integers(-5, 200)), max_size=2).map(tuple),
    cut=st.lists(st.tuples(SMALL, SMALL), max_size=2).map(tuple), window=st.none() | st.integers(-1, 9),
    heads_off=st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 4)), max_size=2).map(tuple),
    embeddings_off=st.lists(st.sampled_from(["token", "segment", "position"]), max_size=2).map(tuple),
    all_logits=st.booleans(), feed_forward_off=st.lists(st.integers(-1, 3), max_size=2).map(tuple),
    neurons=st.lists(st.tuples(st.integers(-1, 3), SMALL, st.floats(-100, 100)), max_size=2).map(tuple),
)
QUICK = settings(max_examples=70, deadline=None, suppress_health_check=list(HealthCheck))
FULL = settings(max_examples=10_000, deadline=None, derandomize=False, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def loaded(tiny_bert):
    return load_model(tiny_bert)


def check_encoding(tokenizer, text: str, pair: str | None) -> None:
    """Every promise of an Encoding."""
    found = tokenizer.encode(text, pair)
    length = len(found)
    assert 2 <= length <= tokenizer.limit
    for sequence in (found.tokens, found.input_ids, found.token_type_ids, found.special, found.word_ids,
                     found.sequence_ids, found.offsets):
        assert len(sequence) == length
    for position, (start, end) in enumerate(found.offsets):
        sentence = found.pair if found.sequence_ids[position] == 1 else found.text
        assert 0 <= start <= end <= len(sentence)
        assert found.special[position] or found.sequence_ids[position] is not None
    assert found.truncated == (found.dropped > 0)
    assert all(found.input_ids[n] == tokenizer.mask_id for n in found.mask_positions)
    assert all(n >= 0 and tokenizer.token_of(i) == found.tokens[n] for n, i in enumerate(found.input_ids))


def check_trace(loaded, request: TraceRequest) -> None:
    """A run gives finite, read-only arrays of the documented shapes, or a ValueError of one line."""
    try:
        trace = run_batch(loaded, [request])[0]
    except ValueError as error:
        check_one_line(error)
        return
    length = len(trace)
    assert trace.attention_probs.shape == (2, 3, length, length)
    sums = trace.attention_probs.sum(-1)
    assert np.all(np.isclose(sums, 1, atol=1e-5) | (sums == 0))
    for name, array in trace.arrays.items():
        assert not array.flags.writeable
        assert array.dtype.kind in "Uif"
        assert array.dtype.kind == "U" or np.isfinite(array).all(), name


def fitted(loaded, request: TraceRequest) -> TraceRequest:
    """The request with everything that it names brought to where its input, layers, heads and vocabulary are."""
    length, config = len(loaded.tokenizer.encode(request.text, request.pair)), loaded.config
    return replace(
        request, masked=tuple(n % length for n in request.masked), hidden=tuple(n % length for n in request.hidden),
        replaced=tuple((n % length, i % config.vocab_size) for n, i in request.replaced),
        cut=tuple((q % length, k % length) for q, k in request.cut), window=request.window and abs(request.window),
        heads_off=tuple((a % config.num_hidden_layers, b % config.num_attention_heads) for a, b in request.heads_off),
        feed_forward_off=tuple(n % config.num_hidden_layers for n in request.feed_forward_off),
        neurons=tuple((a % config.num_hidden_layers, n % config.intermediate_size, f) for a, n, f in request.neurons))


def check_tasks(engines, text: str, pair: str) -> None:
    """Every task answers with numbers that make sense, or says in one line why not."""
    bert, classifier, ner, qa, gpt = engines
    calls = (
        lambda: tasks.fill_mask(bert, text), lambda: tasks.classify(classifier, text, pair),
        lambda: tasks.find_entities(ner, text), lambda: tasks.answer(qa, pair, text), lambda: tasks.embed(bert, text),
        lambda: tasks.is_next(bert, text, pair), lambda: tasks.continuation(gpt, text), lambda: tasks.score(gpt, text),
    )
    for call in calls:
        try:
            found = call()
        except ValueError as error:
            check_one_line(error)
            continue
        if isinstance(found, tasks.Answer):
            assert text[found.start:found.end] == found.text
            assert 0 <= found.score <= 1
        if isinstance(found, tasks.Reading):
            assert all(found.text[e.start:e.end] == e.text for e in found.entities)


@pytest.fixture(scope="module")
def engines(tiny_bert, tiny_classifier, tiny_ner, tiny_qa, tiny_gpt):
    return tuple(map(load_engine, (tiny_bert, tiny_classifier, tiny_ner, tiny_qa, tiny_gpt)))


@QUICK
@given(text=TEXT, pair=st.none() | TEXT)
def test_any_text_is_split(loaded, text, pair):
    check_encoding(loaded.tokenizer, text, pair)


@QUICK
@given(request=REQUEST)
def test_any_request_runs_or_says_why_not(loaded, request):
    check_trace(loaded, request)


@QUICK
@given(request=REQUEST)
def test_any_request_whose_places_are_there_runs(loaded, request):
    request = fitted(loaded, request)
    trace = run_batch(loaded, [request])[0]  # no ValueError
    check_trace(loaded, request)
    assert set(request.masked) <= set(trace.encoding.mask_positions)
    away = np.array([n not in request.hidden for n in range(len(trace))])
    for key in request.hidden:
        assert not trace.attention_probs[:, :, away, key].any()
    for query, key in request.cut:
        assert not trace.attention_probs[:, :, query, key].any()


@QUICK
@given(text=TEXT, pair=TEXT)
def test_any_text_gets_an_answer_from_every_task(engines, text, pair):
    check_tasks(engines, text, pair)


@pytest.mark.full
@pytest.mark.timeout(3600)
@FULL
@given(request=REQUEST, pair=TEXT)
def test_ten_thousand_of_everything(loaded, engines, request, pair):
    check_encoding(loaded.tokenizer, request.text, request.pair)
    check_trace(loaded, request)
    check_tasks(engines, request.text, pair)


@pytest.mark.parametrize("text", ODD)
def test_each_known_oddity(loaded, text):
    check_encoding(loaded.tokenizer, text, None)
    check_trace(loaded, TraceRequest(text, text))


def test_ten_thousand_words_are_cut_where_it_says(loaded):
    found = loaded.tokenizer.encode("dog " * 10_000)
    assert (len(found), found.dropped) == (37, 10_002 - 37)
    assert found.cut_at == (35 * 4 - 1, None)


def test_more_characters_than_anyone_types_are_bounded(loaded):
    found = loaded.tokenizer.encode("dog " * MAX_CHARACTERS)
    assert len(found.text) == MAX_CHARACTERS


@QUICK
@given(text=st.integers(0, 60), pair=st.none() | st.integers(0, 60))
def test_a_cut_is_what_the_library_would_cut(loaded, text, pair):
    theirs = Tokenizer.from_str(loaded.tokenizer.backend.to_str())
    theirs.enable_truncation(loaded.tokenizer.limit, strategy="longest_first")
    parts = ["dog barked " * text, *([] if pair is None else ["the cat slept " * pair])]
    found, expected = loaded.tokenizer.encode(*parts), theirs.encode(*parts)
    for ours, name in ((found.input_ids, "ids"), (found.token_type_ids, "type_ids"), (found.word_ids, "word_ids"),
                       (found.sequence_ids, "sequence_ids"), (found.offsets, "offsets")):
        assert list(ours) == getattr(expected, name), name


def test_a_long_pair_takes_no_more_memory_than_its_pieces(loaded):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # KiB; each window of one with each of the other: 1 GiB
    found = loaded.tokenizer.encode("dog " * 6_000, "cat " * 6_000)
    assert (len(found), found.dropped) == (37, 12_003 - 37)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10


def test_a_pair_is_cut_from_the_longer_one(loaded):
    found = loaded.tokenizer.encode("dog " * 5, "cat " * 100)
    assert sum(n == 0 for n in found.sequence_ids) == 5
    assert found.cut_at == (None, 29 * 4 - 1)


@pytest.mark.parametrize("wrong", [
    {"text": 3}, {"text": "x", "pair": b"x"}, {"text": "x", "attention": "up"}, {"text": "x", "precision": "int8"},
    {"text": "x", "neurons": ((0, 0, float("nan")),)}, {"text": "x", "neurons": ((0, 0, 101.0),)},
    {"text": "x", "parts": ("nonsense",)}, {"text": "x", "embeddings_off": ("word",)},
])
def test_a_request_checks_itself(wrong):
    with pytest.raises(ValueError, match=r"\w"):
        TraceRequest(**wrong)


@pytest.mark.parametrize(("wrong", "message"), [
    ({"masked": (99,)}, "position 99 is outside 0 to 3"), ({"heads_off": ((9, 0),)}, "layer 9"),
    ({"heads_off": ((0, 9),)}, "head 9"), ({"feed_forward_off": (9,)}, "layer 9"),
    ({"neurons": ((9, 0, 0.0),)}, "layer 9"), ({"neurons": ((0, 999, 0.0),)}, "neuron 999"),
    ({"replaced": ((1, 500),)}, "vocabulary id 500"),
    ({"segments": (0, 1)}, "segments has 2 entries"), ({"position_order": (0, 1, 2, 99)}, "position_order 99"),
    ({"window": -1}, "window -1"),
])
def test_a_wrong_place_is_named(loaded, wrong, message):
    with pytest.raises(ValueError, match=message):
        prepare(loaded, TraceRequest("the dog", **wrong))

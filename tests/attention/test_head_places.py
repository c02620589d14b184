"""Where in the shipped sentences a head looks most: the model's own weights, the largest first."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

from bert_core.figures.attention import places_payload
from bert_core.measures.attention import head_numbers
from bert_core.measures.head_places import KINDS, head_places, word_kinds
from bert_core.measures.heads import head_corpus, parse_sentence
from bert_core.serving.local import LocalEngine
from bert_core.trace import TraceRequest

CORPUS = head_corpus()[:5]
LAYER, HEAD = 2, 4
PROSE = Path(__file__).resolve().parents[2] / "assets" / "prose" / "en"


@pytest.fixture(scope="module")
def traces(small_engine):
    return [small_engine.run(TraceRequest(" ".join(one.words))) for one in CORPUS]


def word_weights(trace, words: tuple[str, ...]) -> np.ndarray:
    """(W, W) of the head under test, summed and averaged by hand over the pieces between two spaces."""
    starts = np.cumsum([0, *(len(word) + 1 for word in words)])
    pieces = [[n for n in trace.encoding.content if start <= trace.encoding.offsets[n][0] < end]
              for start, end in zip(starts, starts[1:], strict=False)]
    probs = trace.attention_probs[LAYER, HEAD]
    return np.array([[probs[np.ix_(query, key)].sum(axis=1).mean() for key in pieces] for query in pieces])


def test_the_places_are_those_of_the_largest_weights(small_engine, traces):
    found = head_places(small_engine, None, CORPUS, count=3)
    by_hand = [word_weights(trace, one.words) for trace, one in zip(traces, CORPUS, strict=True)]
    best = sorted(range(len(CORPUS)), key=lambda n: -by_hand[n].max())[:3]
    assert found.sentence[:, LAYER, HEAD].tolist() == best
    places = [np.unravel_index(by_hand[n].argmax(), by_hand[n].shape) for n in best]
    assert list(zip(found.query[:, LAYER, HEAD], found.key[:, LAYER, HEAD], strict=True)) == places
    assert any(query != key for query, key in places)  # so that the two can't be exchanged
    assert found.weight[:, LAYER, HEAD] == pytest.approx([by_hand[n].max() for n in best], rel=1e-5)
    assert found.sentences == tuple(one.words for one in CORPUS)


def test_heads_that_look_at_their_own_word_are_shown_so_and_the_page_says_it():
    engine = LocalEngine()
    found = head_places(engine, None)
    engine.close()
    itself = (found.query == found.key).all(axis=0)  # (L, H)
    assert 10 < itself.sum() < itself.size / 2  # a kind of head, not all
    reading = tomllib.loads((PROSE / "attention.toml").read_text(encoding="utf-8"))["reading"]["All heads"]
    assert any("a word looks hardest at another word (in some heads, at itself)" in line for line in reading)


def test_the_means_are_those_of_the_sentences(small_engine, traces):
    found = head_places(small_engine, None, CORPUS)
    for field in found.means._fields:
        each = [getattr(head_numbers(trace), field)[LAYER, HEAD] for trace in traces]
        assert getattr(found.means, field)[LAYER, HEAD] == pytest.approx(np.mean(each), rel=1e-5)


def test_words_are_of_the_kinds_that_their_annotation_says():
    sentence = parse_sentence("The/det:dog old/amod:dog dog/nsubj:ran ran off/prt:ran quickly to his/poss:bed "
                              "bed/pobj:to .")
    assert word_kinds(sentence) == ["determiner", "adjective", "subject", "verb", "particle", "other", "preposition",
                                    "possessive", "after a preposition", "full stop"]
    found = [kind for one in head_corpus() for kind in word_kinds(one)]
    assert set(found) == set(KINDS)
    assert found.count("other") < 0.02 * len(found)


def test_kinds_share_what_words_give_to_words(small_engine, traces):
    given, often = dict.fromkeys(KINDS, 0.0), dict.fromkeys(KINDS, 0)
    for trace, one in zip(traces, CORPUS, strict=True):
        for kind, weight in zip(word_kinds(one), word_weights(trace, one.words).sum(axis=0), strict=True):
            given[kind], often[kind] = given[kind] + weight, often[kind] + 1
    found = head_places(small_engine, None, CORPUS)
    total = sum(given.values())
    assert found.kinds.share[:, LAYER, HEAD] == pytest.approx([given[kind] / total for kind in KINDS], rel=1e-5)
    assert found.kinds.often == pytest.approx([often[kind] / sum(often.values()) for kind in KINDS])
    header, arrays = places_payload(found)
    assert header["places"]["kinds"] == list(KINDS)
    assert np.array_equal(arrays["kind_share"], found.kinds.share)
    assert np.array_equal(arrays["kind_often"], found.kinds.often)


def test_nothing_of_it_stays_in_the_shared_cache(small_folder):
    engine = LocalEngine(small_folder)
    head_places(engine, None, CORPUS)
    engine.close()
    assert engine.cache.bytes == 0


def test_a_model_without_special_tokens_has_no_share_on_them(family):
    engine = LocalEngine(family("GPT-2"))
    found = head_places(engine, None, CORPUS)
    engine.close()
    assert np.isnan(found.means.cls).all()
    assert not np.isnan(found.means.entropy).any()
    assert (found.key <= found.query).all()  # it reads to the left


def test_only_the_sentences_that_are_shown_are_sent(small_engine):
    found = head_places(small_engine, None, head_corpus()[:30], count=1)
    header, arrays = places_payload(found)
    sentences = header["places"]["sentences"]
    assert header["places"]["read"] == 30
    assert len(sentences) == len(np.unique(found.sentence)) < 30
    assert sentences[arrays["place_sentence"][0, LAYER, HEAD]] == found.sentences[found.sentence[0, LAYER, HEAD]]
    assert arrays["means"].shape == (7, 3, 5)

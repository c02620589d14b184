"""Where a neuron is strong in the shipped sentences: the model's own numbers, the largest first."""

from __future__ import annotations

import numpy as np
import pytest

from bert_core.measures.heads import head_corpus
from bert_core.measures.neurons import corpus_activations, strongest_places
from bert_core.serving.local import LocalEngine
from bert_core.trace import MissingPart, TraceRequest

CORPUS = head_corpus()[:5]


def test_the_places_are_those_of_the_largest_activations(small_engine):
    found = corpus_activations(small_engine, None, 1, CORPUS)
    texts = [" ".join(sentence.words) for sentence in CORPUS]
    traces = [small_engine.run(TraceRequest(text)) for text in texts]
    everywhere = [(float(np.float16(trace.intermediate[1, place, 7])), number, place)
                  for number, trace in enumerate(traces) for place in trace.encoding.content]
    assert len(found.values) == len(everywhere)
    places = strongest_places(found, 7, count=4)
    assert [place.value for place in places] == sorted((value for value, *_ in everywhere), reverse=True)[:4]
    for place, (value, number, position) in zip(places, sorted(everywhere, key=lambda one: -one[0]), strict=False):
        start, end = traces[number].encoding.offsets[position]
        assert place == (texts[number][:start], texts[number][start:end], texts[number][end:], value)


def test_nothing_of_it_stays_in_the_shared_cache(small_folder):
    engine = LocalEngine(small_folder)
    corpus_activations(engine, None, 0, CORPUS)
    engine.close()
    assert engine.cache.bytes == 0


def test_a_model_that_gives_no_neurons_says_so(family):
    engine = LocalEngine(family("GPT-2"))
    with pytest.raises(MissingPart, match="gives no intermediate"):
        corpus_activations(engine, None, 0, CORPUS)
    engine.close()

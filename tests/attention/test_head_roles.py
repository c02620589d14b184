"""Roles on the shipped sentences: the corpus itself, and a planted head that must be found."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
import pytest

from bert_core.measures import heads
from bert_core.trace import Trace

#: Where the head stands, seen from its dependent, in every one of our sentences.
SIDE = {"det": 1, "amod": 1, "poss": 1, "nsubj": 1, "aux": 1, "dobj": -1, "pobj": -1, "prt": -1}


def test_the_corpus_is_annotated_as_english_is():
    corpus = heads.head_corpus()
    assert 100 <= len(corpus) <= 200
    for sentence in corpus:
        for name, dependent, head in sentence.relations:
            assert (head - dependent) * SIDE[name] > 0, (sentence.words, name, sentence.words[dependent])
    counts = {name: sum(r[0] == name for s in corpus for r in s.relations) for name in heads.RELATIONS}
    assert min(counts.values()) >= 15
    assert len({s.words for s in corpus}) == len(corpus)


def test_the_nearest_word_spelled_so_is_the_head():
    sentence = heads.parse_sentence("the/det:dog dog saw the/det:dog dog .")
    assert sentence.relations == (("det", 0, 1), ("det", 3, 4))


@pytest.mark.parametrize("line", ["a/verb:dog dog", "a/det:cat dog"])
def test_a_wrong_annotation_says_where(line):
    with pytest.raises(ValueError, match="unknown relation, or no such head word"):
        heads.parse_sentence(line)


class Planted:
    """An engine whose head 1-2 looks from every dependent to its head and whose head 0-1 looks back by one."""

    def __init__(self, tokenizer, corpus):
        self.tokenizer, self.corpus = tokenizer, {" ".join(s.words): s for s in corpus}

    def run_many(self, requests, keep):
        assert not keep, "a corpus must not push the visitors out of the cache"
        return [self.run(request) for request in requests]

    def run(self, request):
        encoding = self.tokenizer.encode(request.text)
        length, probs = len(encoding), None
        probs = np.full((2, 3, length, length), 1 / length, dtype=np.float32)
        probs[0, 1] = 0
        probs[0, 1, np.arange(length), np.maximum(np.arange(length) - 1, 0)] = 1
        blank = Trace(MappingProxyType({"attention_probs": probs}), request, encoding, None, "planted", "bidirectional")
        groups = heads.corpus_groups(blank, len(self.corpus[request.text].words))
        for _, dependent, head in self.corpus[request.text].relations:
            for piece in groups[dependent]:
                probs[1, 2, piece] = 0
                probs[1, 2, piece, groups[head]] = 1 / len(groups[head])
        return blank


@pytest.fixture(scope="module")
def planted(small):
    corpus = heads.head_corpus()
    return heads.measure_roles(Planted(small.tokenizer, corpus), None, corpus)


def test_a_planted_head_is_found_for_every_relation(planted):
    for test in planted.tests:
        assert (test.direction, test.accuracy) == ("dependent to head", 1.0)
        assert (test.layer, test.head) == (1, 2) or test.name == "prt"  # a particle's verb always stands before it
        assert test.n == sum(r[0] == test.name for s in heads.head_corpus()[1::2] for r in s.relations)
        assert test.baseline <= 1.0


def test_the_baseline_is_the_best_fixed_distance(planted):
    det = next(t for t in planted.tests if t.name == "det")
    scored = [h - d for s in heads.head_corpus()[1::2] for name, d, h in s.relations if name == "det"]
    assert det.baseline == pytest.approx(np.mean([gap == det.offset for gap in scored]))


def test_a_head_that_looks_back_has_that_role_and_a_flat_one_has_none(planted):
    back = heads.roles_of(planted, 0, 1)
    assert back[0].name == "previous"
    assert back[0].score == pytest.approx(1.0)
    assert [r.name.partition(", ")[2] for r in heads.roles_of(planted, 1, 2)] == ["dependent to head"]
    assert not any(r.name == "previous" for r in heads.roles_of(planted, 0, 0))


def test_a_place_is_checked_on_the_text_at_hand(trace):
    shares = heads.place_shares(trace)
    role = heads.Role("[CLS]", 0.9, None, 121)
    for layer in range(3):
        assert heads.place_holds(shares, role, layer, 0) == (shares[heads.PLACES.index("[CLS]"), layer, 0] >= 0.5)
    assert heads.place_holds(shares, heads.Role("det, dependent to head", 0.9, 0.4, 200), 0, 0) is None

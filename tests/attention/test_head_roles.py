"""Roles on the shipped sentences: the corpus itself, and a planted head that must be found."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
import pytest

from bert_core.measures import heads
from bert_core.serving import EVERYONE
from bert_core.trace import Trace, TraceRequest
from ui.views import attention_roles

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

    def run_many(self, requests, visitor, keep):
        assert visitor == EVERYONE, "who types beside it would make all wait for one sentence at a time"
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
def planting(small) -> Planted:
    return Planted(small.tokenizer, heads.head_corpus())


@pytest.fixture(scope="module")
def planted(planting):
    return heads.measure_roles(planting, None, heads.head_corpus())


@pytest.fixture(scope="module")
def planted_trace(planting) -> Trace:
    """The planted heads on the first sentence of the corpus."""
    return planting.run(TraceRequest(" ".join(heads.head_corpus()[0].words)))


def test_a_planted_head_is_found_for_every_relation(planted):
    for test in planted.tests:
        assert (test.direction, test.accuracy) == ("dependent to head", 1.0)
        assert (test.layer, test.head) == (1, 2) or test.name == "prt"  # a particle's verb always stands before it
        assert test.n == sum(r[0] == test.name for s in heads.head_corpus()[1::2] for r in s.relations)


def test_a_head_is_chosen_on_one_half_and_scored_on_the_other():
    half = np.array([0, 1, 0, 1, 1])
    hits = np.zeros((5, 2, 3, 4), dtype=bool)
    hits[:, 1, 2, 3] = [True, False, True, True, False]  # best where heads are chosen
    hits[:, 0, 1, 0] = [True, True, False, True, True]  # best over all, and where they are scored
    fixed = np.zeros((5, 2, len(heads.OFFSETS)), dtype=bool)
    fixed[:, 1, 4] = [True, False, True, False, True]
    fixed[:, 1, 5] = [True, True, False, True, True]
    fixed[:, 0, 9] = True  # of the other direction
    assert heads._score("det", hits, fixed, half) == heads.RelationTest(
        "det", 3, 2, 3, "head to dependent", pytest.approx(1 / 3), pytest.approx(1 / 3), heads.OFFSETS[4],
        0.75)  # right where the rule is wrong once, and once the other way round: heads once or twice of two


@pytest.mark.parametrize(("won", "lost", "chance"), [(0, 0, 1), (5, 0, 1 / 32), (4, 1, 6 / 32), (1, 4, 31 / 32)])
def test_a_coin_decides_how_much_chance_could_do(won, lost, chance):
    assert heads.sign_test(won, lost) == pytest.approx(chance)


def test_every_head_is_held_against_the_best_distance_of_its_direction():
    random = np.random.default_rng(3)
    hits, fixed = random.random((9, 2, 3, 4)) < 0.6, random.random((9, 2, len(heads.OFFSETS))) < 0.3
    fixed[:7, 0, 2], fixed[:8, 1, 5] = True, True
    found = heads._chances(hits, fixed)
    for way, offset in enumerate((2, 5)):
        for layer, head in np.ndindex(3, 4):
            ours, rule = hits[:, way, layer, head].tolist(), fixed[:, way, offset].tolist()
            pairs = list(zip(ours, rule, strict=True))
            expected = heads.sign_test(pairs.count((True, False)), pairs.count((False, True)))
            assert found[way, layer, head] == expected


def test_a_relation_that_chance_could_make_is_no_role(planted):
    assert [role.name for role in heads.roles_of(planted, 1, 2)] == ["dobj, dependent to head"]
    searched = len(heads.RELATIONS) * 2 * 2 * 3  # either direction, 2 layers of 3 heads
    for chance, names in ((1.01, []), (0.99, ["dobj, dependent to head"])):
        all_alike = planted._replace(chance=np.full_like(planted.chance, chance * heads.CHANCE / searched))
        assert [role.name for role in heads.roles_of(all_alike, 1, 2)] == names


def test_a_head_has_its_clearest_relation_though_chance_could_make_a_better_one(planted):
    chance = planted.chance.copy()
    chance[heads.RELATIONS.index("dobj")] = 0.01
    role, = heads.roles_of(planted._replace(chance=chance), 1, 2)
    assert (role.name, role.n) == ("det, dependent to head", planted.cases[heads.RELATIONS.index("det")])


@pytest.mark.parametrize(("accuracy", "chance", "verdict"), [
    (0.79, 0.19, "too few cases"), (0.79, 0.04, "stands out"), (0.6, 0.04, "no better"), (0.6, 0.19, "no better"),
])
def test_few_cases_make_no_head_stand_out(accuracy, chance, verdict):
    test = heads.RelationTest("prt", 14, 1, 6, "dependent to head", accuracy, 0.57, -1, chance)
    assert test.verdict == verdict


def test_the_baseline_is_the_best_fixed_distance(planted):
    det = next(t for t in planted.tests if t.name == "det")
    chosen, scored = ([h - d for s in heads.head_corpus()[n::2] for name, d, h in s.relations if name == "det"]
                      for n in (0, 1))
    assert det.offset == max(heads.OFFSETS, key=chosen.count)
    assert det.baseline == pytest.approx(scored.count(det.offset) / len(scored))
    row, every = heads.RELATIONS.index("det"), chosen + scored
    assert planted.cases[row] == len(every)
    assert planted.baselines[row] == pytest.approx([max(map(every.count, heads.OFFSETS)) / len(every)] * 2)
    assert planted.accuracy[row, 0, 1, 2] == 1.0


def test_a_head_that_looks_back_has_that_role_and_a_flat_one_has_none(planted):
    back = heads.roles_of(planted, 0, 1)
    assert back[0].name == "previous"
    assert back[0].score == pytest.approx(1.0)
    assert [r.name.partition(", ")[2] for r in heads.roles_of(planted, 1, 2)] == ["dependent to head"]
    assert not any(r.name == "previous" for r in heads.roles_of(planted, 0, 0))


@pytest.mark.parametrize(("name", "layer", "head", "holds"), [
    ("previous", 0, 1, True), ("previous", 0, 0, False), ("previous", 1, 0, False),
    ("next", 0, 1, False), ("[CLS]", 0, 1, False),
    ("[CLS]", 0, 0, True),  # where all weights are equal the first is taken for the largest
    ("det, dependent to head", 1, 2, None),
])
def test_a_place_is_checked_on_the_text_at_hand(planted_trace, name, layer, head, holds):
    shares = heads.place_shares(planted_trace)
    assert heads.place_holds(shares, heads.Role(name, 0.9, None, 121), layer, head) is holds


def test_a_word_that_sees_no_other_attends_to_none(planted_trace):
    encoding = planted_trace.encoding
    probs = np.tril(np.ones((1, 1, len(encoding), len(encoding)), dtype=np.float32))
    one_way = Trace(MappingProxyType({"attention_probs": probs / probs.sum(axis=-1, keepdims=True)}),
                    planted_trace.request, encoding, None, "one way", "causal")
    targets = heads.word_targets(one_way, len(heads.head_corpus()[0].words))[0, 0]
    assert targets[0] == -1
    assert (targets[1:] < np.arange(1, len(targets))).all()
    assert (targets[1:] >= 0).all()


def test_every_card_says_its_own_heads_role(planted, planted_trace):
    lines = attention_roles.lines(planted, planted_trace)
    layer_by_layer = {(n // 3, n % 3): line for n, line in enumerate(lines)}
    assert len(lines) == 6
    assert layer_by_layer[0, 1].startswith(
        f"Mostly at: previous (100 % of tokens in {planted.sentences} sentences; holds for this text)")
    assert [place for place, line in layer_by_layer.items() if "previous" in line] == [(0, 1)]
    assert [place for place, line in layer_by_layer.items() if "dependent to head: 100 % of" in line] == [(1, 2)]


def test_the_table_opens_the_head_that_was_found(planted):
    rows = {row["name"]: row for row in attention_roles.table(planted, "planted")["rows"]}
    row, test = rows["determiner (det)"], next(t for t in planted.tests if t.name == "det")
    assert (row["layer"], row["head"], row["accuracy"], row["n"]) == (1, 2, 1.0, test.n)
    assert (row["baseline"], row["offset"], row["verdict"]) == (test.baseline, test.offset, "stands out")
    assert row["published"] == {"head": "8-11", "accuracy": 94.3, "baseline": 51.7}

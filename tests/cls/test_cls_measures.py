"""What [CLS] looks at, the head opened, probes, and where accounts disagree."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from bert_core import TraceRequest, load_engine
from bert_core.measures.cls import (
    Influence,
    arrival,
    attention_of_layer,
    changed_words,
    cls_attention,
    disagreement,
    rank_correlation,
    ranks_of,
    usual_distance,
)
from bert_core.measures.pooler import head_operands
from bert_core.measures.probe import fit_probe, read_probe
from ui.views.cls_answer import _difference
from ui.views.cls_layers import _in_words

TEXT = "the dog barked all night , who was in the garden ?"


def test_cls_attention_is_the_row_of_cls_not_its_column(tiny_classifier):
    trace = load_engine(tiny_classifier).run(TraceRequest(TEXT))
    weights = cls_attention(trace)
    assert weights.shape == (2, 3, len(trace))
    np.testing.assert_allclose(weights.sum(axis=-1), 1.0, atol=1e-6)
    assert weights[1, 2, 4] == trace.attention_probs[1, 2, 0, 4]
    assert weights[1, 2, 4] != trace.attention_probs[1, 2, 4, 0]
    np.testing.assert_allclose(attention_of_layer(trace, 0), weights[0].mean(axis=0))


@pytest.mark.parametrize(("architecture", "head", "part"), [
    ("BertForSequenceClassification", "classification", "logits"),
    ("BertForPreTraining", "nsp", "nsp_logits"),
])
def test_the_opened_head_gives_the_logits_of_the_run(checkpoint, architecture, head, part):
    engine = load_engine(checkpoint(architecture))
    trace = engine.run(TraceRequest(TEXT, "we walked home ."))
    opened = head_operands(engine.loaded(), trace, head)
    np.testing.assert_allclose(opened.logits, trace.arrays[part], atol=1e-5)
    np.testing.assert_allclose(opened.pooled, trace.pooled_output, atol=1e-6)
    np.testing.assert_allclose(opened.products.sum(axis=1) + opened.bias, opened.logits)
    np.testing.assert_allclose(np.tanh(opened.dense), opened.pooled, atol=1e-6)
    assert len(opened.labels) == len(opened.logits)
    assert (opened.labels == ("IsNext", "NotNext")) == (head == "nsp")


def test_what_is_usual_is_the_mean_over_all_pairs():
    states = np.random.default_rng(3).normal(size=(5, 3, 7)).astype(np.float32)
    states[:, 0] = states[0, 0]  # every sentence has the same
    units = states / np.linalg.norm(states, axis=-1, keepdims=True)
    pairs = [1 - (units[a] * units[b]).sum(axis=-1) for a, b in combinations(range(5), 2)]
    np.testing.assert_allclose(usual_distance(states), np.mean(pairs, axis=0), atol=1e-6)
    assert usual_distance(states)[0] == 0


def test_an_arrival_is_measured_by_what_is_usual_in_its_layer():
    old, new = np.eye(4)[[0, 0, 0, 1]], np.array([[1.0, 0, 0, 0], [2, 0, 0, 0], [0, 3, 0, 0], [0, 1, 1e-9, 0]])
    found = arrival(old, new, np.array([0.5, 0.5, 0.25, 0]))
    assert found.relative.tolist() == [0, 0, 4, 0]  # 1 - cosine 1, of 0.25; in the last all have the same
    assert found.apart == pytest.approx([0, 0, 1, 0])
    assert found.usual.tolist() == [0.5, 0.5, 0.25, 0]


def test_classes_have_the_checkpoints_own_names(tiny_classifier):
    engine = load_engine(tiny_classifier)
    opened = head_operands(engine.loaded(), engine.run(TraceRequest(TEXT)), "classification")
    assert opened.labels == ("negative", "positive")


def test_a_head_that_is_not_there_is_refused_by_name(tiny_ner):
    engine = load_engine(tiny_ner)
    trace = engine.run(TraceRequest(TEXT))
    with pytest.raises(ValueError, match="has no classification head; it has token_classification"):
        head_operands(engine.loaded(), trace, "classification")


def _influence(left_out, gradients, attention) -> Influence:
    tokens = ("[CLS]", "not", "a", "bad", "film", "[SEP]")
    return Influence(tokens, (1, 2, 3, 4), *map(np.array, (left_out, gradients, attention)), output=1.0, gap=0.0)


def test_the_token_on_which_the_accounts_differ_most():
    differ = disagreement(_influence([0, -9.0, 0.1, 3, 1, 0], [0, 8, 0.2, 2, 1, 0], [0.5, 0.01, 0.04, 0.1, 0.2, 0.15]))
    assert differ.position == 1
    assert differ.ranks == (1, 1, 4)
    assert differ.leaving_gradients == pytest.approx(1.0)
    assert differ.leaving_attention < 0.5


def test_accounts_that_rank_alike_differ_on_no_token():
    differ = disagreement(_influence([0, -9.0, 0.1, 3, 1, 0], [0, 8, 0.2, 2, 1, 0], [0.5, 0.4, 0.04, 0.2, 0.1, 0.15]))
    assert (differ.position, differ.ranks) == (None, ())
    assert "All three rank the words alike by size." in _difference(_influence(*[[1.0] * 6] * 3), differ)


def test_leaving_out_has_its_own_correlation_with_each_other_account():
    rng = np.random.default_rng(7)
    three = rng.normal(size=(3, 6))
    differ = disagreement(_influence(*three))
    sizes = np.abs(three[:, 1:5])  # specials don't count, nor do signs
    wanted = [spearmanr(sizes[a], sizes[b]).statistic for a, b in ((0, 1), (0, 2))]
    assert wanted[0] != wanted[1]
    assert differ[:2] == pytest.approx(wanted)


def test_specials_do_not_count_and_one_token_can_not_disagree():
    one = _influence(*[[5.0, 1.0, 2.0, 3.0, 4.0, 9.0]] * 3)._replace(content=(2,))
    assert disagreement(one) is None
    two = one._replace(content=(2, 3))
    assert disagreement(two).leaving_gradients is None


def test_rank_correlation_is_spearmans_with_ties():
    rng = np.random.default_rng(0)
    for _ in range(20):
        a, b = rng.integers(0, 5, size=(2, 11)).astype(float)
        assert rank_correlation(a, b) == pytest.approx(spearmanr(a, b).statistic)
    assert rank_correlation(np.ones(4), np.arange(4.0)) is None
    assert ranks_of(np.array([0.2, 0.9, 0.2])).tolist() == [2, 1, 3]


@pytest.mark.parametrize(("old", "new", "in_old", "in_new"), [
    ("the food was good", "the food was not good", "", "not"),
    ("i loved it", "i hated it", "loved", "hated"),
    ("same words", "same words", "", ""),
    ("", "all new", "", "all new"),
])
def test_changed_words(old, new, in_old, in_new):
    first, second = old.split(), new.split()
    flags = changed_words(first, second)
    assert [w for w, changed in zip(first, flags[0]) if changed] == in_old.split()
    assert [w for w, changed in zip(second, flags[1]) if changed] == in_new.split()


def test_one_changed_word_is_one_however_long_the_text_and_often_its_words():
    old = ["the", "dog"] * 150
    new = [*old[:120], "a", *old[121:]]
    flags = changed_words(old, new)
    assert [np.flatnonzero(side).tolist() for side in flags] == [[120], [120]]


@given(*[st.lists(st.sampled_from("abc"), max_size=7)] * 2)
def test_what_did_not_change_is_the_longest_sequence_in_both(old, new):
    flags = changed_words(old, new)
    kept = [[word for word, changed in zip(side, flag, strict=True) if not changed]
            for side, flag in zip((old, new), flags, strict=True)]
    assert kept[0] == kept[1]
    inside = [{part for size in range(len(side) + 1) for part in combinations(side, size)} for side in (old, new)]
    assert len(kept[0]) == max(map(len, inside[0] & inside[1]))


@pytest.fixture(scope="module")
def probe():
    """Layer 0 knows nothing (a constant), layer 1 is noise, layer 2 holds the class in its third number."""
    rng = np.random.default_rng(1)
    classes = np.repeat([0, 1], 30)
    states = np.stack([np.ones((60, 5)), rng.normal(size=(60, 5)), rng.normal(size=(60, 5))], axis=1)
    states[:, 2, 2] += 20 * classes
    return fit_probe(states, classes, np.tile(np.arange(30), 2), ("no", "yes")), states


def test_a_probe_finds_the_class_only_where_it_is(probe):
    fitted, _ = probe
    assert fitted.accuracy[0] == pytest.approx(0.5)
    assert abs(fitted.accuracy[1] - 0.5) < 0.25
    assert fitted.accuracy[2] == 1.0
    assert fitted.spread.shape == (3,)
    assert fitted.sentences == 60
    right = fitted.accuracy * 60  # a share of all sentences, though the folds have 4 and 6 pairs
    assert right == pytest.approx(right.round())


def test_layers_that_are_right_equally_often_are_all_named(probe, tiny_classifier):
    fitted, states = probe
    trace = load_engine(tiny_classifier).run(TraceRequest(TEXT))
    said = _in_words(fitted._replace(accuracy=np.array([0.5, 0.9, 0.9])), read_probe(fitted, states[0]), trace)
    assert "right most often in layers 1 and 2: 90.0 %" in said
    assert "right most often in layer 2: 100.0 %" in _in_words(fitted, read_probe(fitted, states[0]), trace)


def test_a_reading_is_the_probability_of_the_second_label(probe):
    fitted, states = probe
    no, yes = read_probe(fitted, states[0]), read_probe(fitted, states[59])
    assert no.shape == (3,)
    assert no[0] == pytest.approx(0.5, abs=1e-6)
    assert no[2] < 0.4 < 0.6 < yes[2]

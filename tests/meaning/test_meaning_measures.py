"""A word by layer, its neighbours, the projection, and cosines against a random pair."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

from bert_core import TraceRequest, load_engine
from bert_core.figures.meaning import YOURS, layer_lines
from bert_core.measures.meaning import (
    ByLayer,
    all_words,
    cosines_by_layer,
    every_occurrence,
    first_occurrences,
    nearest,
    project,
    word_places,
)
from bert_core.measures.similarity import (
    cosine_matrix,
    cosine_to,
    random_pairs,
    sentence_vector,
    similarity_matrix,
    unit,
)

SENTENCES = ("The dog barked all night.", "A dogs dog slept in the garden.", "we walked home , good dog !",
             "the cat slept")


@pytest.fixture(scope="module")
def traces(tiny_bert):
    engine = load_engine(tiny_bert)
    return engine.run_many([TraceRequest(text) for text in SENTENCES])


def encode(tiny_bert, text, pair=None):
    return load_engine(tiny_bert).loaded().tokenizer.encode(text, pair)


def test_cosines_by_hand():
    matrix = cosine_matrix(np.array([[1.0, 0], [3, 0], [0, 2], [-1, 0], [0, 0]]))
    assert matrix[0].tolist() == [1.0, 1.0, 0.0, -1.0, 0.0]
    assert cosine_to(np.array([3.0, 4.0]), np.array([4.0, 3.0])) == pytest.approx(0.96)
    assert unit(np.zeros(3)).tolist() == [0.0, 0.0, 0.0]


def test_rounding_takes_no_cosine_beyond_one():
    vectors = np.random.default_rng(0).normal(size=(200, 7))
    lengths = np.linalg.norm(vectors, axis=1)
    assert (np.einsum("nd,nd->n", vectors / lengths[:, None], vectors / lengths[:, None]) > 1).any()  # as it stands
    assert np.abs(cosine_matrix(np.vstack([vectors, -vectors]))).max() == 1
    assert max(float(cosine_to(one, one)) for one in vectors) == 1


def test_whole_words_in_any_case(tiny_bert):
    encoding = encode(tiny_bert, "Dog dogs DOG, hotdog dog-dog")
    found = [encoding.text[start:end] for start, end, _ in word_places(encoding, " dog ")]
    assert found == ["Dog", "DOG", "dog", "dog"]


@pytest.mark.parametrize(("text", "word", "places"), [
    ("我去中国银行", "中国", [(2, 4)]), ("我去中国银行", "我", [(0, 1)]), ("我去中国银行", "银行", [(4, 6)]),
    ("我的 dog去银行", "dog", [(3, 6)]), ("dogs去", "dog", []), ("我dogs", "dog", []), ("catalog 猫", "cat", []),
    ("猫や犬がいる", "犬", [(2, 3)]), ("私はバスに乗る", "バス", [(2, 4)]), ("バスケット", "バス", []),
    ("ฉันรักแมว", "แมว", [(6, 9)]), ("中国中国", "中国", [(0, 2), (2, 4)]),
])
def test_a_script_without_spaces_has_words_too(tiny_bert, text, word, places):
    assert [(start, end) for start, end, _ in word_places(encode(tiny_bert, text), word)] == places


def test_each_chinese_character_is_a_token_of_the_word(tiny_bert):
    (_, _, positions), = word_places(encode(tiny_bert, "我去中国银行"), "中国")
    assert positions == (3, 4)


def test_a_split_word_has_all_its_pieces_and_the_pair_is_not_searched(tiny_bert):
    encoding = encode(tiny_bert, "we walked catly home", "catly")
    (_, _, positions), = word_places(encoding, "catly")
    assert [encoding.tokens[p] for p in positions] == ["cat", "##ly"]


@pytest.mark.parametrize("word", ["a.b", "(", "[CLS]", "d+g", "\\"])
def test_a_word_is_never_a_pattern(tiny_bert, word):
    assert list(word_places(encode(tiny_bert, "the aXb dog dg"), word)) == []


def test_an_occurrence_is_the_mean_of_its_pieces(traces):
    (one,) = first_occurrences(traces, "dogs")
    assert (one.sentence, one.word, one.text[one.start:one.end]) == (1, "dogs", "dogs")
    assert [traces[1].encoding.tokens[p] for p in one.positions] == ["dog", "##s"]
    rows = list(one.positions)
    np.testing.assert_allclose(one.states, traces[1].hidden_states[:, rows].mean(axis=1))
    np.testing.assert_allclose(one.static, traces[1].token_embeddings[rows].mean(axis=0))
    assert one.states.shape == (3, 15)
    with pytest.raises(ValueError, match="no word"):
        first_occurrences(traces, "  ")


def test_a_word_is_found_at_each_place_of_a_sentence(tiny_bert):
    traces = load_engine(tiny_bert).run_many([TraceRequest(text) for text in ("the cat", "Dog dogs dog", "a dog")])
    found = every_occurrence(traces, "dog", most=9)
    assert [(one.sentence, one.word, one.start) for one in found] == [(1, "Dog", 0), (1, "dog", 9), (2, "dog", 2)]
    for one in found:
        np.testing.assert_array_equal(one.states[:, 0], traces[one.sentence].hidden_states[:, one.positions[0], 0])
    assert [(one.sentence, one.start) for one in every_occurrence(traces, "dog", most=2)] == [(1, 0), (1, 9)]


def test_all_words_joins_pieces_and_leaves_marks_out(traces):
    words = [(w.sentence, w.word) for w in all_words(traces)]
    assert (1, "dogs") in words
    assert (0, "The") in words
    assert not {word for _, word in words} & {".", ",", "!", "##s", "[CLS]"}


def test_cosines_by_layer_against_the_definition(traces):
    found = first_occurrences(traces, "dog")
    by_layer = cosines_by_layer(found)
    assert by_layer.cosines.shape == (3, 3)
    assert by_layer.pairs.tolist() == [[0, 1], [0, 2], [1, 2]]
    a, b = found[0].states[2].astype(float), found[2].states[2].astype(float)
    assert by_layer.cosines[2, 1] == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
    assert by_layer.to_static[1, 2] == pytest.approx(float(cosine_to(found[2].states[1], found[2].static)))
    with pytest.raises(ValueError, match="1 sentence"):
        cosines_by_layer(found[:1])


def test_lines_are_means_by_sense_and_yours_is_none_of_them():
    pairs = np.array(np.triu_indices(4, k=1)).T
    by_layer = ByLayer(pairs, np.arange(12.0).reshape(2, 6), np.zeros((2, 4)))
    lines = {line.name: line for line in layer_lines(by_layer, ["money", "money", "river", YOURS])}
    assert lines["same sense"].values.tolist() == [0.0, 6.0]
    assert lines["different senses"].values.tolist() == [2.0, 8.0]
    assert lines["your sentence and “money”"].values.tolist() == [3.0, 9.0]
    assert lines["your sentence and “river”"].count == 1
    plain = layer_lines(by_layer, ["x"] * 4)
    assert [(line.name, line.count) for line in plain] == [("the word in two sentences", 6)]


def test_the_projection_is_pca():
    vectors = np.random.default_rng(2).normal(size=(9, 5)) * np.array([5, 3, 1, 1, 1])
    ours, reference = project(vectors), PCA(2).fit(vectors)
    np.testing.assert_allclose(np.abs(ours.points), np.abs(reference.transform(vectors)), atol=1e-9)
    np.testing.assert_allclose(ours.explained, reference.explained_variance_ratio_, atol=1e-12)
    assert (ours.points[np.abs(ours.points).argmax(axis=0), [0, 1]] > 0).all()
    assert project(np.ones((4, 3))).explained.tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="needs three"):
        project(vectors[:2])


def test_neighbours_are_nearest_first_and_from_other_sentences(traces):
    words = all_words(traces)
    one = first_occurrences(traces, "dog")[0]
    found = nearest(one, words, layer=2, count=5)
    cosines = [neighbour.cosine for neighbour in found]
    assert cosines == sorted(cosines, reverse=True)
    assert len(found) == 5
    assert all(neighbour.occurrence.text != one.text for neighbour in found)
    others = nearest(one, words, layer=2, count=50, same_form=False)
    assert "dog" not in {neighbour.occurrence.word for neighbour in others}


def test_static_neighbours_know_each_form_once(traces):
    one = first_occurrences(traces, "dog")[0]
    found = nearest(one, all_words(traces), layer=None, count=50)
    forms = [neighbour.occurrence.word.lower() for neighbour in found]
    assert len(forms) == len(set(forms))
    assert (forms[0], found[0].cosine) == ("dog", pytest.approx(1.0))


def test_random_pairs_are_of_different_sentences_and_repeatable():
    states = np.zeros((6, 2, 3))
    states[:3, :, 0] = 1.0
    states[3:, 0, 0] = 1.0
    states[3:, 1, 1] = 1.0
    sentences = np.array([0, 0, 0, 1, 1, 1])
    drawn = random_pairs(states, sentences, count=200)
    np.testing.assert_allclose(drawn.mean, [1.0, 0.0])
    np.testing.assert_allclose(drawn.spread, 0.0, atol=1e-12)
    assert drawn.pairs == 200
    rng = np.random.default_rng(5)
    noise = rng.normal(size=(40, 2, 3))
    again = [random_pairs(noise, np.arange(40), count=100).mean for _ in range(2)]
    np.testing.assert_array_equal(*again)
    with pytest.raises(ValueError, match="two sentences"):
        random_pairs(states[:3], sentences[:3])


def test_sentence_vectors(traces):
    trace = traces[0]
    np.testing.assert_allclose(sentence_vector(trace, "cls", 1), trace.hidden_states[1, 0])
    np.testing.assert_allclose(sentence_vector(trace, "mean"), trace.hidden_states[-1, 1:-1].mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(sentence_vector(trace, "static"), trace.token_embeddings[1:-1].mean(axis=0), atol=1e-6)
    with pytest.raises(ValueError, match="choose one of"):
        sentence_vector(trace, "max")


def test_word_order_is_lost_on_static_vectors_only(tiny_bert):
    traces = load_engine(tiny_bert).run_many([TraceRequest("the dog barked"), TraceRequest("barked dog the")])
    assert similarity_matrix(traces, "static")[0, 1] == pytest.approx(1.0)
    assert similarity_matrix(traces, "mean")[0, 1] < 0.9999


def test_a_sentence_of_nothing_has_no_mean(tiny_bert):
    with pytest.raises(ValueError, match="no token beside"):
        sentence_vector(load_engine(tiny_bert).run(TraceRequest("")), "mean")

"""What Masking, Tokens and Embeddings send to their components, against counting by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bert_core.figures import embeddings, masking, tokens
from bert_core.measures.masking import Tally
from bert_core.measures.predictions import Contrast, Gap, Guess, Scatter
from bert_core.measures.wordpiece import Attempt, Cut, Word
from bert_core.training.corruption import Corrupted
from tests.made import made_encoding, made_trace

GUESSES = (Guess(5, "tea", 0.5), Guess(7, "milk", 0.25))


def test_a_truth_among_the_guesses_is_marked_and_one_behind_them_is_added_with_its_rank():
    hit = masking.guess_rows(Gap(4, GUESSES, Guess(7, "milk", 0.25), 2))
    assert hit == [{"t": "tea", "p": 0.5, "hit": False}, {"t": "milk", "p": 0.25, "hit": True}]
    behind = masking.guess_rows(Gap(4, GUESSES, Guess(9, "mud", 0.001), 40))
    assert [row["hit"] for row in behind] == [False, False, True]
    assert behind[2] == {"t": "mud", "p": 0.001, "hit": True, "rank": 40, "gap": True}
    assert [row["hit"] for row in masking.guess_rows(Gap(4, GUESSES))] == [False, False]


@pytest.mark.parametrize(("gap", "number", "count", "title"), [
    (Gap(4, GUESSES), 1, 1, "The gap at position 4"),
    (Gap(4, GUESSES, Guess(9, "mud", 0.001), 40), 2, 2, "Gap 2 at position 4: “mud” is hidden"),
])
def test_a_gap_has_a_number_where_there_are_several(gap, number, count, title):
    assert masking.gap_title(gap, number, count) == title


@pytest.mark.parametrize(("p", "shown"), [(0.00099, "<0.1 %"), (0.001, "0.1 %"), (0.0995, "10 %"), (0.9, "90 %"),
                                        (0.9949, "99 %"), (0.9965, "99.7 %"), (0.99949, "99.9 %"),
                                        (0.9995, ">99.9 %"), (0.99999, ">99.9 %"), (1 - 2**-23, "100 %"),
                                        (1.0, "100 %")])
def test_percents_at_their_borders(p, shown):
    assert masking.percent(p) == shown


def test_the_vocabulary_has_the_first_sentence_first():
    scatter = Scatter(np.array([2, 0]), np.array([-1.0, -0.3]), np.array([-2.0, -0.1]), np.eye(2, dtype=int), -5.0)
    first, second = np.array([0.5, 0.4, 0.1]), np.array([0.8, 0.19, 0.01])
    header, arrays = masking.scatter_data(scatter, Contrast(0.1, (0,), (2, 1)), first, second, "abc".__getitem__,
                                          ("mine", "other"))
    assert header["tokens"] == ["c", "a"]
    assert (header["low"], header["first_name"], header["second_name"]) == (-5.0, "mine", "other")
    assert header["up"] == [{"t": "a", "a": 0.5, "b": 0.8}]
    assert header["down"] == [{"t": "c", "a": 0.1, "b": 0.01}, {"t": "b", "a": 0.4, "b": 0.19}]
    assert arrays["first"].tolist() == pytest.approx([-1.0, -0.3])
    assert arrays["second"].tolist() == pytest.approx([-2.0, -0.1])
    assert arrays["counts"].tolist() == [[1, 0], [0, 1]]


def test_a_draw_shows_what_the_model_sees_and_shares_are_of_the_chosen():
    encoding = made_encoding(("[CLS]", "a", "b", "c", "[SEP]"))
    drawn = Corrupted(np.array([10, 4, 99, 13, 14]), np.array([1, 2, 3]), np.array([11, 12, 13]),
                      np.array([0, 1, 2, 3, 0]))
    tally = Tally(7, 3, {"untouched": 10, "masked": 6, "random": 1, "kept": 1},
                  {"untouched": 10.5, "masked": 8.4, "random": 1.05, "kept": 1.05},
                  {"untouched": 1.0, "masked": 2.0, "random": 3.0, "kept": 4.0})
    sent = masking.draw_data(encoding, drawn, np.array([0.5, 1.5, 2.5]), {4: "[MASK]", 99: "zebra"}.__getitem__, tally)
    assert [(t["was"], t["seen"], t["outcome"], t["loss"]) for t in sent["tokens"]] == [
        ("[CLS]", "[CLS]", "untouched", None), ("a", "[MASK]", "masked", 0.5), ("b", "zebra", "random", 1.5),
        ("c", "c", "kept", 2.5), ("[SEP]", "[SEP]", "untouched", None)]
    columns = ("outcome", "count", "expected", "deviation", "share")
    assert [tuple(row[name] for name in columns) for row in sent["tally"]] == [
        ("masked", 6, 8.4, 2.0, 0.75), ("random", 1, 1.05, 3.0, 0.125), ("kept", 1, 1.05, 4.0, 0.125),
        ("untouched", 10, 10.5, 1.0, None)]
    assert [row["band"] for row in sent["tally"][:3]] == [  # 8 were chosen
        pytest.approx((0.8 - 2 * 0.02 ** 0.5, 1.0)), pytest.approx((0.0, 0.1 + 2 * 0.01125 ** 0.5)),
        pytest.approx((0.0, 0.1 + 2 * 0.01125 ** 0.5))]
    assert sent["over"] == "7 draws over 3 pieces"
    none_chosen = replace(tally, counts={"untouched": 18, "masked": 0, "random": 0, "kept": 0}, candidates=1)
    nothing = masking.draw_data(encoding, drawn, None, {4: "[MASK]", 99: "zebra"}.__getitem__, none_chosen)
    assert nothing["over"] == "7 draws over 1 piece"
    assert {row["share"] for row in nothing["tally"]} == {None}
    assert {token["loss"] for token in nothing["tokens"]} == {None}


def test_the_loss_is_the_mean_over_the_chosen():
    assert masking.loss_line(None, 5) == "This model has no masked-LM head, so there is no loss to show."
    assert masking.loss_line(np.zeros(0), 5).startswith("Nothing was chosen")
    line = masking.loss_line(np.array([1.0, 2.5]), 9)
    assert "1.75 nats, the mean over the 2 chosen pieces. The other 7 tokens" in line
    assert "the 1 chosen piece. The other 8 tokens" in masking.loss_line(np.array([1.0]), 9)


# --- tokens --------------------------------------------------------------------


def word(raw: str, pieces: tuple[str, ...], attempts: tuple[str, ...], **more) -> Word:
    """Attempts as text: 'dogs- dog+' is two look-ups for one piece."""
    groups = tuple(tuple(Attempt(one[:-1], one[-1] == "+") for one in group.split()) for group in attempts)
    return Word(raw, raw.lower(), pieces, groups, 0, 1, **{"special": False} | more)


DOGS = word("Dogs", ("dog", "##s"), ("dogs- dog+", "##s+"))
CAT = word("cat", ("cat",), ("cat+",))
UNKNOWN = word("dz", ("[UNK]",), ("dz- d+", "##z-"))
MASK = word("[MASK]", ("[MASK]",), (), special=True)


@pytest.mark.parametrize(("one", "note"), [
    (None, "No word to cut."), (MASK, "is a special token: it is taken whole"),
    (word("a" * 101, ("[UNK]",), ()), "“aaaaaaaaaaaaaaaaaaaa…” has 101 characters; beyond 100 a word is [UNK]"),
    (UNKNOWN, "“dz”: 3 look-ups, and no piece fits what is left"),
    (DOGS, "“dogs” becomes 2 pieces after 3 look-ups"), (CAT, "“cat” becomes 1 piece after 1 look-up:"),
])
def test_what_happened_to_a_word_is_said(one, note):
    assert note in tokens.ladder_note(one, 100)


def test_the_words_are_sent_with_the_look_ups_of_the_chosen_one():
    sent = tokens.word_data([CAT, DOGS, replace(CAT, normal="")], 1)
    assert [(w["raw"], w["normal"], w["changed"]) for w in sent["words"]] == [
        ("cat", "cat", False), ("Dogs", "dogs", True), ("cat", "(nothing)", True)]
    assert sent["attempts"] == [[{"c": "dogs", "ok": False}, {"c": "dog", "ok": True}], [{"c": "##s", "ok": True}]]
    assert tokens.word_data([CAT], None)["attempts"] == []


def test_the_word_that_took_most_look_ups_is_open_first():
    assert tokens.choose_word([CAT, UNKNOWN, DOGS]) == 1  # three look-ups, as DOGS later on
    assert tokens.choose_word([]) is None
    assert "2 words and signs; normalising changed 1 of them" in tokens.normal_note([CAT, DOGS])
    assert tokens.normal_note([CAT]).startswith("1 word or sign; normalising changed 0")
    assert tokens.normal_note([]).startswith("There is no word")


@pytest.mark.parametrize(("pad_to", "extra"), [(3, 0), (5, 0), (7, 2)])
def test_padding_stands_on_the_right_and_is_masked(pad_to, extra):
    encoding = made_encoding(("a", "[SEP]", "b", "c", "[SEP]"))
    rows = {row["kind"]: row["values"] for row in tokens.id_rows(encoding, pad_to, 8, range(max(5, pad_to)), True)}
    assert rows == {"id": [10, 11, 12, 13, 14, *[8] * extra], "segment": [0, 0, 1, 1, 1, *[0] * extra],
                    "position": list(range(5 + extra)), "mask": [1, 1, 1, 1, 1, *[0] * extra]}
    assert [row["kind"] for row in tokens.id_rows(encoding, 5, 8, range(5), False)] == ["id", "position", "mask"]


@pytest.mark.parametrize(("pieces", "words", "vocabulary", "note"), [
    (1, 1, 30522, "1 piece for 1 word"), (400, 9, None, "400 pieces for 9 words"),
    (401, 9, 256, "401 pieces for 9 words; the first 400 are drawn"),
])
def test_a_cut_is_counted(pieces, words, vocabulary, note):
    assert tokens.cut_note(Cut("x", ("a",) * pieces, vocabulary), words) == note


@pytest.mark.parametrize(("vocabulary", "title"), [(30522, "x, a vocabulary of 30,522"), (None, "x")])
def test_a_cut_is_headed_by_the_size_of_its_vocabulary(vocabulary, title):
    assert tokens.cut_title(Cut("x", ("a",), vocabulary)) == title


# --- embeddings ----------------------------------------------------------------


def test_strips_are_the_model_s_own():
    parts = {name: np.random.default_rng(n).normal(size=(5, 3)) for n, name in enumerate(embeddings.STRIPS)
             if name != "segment_embeddings"}
    arrays = embeddings.strip_arrays(made_trace(("a",) * 5, **parts))
    assert list(arrays) == ["token", "position", "sum", "output"]  # what a model lacks is not there
    assert {array.dtype for array in arrays.values()} == {np.dtype(np.float32)}
    assert np.array_equal(arrays["position"], parts["position_embeddings"].astype(np.float32))


def test_every_row_of_an_addend_is_sent_once_and_the_sum_not_at_all():
    token = np.array([[3, 4], [1, 2], [3, 4], [3, 5]], dtype=np.float32)
    output = np.arange(8, dtype=np.float32).reshape(4, 2)
    sent = embeddings.sent_arrays({"token": token, "segment": np.zeros_like(token), "sum": token, "output": output})
    assert set(sent) == {"token", "token_at", "segment", "segment_at", "output"}
    assert sent["token"].tolist() == [[3, 4], [1, 2], [3, 5]]
    assert sent["token_at"].tolist() == [0, 1, 0, 2]
    assert (sent["segment"].shape, sent["segment_at"].tolist()) == ((1, 2), [0, 0, 0, 0])
    assert np.array_equal(sent["output"], output)


def test_both_signed_scales_end_where_all_but_the_outermost_values_do():
    arrays = {"token": np.full((2, 500), -1.0), "sum": np.linspace(-3, 3, 1001)[None],
              "output": np.array([[-9.0, 4.0]])}
    limits = embeddings.strip_limits(arrays)
    both = np.abs(np.concatenate([arrays["token"].ravel(), arrays["sum"].ravel()]))
    assert limits["limit"] == pytest.approx(np.percentile(both, 99.9))
    assert limits["output_limit"] == pytest.approx(np.percentile([9.0, 4.0], 99.9))
    assert embeddings.strip_limits({"token": np.zeros(3), "output": np.zeros(3)})["limit"] > 0


@pytest.mark.parametrize(("off", "kind", "name"), [
    ((), "as written", "nothing changed"), (("position",), "as written", "without position"),
    (("token", "segment"), "reversed", "without token and segment, positions reversed"),
    ((), "all the same", "every position 0"),
])
def test_what_was_changed_is_said_in_words(off, kind, name):
    assert embeddings.settings_name(off, kind) == name


def test_positions_are_counted_from_nought_on_a_scale_from_minus_one_to_one():
    cosines = np.array([[1.0, -0.5, 0.25], [-0.5, 1.0, 0.75], [0.25, 0.75, 1.0]])
    header, arrays = embeddings.similarity_data(cosines)
    assert header["rows"] == header["columns"] == ["0", "1", "2"]
    assert header["panels"] == [{"title": "Cosine", "name": "cosine", "signed": True, "limit": 1.0, "triangle": True}]
    assert arrays["cosine"].tolist() == [1.0, -0.5, 1.0, 0.25, 0.75, 1.0]
    assert embeddings.similarity_data(cosines, 2)[0]["rows"] == ["2", "3", "4"]  # as RoBERTa counts

"""Our steps of WordPiece against the tokenizer library's own pieces."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert_core import load_engine
from bert_core.measures import wordpiece

TRICKY = st.text(st.one_of(st.characters(codec="utf-8"), st.sampled_from("abcé 中🙂́\x00<[]#")), max_size=60)


@pytest.fixture(scope="module")
def tokenizer(tiny_bert):
    return load_engine(tiny_bert).loaded().tokenizer


@given(text=TRICKY, pair=st.none() | TRICKY)
@settings(max_examples=200)
def test_greedy_steps_end_in_the_librarys_pieces(tokenizer, text, pair):
    encoding = tokenizer.encode(text, pair)
    words = wordpiece.words(tokenizer, encoding)
    if not encoding.truncated:
        assert [p for word in words for p in word.pieces] == [encoding.tokens[n] for n in encoding.content]
    for word in words if not encoding.truncated else ():
        if word.special or word.pieces == ("[UNK]",):
            continue
        assert tuple(group[-1].candidate for group in word.attempts) == word.pieces
        assert all(not attempt.found for group in word.attempts for attempt in group[:-1])


@given(text=TRICKY)
@settings(max_examples=200)
def test_an_unknown_word_ends_in_a_failed_look_up_or_is_too_long(tokenizer, text):
    for word in wordpiece.words(tokenizer, tokenizer.encode(text)):
        if word.pieces == ("[UNK]",) and word.attempts:
            assert not word.attempts[-1][-1].found


def test_look_ups_go_from_long_to_short(tokenizer):
    groups = wordpiece.greedy("dogs", {"dog", "##s"}.__contains__)
    assert [[a.candidate for a in group] for group in groups] == [["dogs", "dog"], ["##s"]]


def test_a_word_beyond_the_limit_is_not_looked_up():
    assert wordpiece.greedy("a" * 101, lambda piece: True) == ()


def test_a_typed_mask_is_taken_whole(tokenizer):
    words = wordpiece.words(tokenizer, tokenizer.encode("the [MASK] slept"))
    assert [word.special for word in words] == [False, True, False]
    assert words[1].attempts == ()


def test_another_kind_of_tokenizer_is_refused(tokenizer):
    from bert_core.tokenizer import Tokenizer

    pairs = Tokenizer(wordpiece.train_byte_pairs(("one two",), 300), 20, {})
    with pytest.raises(ValueError, match="not WordPiece"):
        wordpiece.words(pairs, pairs.encode("one"))


@given(text=TRICKY)
@settings(max_examples=50)
def test_every_tokenizer_keeps_the_whole_text(tokenizer, text):
    cuts = {cut.name: cut for cut in wordpiece.cuts(tokenizer, "model", text, ("the cat sat on the mat",) * 4, 300)}
    seen = tokenizer.encode(text).text
    assert "".join(cuts["characters"].pieces) == seen
    assert bytes.fromhex("".join(cuts["bytes (UTF-8)"].pieces)).decode("utf-8") == seen
    assert len(cuts["small byte pairs (only the method is GPT-2's)"].pieces) <= len(seen.encode("utf-8"))


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_an_accent_is_changed_however_it_is_written(form):
    tokenizer = load_engine("twin-bert").loaded("twin-bert").tokenizer
    typed = unicodedata.normalize(form, "café zoë naïve")
    found = wordpiece.words(tokenizer, tokenizer.encode(typed))
    assert [word.raw for word in found] == typed.split()
    assert [word.normal for word in found] == ["cafe", "zoe", "naive"]

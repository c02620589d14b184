"""Where pieces stand in the text as it was typed, and where a cut is said to fall."""

from __future__ import annotations

import json

import pytest
from tokenizers import Tokenizer as Fast

from bert_core.load import load_model
from bert_core.tokenizer import ROLES, Tokenizer
from tests.checkpoints import wordpiece


def small(limit: int = 37, mask: str = "[MASK]") -> Tokenizer:
    """The tiny WordPiece with this name for its mask token."""
    return Tokenizer(Fast.from_str(wordpiece().to_str().replace("[MASK]", mask)), limit, ROLES | {"mask": mask})


@pytest.mark.parametrize("mask", ["[MASK]", "<m>", "<special1>"])
def test_pieces_stand_where_they_were_typed_however_long_the_mask_token_is(mask):
    text, pair = "the [MASK] dog [MASK]slept", "[MASK][MASK]a cat"
    first, second = ((0, 3), (4, 10), (11, 14), (15, 21), (21, 26)), ((0, 6), (6, 12), (12, 13), (14, 17))
    found = small(mask=mask).encode(text, pair)
    assert (found.text, found.pair) == (text, pair)
    assert found.tokens[1:6] == ("the", mask, "dog", mask, "slept")
    assert found.offsets == ((0, 0), *first, (0, 0), *second, (0, 0))
    assert [span[:2] for span in small(mask=mask).spans(text)] == list(first)


@pytest.mark.parametrize(("text", "words"), [
    ("Beyonce\u0301 met Rene\u0301.", ["Beyonce\u0301", "met", "Rene\u0301", "."]),
    ("cafe\u0301s zoe\u0308", ["cafe\u0301s", "zoe\u0308"]),
    ("e\u0301\u0308!", ["e\u0301\u0308", "!"]),
    ("\u0301a", ["a"]),  # a mark of nothing before it
    ("हिन्दी बोली", ["हिन्दी", "बोली"]),
    ("caf\u00e9 a", ["caf\u00e9", "a"]),
])
def test_a_word_ends_behind_the_marks_of_its_last_letter(text, words):
    tokenizer = load_model("twin-bert").tokenizer
    for number, found in ((0, tokenizer.encode(text)), (1, tokenizer.encode("a\u0301 dog", text))):
        pieces = [n for n in found.content if found.sequence_ids[n] == number]
        ends = {found.word_ids[n]: found.offsets[n][1] for n in pieces}
        starts = {found.word_ids[n]: found.offsets[n][0] for n in reversed(pieces)}
        assert [text[starts[word]:end] for word, end in ends.items()] == words
    assert [text[span.start:span.end] for span in tokenizer.spans(text)][-1].endswith(words[-1][-1])


def test_a_mark_that_is_a_piece_of_its_own_stays_one():
    """A tokenizer that strips no accents keeps them."""
    settings = json.loads(wordpiece(lowercase=False).to_str())
    settings["model"]["vocab"]["##\u0301"] = len(settings["model"]["vocab"])
    fast = Fast.from_str(json.dumps(settings))
    found = Tokenizer(fast, 37, ROLES).encode("a\u0301 dog")
    assert (found.tokens[1:3], found.offsets[1:3]) == (("a", "##\u0301"), ((0, 1), (1, 2)))


def test_a_text_whose_end_gives_no_piece_is_not_cut():
    found = small().encode("dog \x00")
    assert (found.tokens, found.cut_at) == (("[CLS]", "dog", "[SEP]"), (None, None))


def test_of_a_pair_only_the_sentence_that_lost_pieces_is_cut():
    found = small(limit=6).encode("a a a", "barked \x00")
    assert (found.dropped, found.cut_at) == (1, (3, None))
    assert small(limit=6).encode("barked \x00", "a a a").cut_at == (None, 3)


def test_a_sentence_of_which_nothing_fits_is_cut_at_its_start():
    found = small(limit=3).encode("dog", "cat")
    assert (found.tokens, found.dropped, found.cut_at) == (("[CLS]", "[SEP]", "[SEP]"), 2, (0, 0))
    assert small(limit=3).encode("", "cat").cut_at == (None, 0)


@pytest.mark.parametrize("end", ["  ", "\n\n", "🙂"])
def test_lost_spaces_and_the_lost_rest_of_a_sign_are_no_place_to_cut(family, end):
    own = load_model(family("GPT-2")).tokenizer
    found = own.encode("the" * (own.limit - 1) + end)  # the first piece of the end fits
    assert (len(found), found.truncated, found.cut_at) == (own.limit, True, (None, None))

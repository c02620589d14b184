"""Tokenizers written in Python: transformers' pieces of the whole text, and where they stand in it."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from bert_core.adapters.alignment import align
from bert_core.adapters.tokenizers import PythonTokenizer, read_other_tokenizer
from bert_core.tokenizer import _fitting
from tests.adapters import tokenizer_kinds
from tests.checkpoints import VOCABULARY
from tests.core.sentences import ODD

#: The full stop, the line's end and what stands beside a word have a say in how Moses and fastBPE cut it.
TEXTS = ("the co. is good", "i live in st. louis now", "a dog etc. and a cat", "ok. fine", "Mr. Smith: \"hello\" -- no",
         "the Dog  barked\tall\nnight", "a\n\nb\n", "fin. Et puis. après", "U.S.A. is in N.Y. now", "50 % of 1 000 km",
         "l'eau aujourd'hui d’École", "''a'' ``b`` “c” «d» …", "x\u00a0y\u3000z", "e\u0301te\u0301 ﬁn Å",
         "zero\u200bwidth \x00", "中国 の犬", "😀👩‍👩‍👧 emoji",
         "<s> a </s> <pad>", "  lead and trail  ", "")


def japanese(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "bert"}', encoding="utf-8")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertJapaneseTokenizer"}', encoding="utf-8")
    (folder / "vocab.txt").write_text("\n".join([*VOCABULARY, "国", "犬", "##国"]) + "\n", encoding="utf-8")


KINDS = {"XLM": tokenizer_kinds.xlm, "FlauBERT": tokenizer_kinds.flaubert, "PhoBERT": tokenizer_kinds.phobert,
         "Japanese BERT": japanese}


@pytest.fixture(scope="module", params=KINDS)
def make(request, tmp_path_factory):
    """make(limit) -> ours and transformers' of one kind, and its name."""
    from transformers import AutoTokenizer

    folder = tmp_path_factory.mktemp("tokenizer")
    KINDS[request.param](folder)
    if not (folder / "config.json").exists():
        kind = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))["tokenizer_class"]
        family = {"PhobertTokenizer": "roberta"}.get(kind, kind.removesuffix("Tokenizer").lower())
        (folder / "config.json").write_text(json.dumps({"model_type": family}), encoding="utf-8")
    theirs = AutoTokenizer.from_pretrained(folder)
    return lambda limit=512: (read_other_tokenizer(folder, limit, True), theirs, request.param)


@pytest.mark.parametrize("text", [*TEXTS, *ODD], ids=repr)
def test_the_ids_are_those_of_transformers_for_the_whole_text(make, text):
    own, theirs, _ = make()
    text = text.replace("[MASK]", "").encode("utf-8", "replace").decode("utf-8")[:2000]
    for pair in (None, "the dog etc. barked"):
        found, expected = own.encode(text, pair), theirs(text, pair, return_token_type_ids=True)
        assert list(found.input_ids) == expected["input_ids"]
        assert list(found.token_type_ids) == expected["token_type_ids"]


@pytest.mark.parametrize("limit", [8, 9, 16])
def test_a_pair_is_cut_as_transformers_cuts_it(make, limit):
    own, theirs, _ = make(limit)
    draw = random.Random(3)
    words = "the dog barked all night paris is chien con 😀 中国 é </s> <s> x . , !".split()
    for _ in range(60):
        first, second = (" ".join(draw.choices(words, k=draw.randint(0, 14))) for _ in range(2))
        found = own.encode(first, second)
        expected = theirs(first, second, truncation=True, max_length=limit, return_token_type_ids=True)
        assert list(found.input_ids) == expected["input_ids"], (first, second)
        assert list(found.token_type_ids) == expected["token_type_ids"], (first, second)


@pytest.mark.parametrize("text", [*TEXTS, *ODD], ids=repr)
def test_pieces_stand_in_the_text_in_order(make, text):
    own, _, _ = make()
    text = text.encode("utf-8", "replace").decode("utf-8")[:2000]
    spans = own.spans(text)
    assert all(0 <= one.start < one.end <= len(text) for one in spans)
    for left, right in zip(spans, spans[1:], strict=False):
        assert left.start <= right.start
        assert left.end <= right.end
        assert right.word in (left.word, left.word + 1)
    assert not spans or spans[0].word == 0


def test_pieces_stand_at_their_letters_and_words_between_spaces(make):
    own, _, name = make()
    text = "The [MASK] dog, etc. École"
    found = own.encode(text)
    stand = [text[slice(*found.offsets[n])] for n in found.content]
    assert "".join(stand) == text.replace(" ", "")
    words = [text[slice(*found.offsets[n])] for n in found.content if found.word_ids[n] == 2]
    assert "".join(words) == ("dog" if name == "Japanese BERT" else "dog,")  # '##' would say that it goes on
    assert [text[slice(*found.offsets[n])] for n in found.mask_positions] == ["[MASK]"]


def test_a_special_token_typed_first_is_a_piece_of_the_text(make):
    own, _, _ = make()
    typed = own.specials["cls"]
    found = own.encode(f"{typed} a")
    assert found.sequence_ids[:2] == (None, 0)
    assert found.offsets[1] == (0, len(typed))


# --- letter by letter --------------------------------------------------------------


def texts_of(text: str, pieces: list[str], **options) -> list[str]:
    return [text[one.start:one.end] for one in align(text, pieces, "[UNK]", **options)]


@pytest.mark.parametrize(("text", "pieces", "expected"), [
    ("The Dog", ["the</w>", "d", "og</w>"], ["The", "D", "og"]),
    ("“a” … b", ['"', "a", '"', ".", ".", ".", "b"], ["“", "a", "”", "…", "…", "…", "b"]),
    ("e\u0301te\u0301", ["é", "t", "é"], ["e\u0301", "t", "e\u0301"]),
    ("a 中国 b", ["a", "[UNK]", "b"], ["a", "中国", "b"]), ("中国 b", ["[UNK]", "b"], ["中国", "b"]),
    ("a 中国", ["a", "[UNK]"], ["a", "中国"]), ("中国 x", ["[UNK]", "[UNK]"], ["中国 x", "中国 x"]),
    ("a b", ["a", "<added>", "b"], ["a", "a", "b"]), ("b", ["<added>", "b"], ["b", "b"]),
    ("a " + "y" * 100 + " dog", ["a", "[UNK]", "dog"], ["a", "y" * 100, "dog"]),
    ("1 000 km", ["1.000", "km"], ["1 000", "km"]), ("", ["x"], [""]), (" \u200d ", ["x"], ["\u200d"]),
    ("▁a ## @@", ["▁", "a", "##", "@@"], ["▁", "a", "##", "@@"]),
])
def test_what_a_tokenizer_changes_is_found_again(text, pieces, expected):
    assert texts_of(text, pieces) == expected


def test_a_word_s_pieces_have_its_number():
    pieces = ["un", "##able", "犬", "国", "##国", "a"]
    text = "unable 犬国国 a"
    assert [one.word for one in align(text, pieces, None)] == [0, 0, 1, 1, 1, 2]
    assert [one.word for one in align(text, pieces, None, marked=True)] == [0, 0, 1, 2, 2, 3]


@pytest.mark.parametrize(("lengths", "room", "kept"), [
    ((5, 5), 7, (4, 3)), ((4, 9), 7, (4, 3)), ((9, 4), 7, (4, 3)), ((3, 9), 7, (3, 4)), ((9, 3), 7, (4, 3)),
    ((5, 5), 6, (3, 3)), ((2, 7), 6, (2, 4))])
def test_the_odd_piece_is_the_first_sentences(lengths, room, kept):
    sequence_ids = [None, *[0] * lengths[0], None, *[1] * lengths[1], None]
    sentences = [sequence_ids[place] for place in _fitting(sequence_ids, room + 3, first_keeps_more=True)]
    assert (sentences.count(0), sentences.count(1)) == kept


def test_all_of_these_are_written_in_python(make):
    assert isinstance(make()[0], PythonTokenizer)

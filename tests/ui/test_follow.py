"""What is chosen goes along with its word while a sentence is edited, and ends with the sentence."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tokenizers import Tokenizer as FastTokenizer
from tokenizers import models, pre_tokenizers

from bert_core.serving.rooms import View
from bert_core.tokenizer import Tokenizer
from tests.checkpoints import SPECIALS, wordpiece
from tests.payloads import drawn, is_ready, visit
from ui import follow

DOG = ("[CLS]", "the", "old", "dog", "barked", "all", "night", ".", "[SEP]")


@pytest.mark.parametrize(("words", "expected"), [
    ("today the old dog barked all night .", {"dog": 4, "barked": 5}),  # put in before them
    ("the dog barked all night .", {"old": None, "dog": 2, "barked": 3}),  # taken out before them
    ("the old dog barked", {"dog": 3, "barked": 4, "night": None}),
    ("the old cat barked all night .", {"dog": 3, "barked": 4}),  # exchanged: the gap stays where it is
    ("the old da ##ch ##sh barked all night .", {"dog": 3, "barked": 6}),
    ("the old dog barked al", {"dog": 3, "all": 5, "night": None}),  # while it is taken back letter by letter
    ("my sister bakes wonderful bread .", {"old": None, "dog": None, ".": None}),
    ("", {"dog": None}),
])
def test_each_token_is_found_again_in_an_edited_sentence_and_none_in_another(words, expected):
    places = follow.moved(DOG, ("[CLS]", *words.split(), "[SEP]"))
    assert {word: places.get(DOG.index(word)) for word in expected} == expected


def test_one_word_in_common_does_not_make_another_sentence_the_same():
    assert follow.moved(DOG, ("[CLS]", "the", "house", ".", "[SEP]")) == {}


def test_tokens_that_take_turns_are_compared_in_little_time():
    """difflib takes some 30 s for a thousand of them that are shifted by one; such a text counts as another one."""
    old = ("[CLS]", "dog", *["a", "b"] * 500, "end", "[SEP]")
    new = ("[CLS]", "dog", "c", *["b", "a"] * 500, "end", "[SEP]")
    began = time.process_time()
    assert follow.moved(old, new) == {}
    assert time.process_time() - began < 0.5
    assert follow.moved(old, (*old[:400], "new", *old[400:]))[900] == 901  # what was typed in between is still found


def masking(mask: str):
    at = visit("masking", text="The old dog barked all night.", mask=mask)
    assert is_ready(at)["lines"] == []
    return at


def test_a_hidden_word_stays_hidden_when_one_is_typed_before_it():
    at = masking("3,6")
    at.text_input(key="text").set_value("Today the old dog barked all night.").run()
    assert drawn(at, "gaps")["selected"] == [4, 7]
    assert at.query_params["mask"] == "4,7"


def test_a_new_sentence_has_no_gap_that_nobody_chose():
    at = masking("3,6")
    at.text_input(key="text").set_value("My sister bakes wonderful bread every Sunday.").run()
    assert drawn(at, "gaps")["selected"] == []
    assert "mask" not in at.query_params


def test_a_word_of_the_second_sentence_follows_it_when_the_first_grows():
    at = visit("masking", text="It rained.", pair="The river rose.", mask="6")
    assert drawn(at, "gaps")["chips"][6]["l"] == "river"
    at.text_input(key="text").set_value("It rained for days.").run()
    assert drawn(at, "gaps")["selected"] == [8]
    assert drawn(at, "gaps")["chips"][8]["l"] == "river"


def test_what_comes_with_the_new_sentence_is_meant_for_it():
    at = masking("3")
    at.query_params["mask"] = "2"  # the browser's Back brings both
    at.text_input(key="text").set_value("My sister bakes wonderful bread.").run()
    assert drawn(at, "gaps")["selected"] == [2]


def test_a_pair_that_was_cut_goes_along_at_both_ends():
    assert follow._rewrite("3-4,6-2", {3: (4,), 4: (5,), 6: (7,)}) == "4-5"
    assert follow._rewrite("-", {}) == "-"


@pytest.mark.parametrize("key", ["mask", "at", "token", "cut"])
def test_a_position_of_thousands_of_digits_in_a_link_is_nowhere_however_one_types_on(key):
    at = visit("masking", text="The old dog barked all night.", **{key: "1" * 4500})
    at.text_input(key="text").set_value("Today the old dog barked all night.").run()
    is_ready(at)
    assert key not in at.query_params


@pytest.mark.parametrize(("page", "key", "raw"), [("embeddings", "cell", "4,100"), ("tokens", "word", "4")])
def test_a_link_is_not_blamed_for_what_is_typed_after_it(page, key, raw):
    at = visit(page, text="The old dog barked.", **{key: raw})
    assert is_ready(at)["lines"] == []
    at.text_input(key="text").set_value("Hi.").run()
    assert is_ready(at)["lines"] == []


def test_a_link_that_never_fitted_is_told_still():
    at = visit("embeddings", text="Hi.", cell="99,100")
    assert "99,100" in is_ready(at)["lines"][0]


def leave_and_return(at, page: str, text: str | None = None):
    """To another page by the sidebar and back, as the browser does it: the address keeps what widgets hold."""
    for name in ("tokens", page):
        for key in set(at.query_params) - {"text", "pair", "model"}:
            at.query_params.pop(key)
        at.switch_page(f"pages/{name}.py").run()
        if name == "tokens" and text is not None:
            at.text_input(key="text").set_value(text).run()
    is_ready(at)
    return at


def test_what_was_hidden_is_hidden_still_when_one_comes_back():
    at = leave_and_return(masking("3,6"), "masking")
    assert drawn(at, "gaps")["selected"] == [3, 6]
    assert at.query_params["mask"] == "3,6"


def test_what_was_put_back_stays_put_back():
    at = masking("3")
    at.query_params.pop("mask")
    at.run()
    assert drawn(leave_and_return(at, "masking"), "gaps")["selected"] == []


def test_another_sentence_comes_with_nothing_chosen():
    at = leave_and_return(masking("3"), "masking", "My sister bakes wonderful bread.")
    assert drawn(at, "gaps")["selected"] == []


def test_who_is_sent_to_a_page_finds_what_it_is_sent_to():
    at = masking("3")
    for name in ("tokens", "masking"):
        for key in set(at.query_params) - {"text", "pair", "model"}:
            at.query_params.pop(key)
        if name == "masking":
            at.session_state["_going"] = View("masking", (("text", "The old dog barked all night."), ("pair", "")))
        at.switch_page(f"pages/{name}.py").run()
    assert drawn(at, "gaps")["selected"] == []


def go(at, page: str):
    """To another page by the sidebar."""
    for key in set(at.query_params) - {"text", "pair", "model"}:
        at.query_params.pop(key)
    at.switch_page(f"pages/{page}.py").run()
    is_ready(at)
    return at


def test_a_word_hidden_on_one_page_is_hidden_on_the_next():
    at = go(masking("5"), "compare")
    assert at.query_params["at"] == "5"
    assert drawn(at, "chips")["selected"] == [5]
    at = go(go(at, "tokens"), "attention")
    assert at.query_params["mask"] == "5"


def test_the_word_hidden_last_counts_and_several_stay_several():
    at = go(go(masking("3,6"), "compare"), "masking")
    assert drawn(at, "gaps")["selected"] == [3, 6]
    at = go(at, "compare")
    at.query_params["at"] = "2"
    at.run()
    assert drawn(go(at, "masking"), "gaps")["selected"] == [2]


def test_a_word_of_another_sentence_or_put_back_is_hidden_nowhere():
    at = masking("5")
    at.query_params.pop("mask")
    assert "at" not in go(at.run(), "compare").query_params
    at = masking("5")
    at.text_input(key="text").set_value("My sister bakes wonderful bread.").run()
    assert "at" not in go(at, "compare").query_params


# --- another model -------------------------------------------------------------

BARKED = "the dog barked in paris"


def by_letters() -> Tokenizer:
    """A tokenizer without special tokens that cuts a text into its letters."""
    letters = {letter: number for number, letter in enumerate("abcdefghijklmnopqrstuvwxyz")}
    fast = FastTokenizer(models.WordLevel(letters, unk_token="a"))
    splits = pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split("", "isolated")
    fast.pre_tokenizer = pre_tokenizers.Sequence(list(splits))
    return Tokenizer(fast, 99, {"unk": "a"})


def by_words() -> Tokenizer:
    """BERT's, over the tiny vocabulary."""
    return Tokenizer(wordpiece(), 37, dict(zip(("pad", "unk", "cls", "sep", "mask"), SPECIALS, strict=True)))


def test_a_word_is_found_again_in_all_the_pieces_of_another_model():
    words, letters = by_words().encode(BARKED, "he slept"), by_letters().encode(BARKED, "he slept")
    there = follow.same_words(words, letters)
    back = follow.same_words(letters, words)
    for n in words.content:
        assert "".join(letters.tokens[m] for m in there[n]) == words.tokens[n].removeprefix("##")
        assert {letters.sequence_ids[m] for m in there[n]} == {words.sequence_ids[n]}
        assert {back[m] for m in there[n]} == {(n,)}
    assert not any(words.special[n] for n in there), "a model without special tokens has no place for them"
    assert follow.same_words(words, words) == {n: (n,) for n in range(len(words))}


def test_of_several_pieces_all_are_hidden_and_the_first_is_looked_at():
    places = {1: (4, 5), 2: (6,), 3: ()}
    assert follow._rewrite("1,2,3", places, whole=True) == "4,5,6"
    assert follow._rewrite("1", places) == "4"
    assert follow._rewrite("2-1,3-1", places) == "6-4"
    assert follow._rewrite("3", places, whole=True) is None


def read_with(at, folder: str):
    """Choose another model beside the page; one that the visitor has used before, so that the list has it."""
    at.session_state["_own_models"] = {folder: ("mlm",)}
    at.run().selectbox(key="model").set_value(folder).run()
    assert is_ready(at)["lines"] == []
    return at


@pytest.fixture
def letters_apart(tiny_bert, monkeypatch) -> str:
    """A model whose tiny vocabulary spells most words letter by letter."""
    monkeypatch.setenv("BOTH_WAYS_FOLDERS", str(Path(tiny_bert).parent))
    return tiny_bert


def test_a_hidden_word_stays_hidden_under_a_model_that_cuts_it_otherwise(letters_apart):
    at = visit("masking", text="My dog ran home.", mask="3")
    assert drawn(at, "gaps")["chips"][3]["l"] == "ran"
    read_with(at, letters_apart)
    hidden = [chip["l"] for chip in drawn(at, "gaps")["chips"] if chip["k"] == "mask"]
    assert hidden == ["r", "##a", "##n"]
    assert at.query_params["mask"] == "4,5,6"
    read_with(at, "twin-bert")
    assert drawn(at, "gaps")["selected"] == [3]


def test_the_token_that_is_looked_at_stays_the_same_under_another_model(letters_apart):
    at = read_with(visit("embeddings", text="My dog ran home.", token="4", view="Neighbours"), letters_apart)
    assert at.query_params["token"] == "7"
    assert at.query_params["view"] == "Neighbours"


def test_a_link_that_names_a_model_means_its_own_positions(letters_apart):
    at = visit("masking", text="My dog ran home.", mask="3", model=letters_apart)
    assert is_ready(at)["lines"] == []
    assert drawn(at, "gaps")["selected"] == [3]
    at.run()
    assert at.query_params["mask"] == "3"


def test_a_word_of_another_model_s_picture_stays_open_through_an_edit_and_another_model(letters_apart):
    """Entities answers with twin-bert-ner, whatever is chosen: the opened word is counted in its pieces."""
    def opened(at) -> str:
        shown = drawn(at, "entities")
        return shown["words"][shown["open"]]["text"]

    at = visit("tasks", view="Entities", text="My dog met Barack Obama in Berlin.", token="7", model=letters_apart)
    assert opened(at) == "Berlin"
    at.text_input(key="text").set_value("Yesterday my dog met Barack Obama in Berlin.").run()
    assert opened(at) == "Berlin"
    at.selectbox(key="model").set_value("twin-bert").run()
    assert opened(at) == "Berlin"

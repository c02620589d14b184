"""A guess put into its gap: the sentence that comes out, and what stays hidden in it."""

from __future__ import annotations

import pytest

from bert_core import TraceRequest, load_engine
from bert_core.measures import pieces
from tests.payloads import drawn, said, visit
from ui import components, state
from ui.state import Here
from ui.views import masking, masking_put

TWO = "The [MASK] sat on the [MASK] and drank its milk."


@pytest.fixture
def here(monkeypatch) -> Here:
    """A sentence of the shipped model, outside of any page."""
    monkeypatch.setattr(state, "loaded", lambda name: load_engine(name).loaded())
    return Here("The schoolteacher opened the door.", "She [MASK] in.", "twin-bert", "masking")


def with_piece(here: Here, position: int, piece: str) -> tuple[str, str | None]:
    tokenizer = state.loaded(here.model).tokenizer
    return masking_put.with_piece(here.encoding, position, tokenizer.id_of(piece), tokenizer)


@pytest.mark.parametrize(("position", "piece", "text", "pair"), [
    (5, "a", "The schoolteacher opened a door.", "She [MASK] in."),
    (3, "bus", "The school bus opened the door.", "She [MASK] in."),  # it began a word, what stood there went on one
    (3, "##s", "The schools opened the door.", "She [MASK] in."),
    (6, "##s", "The schoolteacher opened thes.", "She [MASK] in."),
    (7, "!", "The schoolteacher opened the door !", "She [MASK] in."),
    (10, "walked", "The schoolteacher opened the door.", "She walked in."),
])
def test_a_piece_is_written_where_the_token_stands(here, position, piece, text, pair):
    assert with_piece(here, position, piece) == (text, pair)


@pytest.mark.parametrize("name", ["RoBERTa", "ALBERT"])
def test_a_piece_of_another_vocabulary_is_a_word_without_its_mark(family, name):
    tokenizer = load_engine(family(name)).loaded().tokenizer
    encoding = tokenizer.encode("the dog [MASK] .")
    begins = next(i for i in encoding.input_ids if tokenizer.token_of(i).startswith(pieces.BEGINS)
                  and tokenizer.decode([i]).strip().isalpha())
    (gap,) = encoding.mask_positions
    word = tokenizer.decode([begins]).strip()
    assert masking_put.with_piece(encoding, gap, begins, tokenizer) == (f"the dog {word} .", None)


def cards(at) -> list[tuple[int, list[int | None]]]:
    """Position of each card and what a click on each row puts there."""
    return [(card["position"], [row.get("put") for row in card["lists"][0]["rows"]])
            for card in drawn(at, "gaps")["cards"]]


def test_every_guess_but_a_special_token_can_be_put_in():
    at = visit("masking", text=TWO, k=4)
    logits = load_engine("twin-bert").run(TraceRequest(TWO)).mlm_logits
    assert cards(at) == [(place, (-row).argsort()[:4].tolist()) for place, row in zip((2, 6), logits, strict=True)]
    assert drawn(at, "gaps")["foot"] == masking_put.HINT
    assert "put" not in str(drawn(visit("masking", text=TWO, view="Layer by layer"), "gaps"))
    assert drawn(visit("masking", text="The [MASK] sat."), "gaps")["foot"] == ""
    assert said(at)


def test_what_else_is_hidden_stays_hidden_where_its_word_is_now(here, monkeypatch):
    done = {}
    monkeypatch.setattr(masking_put.task_models, "put", lambda text, pair: done.update(text=text, pair=pair))
    monkeypatch.setattr(masking_put.chips, "set_positions", lambda key, places: done.update({key: places}))
    masked = (3, 6)
    trace = load_engine("twin-bert").run(here.request(masked=masked, parts=("mlm_positions", "mlm_logits")))
    gaps = masking.read_gaps(here, trace, here.encoding, 3)
    receive = masking_put.receive(here, masked, gaps)
    truth = next(gap.truth for gap in gaps if gap.position == 3)
    receive({"put": truth.id, "gap": 3})
    assert done == {"text": here.text, "pair": here.pair, "mask": [6]}
    monkeypatch.setattr(masking_put, "with_piece", lambda *_: ("The old school bus opened the door.", here.pair))
    receive({"put": truth.id, "gap": 3})
    assert done["mask"] == [7]  # a word more stands before it
    for message in ({"put": truth.id, "gap": 4}, {"put": -1, "gap": 3}, {"put": truth.id}, {"put": 5, "gap": 3}):
        with pytest.raises(components.BadMessage):
            receive(message)
    receive({"selected": [2]})
    assert done["mask"] == (2,)


def test_another_gap_stays_in_a_sentence_of_two_words(here, monkeypatch):
    """One token was exchanged for one: nothing has moved, however little the sentences have in common."""
    done = {}
    here = Here("hello world", None, "twin-bert", "masking")
    monkeypatch.setattr(masking_put.task_models, "put", lambda text, pair: done.update(text=text))
    monkeypatch.setattr(masking_put.chips, "set_positions", lambda key, places: done.update({key: places}))
    trace = load_engine("twin-bert").run(here.request(masked=(1, 2), parts=("mlm_positions", "mlm_logits")))
    gaps = masking.read_gaps(here, trace, here.encoding, 6)
    guess = next(one for gap in gaps if gap.position == 1 for one in gap.guesses if one.token.isalpha())
    masking_put.receive(here, (1, 2), gaps)({"put": guess.id, "gap": 1})
    assert done == {"text": f"{guess.token} world", "mask": [2]}


@pytest.mark.parametrize(("name", "piece", "can"), [
    ("twin-bert", "door", True), ("twin-bert", "##s", True), ("twin-bert", "!", True), ("twin-bert", "[MASK]", False),
    ("twin-bert", "[unused5]", False), ("RoBERTa", "Ã", False), ("RoBERTa", "Ġ", False), ("RoBERTa", "Ċ", False),
    ("RoBERTa", "d", True)])
def test_only_a_piece_that_can_be_typed_is_put_in(family, name, piece, can):
    tokenizer = load_engine(name if name == "twin-bert" else family(name)).loaded().tokenizer
    index = tokenizer.backend.token_to_id(piece)
    assert index is not None
    assert masking_put.is_written(tokenizer, index) == can


def test_a_word_goes_between_chinese_characters_without_a_space(here):
    here = Here("我们[MASK]学", None, "twin-bert", "masking")
    (gap,) = here.encoding.mask_positions
    assert with_piece(here, gap, "door")[0] == "我们door学"

"""The [CLS] page's words and widgets: signs, defaults that follow the sentence, the head of the next-sentence lab."""

import pytest

from bert_core import TraceRequest, load_engine
from bert_core.figures.cls import numbered
from tests.payloads import drawn, said, table_rows, visit
from ui.views import cls_change
from ui.views.task_models import share, signed

GOOD, BAD = "I loved this film.", "I hated this film."
PAIR = {"text": "The girl opened the old wooden box.", "pair": "Inside she found a letter."}


@pytest.mark.parametrize(("value", "options", "written"), [
    (1.2, {}, "+1.20"), (-0.312, {}, "−0.31"), (-0.001, {}, "0.00"), (0.5, {"plus": ""}, "0.50"),
    (-0.00012, {"digits": 4}, "−0.0001"),
])
def test_signs(value, options, written):
    assert signed(value, **options) == written


@pytest.mark.parametrize(("probability", "written"), [
    (0.5812, "58.1 %"), (1.0, "100.0 %"), (0.001, "0.1 %"), (0.0004, "<0.1 %"), (0.0, "0.0 %"),
    (0.9994, "99.9 %"), (0.9995, ">99.9 %"), (0.99999, ">99.9 %"), (1 - 2**-23, "100.0 %"),
])
def test_a_share_is_nothing_or_all_only_where_it_is(probability, written):
    assert share(probability) == written


def test_tokens_on_an_axis_are_no_html():
    assert numbered(["<s>", "a&b"]) == ["0 &lt;s&gt;", "1 a&amp;b"]


def change(**address: str):
    at = visit("cls", view="Change a word", **address)
    assert not at.exception
    return at


def retyped(at, text: str) -> str:
    """What stands in the changed sentence after another sentence was typed."""
    at.text_input(key="text").set_value(text).run()
    assert not at.exception
    return at.text_input(key="changed").value


def test_a_changed_sentence_that_nobody_edited_follows_the_sentence():
    at = change(text=GOOD)
    assert retyped(at, BAD) == BAD
    assert retyped(at, GOOD) == GOOD


def test_an_edited_or_linked_changed_sentence_stays():
    assert retyped(change(text=GOOD, changed=BAD), "Nothing.") == BAD
    at = change(text=GOOD)
    at.text_input(key="changed").set_value(BAD).run()
    assert retyped(at, "Nothing.") == BAD


def test_an_example_of_a_change_stands_even_where_its_new_sentence_stood_before():
    at = change(text=GOOD)
    button = at.button(key="try_change_0")
    old, new = button.label.split(" → ")
    retyped(at, new)
    at.button(key="try_change_0").click().run()
    assert (at.text_input(key="text").value, at.text_input(key="changed").value) == (old, new)


def test_the_first_sight_of_a_change_is_a_shipped_sentence_changed():
    at = change()
    old, new = at.button(key="try_change_0").label.split(" → ")
    assert at.text_input(key="changed").value == new
    assert f"“{old}”" in said(at)
    assert "To the model both are the same sentence" not in said(at)
    assert retyped(at, GOOD) == GOOD


def test_the_head_of_the_next_sentence_lab_can_be_opened():
    closed, opened = (visit("cls", view="Next sentence", model="twin-bert", open_head=flag, **PAIR)
                      for flag in ("false", "true"))
    assert not closed.exception
    with pytest.raises(AssertionError, match="no component operands"):
        drawn(closed, "operands")
    logit = load_engine("twin-bert").run(TraceRequest(*PAIR.values(), model="twin-bert")).nsp_logits.max()
    assert f"the run itself gave {signed(float(logit), 4)}" in said(opened)


def test_a_typed_mask_is_not_what_the_accounts_differ_on():
    at = visit("cls", text="The film was [MASK] and loud.", pair="It was a [MASK] joy.")
    words = said(at)
    assert "By size they differ most on" in words
    assert "differ most on “[MASK]”" not in words


@pytest.mark.parametrize(("changed", "same"), [(GOOD, True), (GOOD.upper(), True), (BAD, False)])
def test_two_sentences_of_the_same_tokens_are_said_to_be_the_same(changed, same):
    page = "".join(one.body for one in change(text=GOOD, changed=changed).get("html"))
    assert (cls_change.SAME in page, "goes from" in page) == (same, not same)


@pytest.mark.parametrize(("words", "line"), [(100, ""), (300, "2 neighbours share a column")])
def test_it_is_said_where_tokens_share_a_column_and_the_table_has_them_all(words, line):
    at = visit("cls", view="Layers", text="dog " * words)
    assert ("share a column" in said(at)) == bool(line)
    assert line in said(at)
    assert len(table_rows(at, "What [CLS] looks at, by layer")[0]) == 1 + words + 2

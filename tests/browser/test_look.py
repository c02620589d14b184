"""Tokens, Embeddings and Masking in a real browser, and the frame around them."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.test_helpers import FURTHER_APART
from tests.browser.waiting import holds
from tests.cases import quick_are

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

#: Anything a person, or somebody unfriendly, might type.
ODD = {
    "nothing": "",
    "script": "</script><script>window.hacked=1</script><img src=x onerror='window.hacked=1'>",
    "masks in odd places": "a[MASK]b [MASK][MASK] [mask] [MASK",
    "right to left": "שלום עולם [MASK] مرحبا",
    "one letter": "a",
    "emoji": "🙂👩‍👩‍👧‍👦",
    "Chinese": "他喝了一杯[MASK]。",
    "only masks": "[MASK] [MASK] [MASK]",
    "controls": "a\u0007b\u200b\u202ec\ufeff \u0301",
    "markdown": "**bold** $x^2$ :red[hi] {x} %s [CLS] [SEP]",
}
#: page -> each of its views.
VIEWS = {
    "tokens": ["Step by step", "Ids and segments", "Compare"],
    "embeddings": ["The sum", "Switch off and shuffle", "Positions", "Neighbours"],
    "masking": ["Fill the gap", "The head", "Layer by layer", "Neurons", "Before and after", "Other sentence",
        "Swap vectors", "80/10/10", "Pseudo-perplexity"],
}


def test_typing_a_sentence_changes_the_guesses(visitor):
    page = visitor.open("masking", text="Paris is the [MASK] of France.")
    guesses = page.locator(".bw-guess .bw-piece")
    expect(guesses).to_have_count(6)
    first = guesses.all_inner_texts()
    assert all(first)
    visitor.type("The cat sat on the [MASK].")
    holds(page, lambda: guesses.all_inner_texts() != first)
    expect(guesses).to_have_count(6)
    visitor.no_traceback()


def test_a_click_masks_a_token_and_a_link_restores_it(visitor, new_visitor):
    page = visitor.open("masking", text="The dog barked all night.")
    expect(page.locator(".bw-hint")).to_contain_text("Click a token")
    run = visitor.run_number()
    page.get_by_role("option", name="barked").click()
    visitor.after(run)
    expect(page.locator(".bw-card-title")).to_contain_text("“barked” is hidden")
    visitor.in_address("mask=3")
    other = new_visitor()
    other.page.goto(page.url)
    other.wait_ready("The dog barked all night.")
    expect(other.page.locator(".bw-card-title")).to_contain_text("“barked” is hidden")


def test_chips_are_worked_by_keyboard_alone(visitor):
    page = visitor.open("masking", text="The dog barked.")
    chips = page.get_by_role("option")
    chips.nth(0).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(chips.nth(2)).to_be_focused()
    run = visitor.run_number()
    page.keyboard.press("Enter")
    visitor.after(run)
    visitor.in_address("mask=2")
    expect(page.get_by_role("option").nth(2)).to_have_attribute("aria-selected", "true")
    run = visitor.run_number()
    page.get_by_role("option").nth(2).press(" ")
    visitor.after(run)
    expect(page.locator(".bw-card")).to_have_count(0)


@pytest.mark.parametrize("name", quick_are(1, VIEWS))
def test_every_view_draws_in_dark_and_narrow_and_stays_inside(new_visitor, name):
    visitor = new_visitor(width=390, scheme="dark")
    for view in VIEWS[name]:
        visitor.open(name, text="She [MASK] the unbelievable story.", pair="Nobody did.", mask="4", view=view)
        visitor.no_traceback()
        visitor.fits()


#: Least distance of two names on the map's left side, less the height of one; negative where they lie over each other.
ROOM = """() => {
  const host = [...document.querySelectorAll("*")].find((node) => node.shadowRoot?.querySelector(".bw-ticks-left"));
  const names = [...host.shadowRoot.querySelector(".bw-ticks-left").children];
  const tops = names.map((name) => name.getBoundingClientRect().top);
  const height = parseFloat(getComputedStyle(names[0]).fontSize);
  return Math.min(...tops.slice(1).map((top, n) => top - tops[n])) - height;
}"""
LONG = ("When my sister came home late from the hospital last night, she was so tired that she forgot to feed the "
        "little dog before bed.")


@pytest.mark.parametrize("width", quick_are(1, [390, 1440]))
def test_names_beside_a_map_do_not_lie_over_each_other(new_visitor, width):
    visitor = new_visitor(width=width)
    visitor.open("masking", text=LONG, view="Before and after")
    holds(visitor.page, lambda: visitor.page.evaluate(ROOM) > -1)


def test_the_first_sentence_is_all_on_one_screen_of_a_laptop(visitor):
    page = visitor.open("tokens", view="Ids and segments")
    table = page.get_by_role("region", name="Ids, segments, positions and mask of every token")
    holds(page, lambda: table.evaluate("box => box.scrollWidth <= box.clientWidth"))


def test_a_chip_says_whether_its_number_counts_tokens_words_or_pieces(visitor):
    page = visitor.open("tokens", text="Unbelievably, the dog")
    expect(page.get_by_role("option", name="the, word 3")).to_have_count(1)  # behind the comma
    expect(page.get_by_role("listitem", name="the, position ")).to_have_count(1)
    page = visitor.open("tokens", text="the dog", view="Compare")
    expect(page.get_by_role("listitem", name=", position")).to_have_count(0)
    expect(page.get_by_role("list", name="Pieces by twin-bert").get_by_label("dog, piece 2")).to_have_count(1)


def test_the_first_picture_is_all_on_one_screen_of_a_laptop(new_visitor):
    page = new_visitor(width=1366, height=768).open()
    chips = page.get_by_role("option")
    expect(page.locator(".bw-guess .bw-piece")).to_have_count(6)
    holds(page, lambda: chips.last.bounding_box()["y"] - chips.first.bounding_box()["y"] < 4)
    last = page.locator(".bw-guess").last.bounding_box()
    assert last["y"] + last["height"] < page.locator(".bw-status").bounding_box()["y"]


def test_the_first_guesses_are_on_a_phones_first_screen(new_visitor):
    page = new_visitor(width=390, height=844).open()
    expect(page.locator(".bw-guess .bw-piece")).to_have_count(6)
    second = page.locator(".bw-guess").nth(1)
    holds(page, lambda: sum(second.bounding_box()[side] for side in ("y", "height")) < 844)
    views = page.get_by_role("radiogroup", name="View").get_by_role("radio")
    assert len({round(views.nth(n).bounding_box()["y"]) for n in range(views.count())}) == 3


@pytest.mark.parametrize("pair", ["", "It was loud."])
def test_a_phone_says_which_field_is_the_second_sentence(new_visitor, pair):
    page = new_visitor(width=390).open(text="The dog barked.", pair=pair)
    field, label = page.get_by_label("Second sentence"), page.locator(".st-key-pair label")
    expect(label).to_be_visible()
    box, name = field.bounding_box(), label.bounding_box()
    inside = box["y"] < name["y"] + name["height"] / 2 < box["y"] + box["height"]
    assert inside == (not pair)
    if inside:  # and what one types or the hint stands right of it, also where letters are set further apart
        page.add_style_tag(content=FURTHER_APART)
        name = label.bounding_box()
        start = float(field.evaluate("field => parseFloat(getComputedStyle(field).paddingLeft)"))
        assert box["x"] + start >= name["x"] + name["width"]


@pytest.mark.parametrize("kind", quick_are(2, ODD))
def test_anything_typed_gets_an_answer(visitor, kind):
    visitor.open("masking")
    for name in ("masking", "tokens", "embeddings"):
        if name != "masking":
            visitor.page.get_by_role("link", name=name.capitalize(), exact=True).click()
            visitor.page.wait_for_url(f"**/{name}**")
            visitor.wait_ready()
        if visitor.page.get_by_label("Sentence", exact=True).input_value() != ODD[kind]:
            visitor.type(ODD[kind])
        visitor.wait_ready()
        visitor.no_traceback()
    assert visitor.page.evaluate("window.hacked") is None


def test_ten_thousand_words_are_cut_and_it_is_said_where(visitor):
    page = visitor.open("masking")
    visitor.type(" ".join(f"word{n % 7}" for n in range(10_000)))
    expect(page.locator(".bw-notice")).to_contain_text("Cut at this model's limit of 512 tokens")
    expect(page.locator(".bw-notice")).to_contain_text("✂")
    expect(page.get_by_role("option")).to_have_count(512)
    visitor.no_traceback()


def test_a_model_that_cannot_be_had_is_one_clear_line(visitor):
    page = visitor.open("tokens", text="hi", model="nobody/nothing")
    expect(page.locator(".bw-problem")).to_contain_text("nobody/nothing")
    visitor.no_traceback()


def test_a_cell_of_the_sum_is_in_the_address(visitor):
    page = visitor.open("embeddings", text="The dog barked.", cell="2,10")
    expect(page.locator(".bw-where")).to_have_text("Dimension 10 of “dog” at position 2")
    run = visitor.run_number()
    page.locator("canvas.bw-strips").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    visitor.after(run)
    visitor.in_address("cell=2%2C11")


def test_a_word_opens_its_look_ups(visitor):
    page = visitor.open("tokens", text="The unbelievably good dog")
    expect(page.locator(".bw-ladder").first).to_contain_text("unbelievably")
    run = visitor.run_number()
    page.get_by_role("option", name="dog").click()
    visitor.after(run)
    expect(page.locator(".bw-ladder")).to_have_text("✓dog")


def test_a_printed_page_names_its_model_and_leaves_the_controls_out(visitor):
    page = visitor.open("masking", text="The [MASK] barked.")
    page.emulate_media(media="print")
    expect(page.locator(".bw-status")).to_be_visible()
    expect(page.locator(".bw-status")).to_contain_text("twin-bert")
    expect(page.locator(".bw-status")).to_have_css("position", "static")
    expect(page.get_by_test_id("stSlider")).to_be_hidden()


@pytest.mark.parametrize(("name", "query", "said"), quick_are(1, [
    ("masking", {"text": "The [MASK] barked.", "pair": "It ran."},
     "Sentence: “The [MASK] barked.” · Second sentence: “It ran.”"),
    ("tasks", {"view": "Acceptability", "text": "She walk home."}, "Sentence: “She walk home.”"),
    ("tasks", {"view": "Answers", "text": "Who barked?", "pair": "The dog barked."},
     "Sentence: “Who barked?” · Second sentence: “The dog barked.”"),
    ("cls", {}, "Sentence: “The plot is clever and the jokes are funny.”"),  # the example, which the field has not
]))
def test_a_printed_page_says_what_it_has_read(visitor, name, query, said):
    page = visitor.open(name, **query)
    read = page.locator(".bw-status .bw-input").first
    expect(read).to_be_hidden()
    page.emulate_media(media="print")
    expect(read).to_be_visible()
    expect(read).to_have_text(said)


def test_a_printed_page_says_how_its_controls_stood(visitor):
    """Fields and choices; of a slider test_code.py tells."""
    page = visitor.open("attention", view="Act", fed="3")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    expect(page.locator(".bw-status .bw-fields")).to_have_text("Feed-forward off in layer: 3")


def test_a_page_without_the_sentence_above_prints_the_one_it_has(visitor):
    page = visitor.open("pretrain", film="The cat [MASK].")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    read = page.locator(".bw-status .bw-input")
    expect(read).to_have_text(["", re.compile("^A sentence about the small world; .MASK. is a gap: “The cat .MASK..”")])


def test_who_adds_the_addends_on_screen_up_by_hand_gets_the_sum_and_layernorm(visitor):
    page = visitor.open("embeddings", text="The schoolteacher opened the [MASK] and read the first chapter.")
    shown = [float(term.replace("−", "-")) for term in page.locator(".bw-sum b").all_inner_texts()]
    token, segment, position, total, output = shown
    assert token + segment + position == pytest.approx(total, abs=2e-6)
    numbers = re.findall(r"[+−]?\d+\.\d+", page.locator(".bw-norm").inner_text())
    row, mean, deviation, weight, bias, done = (float(number.replace("−", "-")) for number in numbers)
    assert row == total
    assert done == output
    assert (row - mean) / deviation * weight + bias == pytest.approx(done, abs=5e-5)


@pytest.mark.parametrize(("width", "least", "change"), quick_are(1, [
    (1440, 245, 245), (1024, 200, 265), (1200, 260, 340)]))
def test_the_three_maps_of_before_and_after_are_large_and_in_sight_at_once(new_visitor, width, least, change):
    page = new_visitor(width=width).open("masking", view="Before and after")
    maps = page.locator(".bw-map")
    expect(maps).to_have_count(3)
    holds(page, lambda: min(maps.nth(n).bounding_box()["width"] for n in range(3)) >= least)
    boxes = [maps.nth(n).bounding_box() for n in range(3)]
    assert max(box["y"] + box["height"] for box in boxes) - min(box["y"] for box in boxes) < 780
    assert boxes[2]["width"] >= change

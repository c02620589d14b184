"""The look of every page: no motion for who wants none, room for a finger, the picture on the first screen."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.waiting import becomes, holds
from tests.cases import quick_are
from ui import shell

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

PAGES = [name for pages in shell.PAGES.values() for name, _ in pages]
#: Those with most that moves and most to press before the others.
BUSIEST_FIRST = ["attention", "masking", *(name for name in PAGES if name not in ("attention", "masking"))]
TEXT = "The children played near the old river bank because they loved it."
#: Names of what moves by itself, or would when it changes, in the shadow of a component too.
MOVING = """() => {
  const found = document.getAnimations().filter((one) => one.playState === 'running')
    .map((one) => `runs: ${one.animationName ?? one}`);
  const seconds = (part) => parseFloat(part) * (part.trim().endsWith('ms') ? 0.001 : 1);
  const longest = (text) => Math.max(...text.split(',').map(seconds));
  const walk = (root) => {
    for (const one of root.querySelectorAll('*')) {
      const style = getComputedStyle(one);
      if (style.transitionProperty !== 'none' && longest(style.transitionDuration) > 0)
        found.push(`fades: ${one.tagName} ${one.className}`);
      if (style.animationName !== 'none' && longest(style.animationDuration) > 0.002)
        found.push(`plays: ${style.animationName}`);
      if (one.shadowRoot) walk(one.shadowRoot);
    }
  };
  walk(document);
  return [...new Set(found)].slice(0, 10);
}"""
#: Controls of the page itself that are lower or narrower than a finger; marks of help aside.
TOO_SMALL = """() => {
  const found = [];
  const walk = (root) => {
    const controls = ['button', 'select', 'summary', 'textarea', '[role=option]', '[data-testid=stRadioOption]',
                      '[data-testid=stCheckbox] label'];
    const elsewhere = ['stSidebar', 'stHeader', 'stTooltipHoverTarget', 'stElementToolbar'];
    for (const one of root.querySelectorAll(controls.join())) {
      const { width, height } = one.getBoundingClientRect();
      if (one.closest(elsewhere.map((name) => `[data-testid=${name}]`).join()) || !width) continue;
      if (getComputedStyle(one).visibility === 'hidden' || one.getAttribute('aria-disabled') === 'true') continue;
      if (height < 39.5 || width < 39.5)
        found.push(`${Math.round(width)} x ${Math.round(height)}: ${one.tagName} ${one.className} ${one.textContent}`);
    }
    for (const one of root.querySelectorAll('*')) if (one.shadowRoot) walk(one.shadowRoot);
  };
  walk(document);
  return found;
}"""


def opened(visitor, name: str, **query: str) -> Page:
    page = visitor.open(name, text=TEXT, **query)
    visitor.no_traceback()
    return page


@pytest.mark.parametrize("name", quick_are(1, BUSIEST_FIRST))
def test_nothing_moves_for_who_wants_no_motion(visitor, name):
    visitor.page.emulate_media(reduced_motion="reduce")
    page = visitor.open(name)
    becomes(page, lambda: page.evaluate(MOVING), [])


def test_without_motion_a_tour_goes_a_head_at_each_press(visitor):
    visitor.page.emulate_media(reduced_motion="reduce")
    page = opened(visitor, "attention", layer="1", head="1")
    play = page.get_by_role("button", name="Next head")
    play.click()
    expect(page.locator(".att-root")).to_have_attribute("data-head", "2")
    page.wait_for_timeout(1500)  # a tour would have gone on
    expect(page.locator(".att-root")).to_have_attribute("data-head", "2")
    play.click()
    expect(page.locator(".att-root")).to_have_attribute("data-head", "3")


@pytest.mark.parametrize("name", quick_are(2, BUSIEST_FIRST))
def test_every_control_has_room_for_a_finger(new_visitor, name):
    visitor = new_visitor(width=390, height=844)
    page = visitor.open(name)
    becomes(page, lambda: page.evaluate(TOO_SMALL), [])
    visitor.fits()


def test_a_sliders_thumb_is_met_beside_it(new_visitor):
    page = new_visitor(width=390, height=844).open("masking")
    holds(page, lambda: page.evaluate("""() => {
      const thumb = document.querySelector('[data-testid=stSlider] [data-testid=stSliderThumbValue]').parentElement;
      thumb.scrollIntoView({ block: 'center' });
      const box = thumb.getBoundingClientRect(), x = box.x + box.width / 2, y = box.y + box.height / 2;
      return [-18, 18].every((far) => thumb.contains(document.elementFromPoint(x, y + far)));
    }"""))


def test_the_first_maps_of_masks_and_heads_are_on_the_first_screen_and_the_heads_below_can_be_folded(visitor):
    page = opened(visitor, "compare", view="Masks and heads")
    boxes = [page.locator(".cmp-map").nth(n).bounding_box() for n in range(2)]
    assert boxes[0]["y"] == boxes[1]["y"]
    assert max(box["y"] + box["height"] for box in boxes) <= 900
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight") < 2400
    heads = page.locator(".cmp-heads")
    tops = {round(heads.nth(n).bounding_box()["y"]) for n in range(4)}
    assert len(tops) == 1
    assert len({heads.nth(n).evaluate("grid => grid.height") for n in range(4)}) == 1  # their letters are one size
    page.locator(".cmp-fold summary").click()
    expect(heads.first).not_to_be_visible()


def test_a_phone_begins_with_the_heads_folded(new_visitor):
    page = opened(new_visitor(width=390, height=844), "compare", view="Masks and heads")
    expect(page.locator(".cmp-map").first).to_be_visible()
    expect(page.locator(".cmp-heads").first).not_to_be_visible()
    page.locator(".cmp-fold summary").click()
    expect(page.locator(".cmp-heads").first).to_be_visible()


@pytest.mark.parametrize("width", quick_are(1, [1024, 1440]))
def test_three_readers_stand_side_by_side(new_visitor, width):
    page = opened(new_visitor(width=width, height=768), "compare")
    cards = page.locator(".cmp-card")
    expect(cards).to_have_count(3)
    assert len({round(cards.nth(n).bounding_box()["y"]) for n in range(3)}) == 1


def test_an_old_projector_shows_whole_buttons_bars_and_squares(new_visitor):
    visitor = new_visitor(width=1024, height=768)
    page = visitor.open("pretrain")
    for name in ("Play", "One step", "Reset"):
        label = page.get_by_role("button", name=name, exact=True).locator("p")
        assert label.evaluate("one => one.scrollWidth <= one.clientWidth"), name
    assert page.locator(".film-track").first.bounding_box()["width"] > 60
    page = visitor.open("meaning", view="Sentences")
    box = page.locator(".st-key-f_meaning_mean .js-plotly-plot").bounding_box()
    assert 0.6 < box["width"] / box["height"] < 1.7
    page = visitor.open("cls")
    switch = page.get_by_role("radiogroup", name="View")
    assert switch.evaluate("one => one.scrollWidth <= one.clientWidth + 1")


def test_a_low_projector_shows_the_picture_in_presenter_mode(new_visitor):
    """1280 x 720: controls had taken all of it but the upper edge of the cards."""
    visitor = new_visitor(width=1280, height=720)
    page = visitor.open("compare", present=1)
    expect(page.get_by_text("rank 1", exact=False).first).to_be_in_viewport()
    page = visitor.open("meaning", present=1)
    assert page.locator(".js-plotly-plot .gridlayer").first.bounding_box()["y"] < 0.75 * 720
    expect(page.get_by_label("Sentence", exact=True)).to_be_visible()


def test_a_low_projector_gets_lower_charts(new_visitor):
    """The browser says that it is low, and when it no longer is."""
    visitor = new_visitor(width=1280, height=720)
    page = visitor.open("meaning", view="Map", present=1)
    plot = page.locator(".st-key-f_meaning_map .js-plotly-plot").last  # the lower one comes beside the one it follows
    expect(plot.locator(".main-svg").first).to_have_css("height", "460px")
    assert plot.bounding_box()["y"] < 0.55 * 720
    page.set_viewport_size({"width": 1280, "height": 1000})
    expect(plot.locator(".main-svg").first).not_to_have_css("height", "460px")
    assert plot.bounding_box()["height"] > 560


@pytest.mark.parametrize(("width", "height"), quick_are(1, [(390, 844), (844, 390)]))
def test_a_phone_always_shows_model_and_device_on_one_line(new_visitor, width, height):
    page = new_visitor(width=width, height=height).open("masking")
    line = page.locator(".bw-status > span")
    expect(line).to_be_in_viewport()
    expect(line).to_have_text(re.compile("^twin-bert · CPU, float32 · "))
    assert line.bounding_box()["height"] < 30
    assert "float32" in line.evaluate("""line => {
      const range = document.createRange(), right = line.getBoundingClientRect().right;
      range.setStart(line.firstChild, 0);
      for (let end = line.textContent.length; ; end -= 1) {
        range.setEnd(line.firstChild, end);
        if (range.getBoundingClientRect().right <= right) return range.toString();
      } }""")


@pytest.mark.parametrize(("name", "view", "words"), [
    ("class", "Present", "Presenter mode: larger type, pages turned by keyboard"),
    ("attention", "Act", "Undo all changes"),
])
def test_an_old_projector_shows_the_whole_name_of_a_control(new_visitor, name, view, words):
    page = new_visitor(width=1024, height=768).open(name, view=view)
    label = page.get_by_test_id("stMain").locator("p").filter(has_text=words)
    assert label.evaluate("one => one.scrollWidth <= one.clientWidth")


def test_pink_is_for_what_is_hidden(visitor):
    page = opened(visitor, "tokens")
    looked_at = page.locator(".bw-on").first.evaluate("one => getComputedStyle(one).borderColor")
    page = opened(visitor, "compare")
    hidden = page.locator(".bw-on").first.evaluate("one => getComputedStyle(one).borderColor")
    assert looked_at != hidden
    assert hidden == "rgb(184, 86, 143)"  # --bw-mask


#: Whether what has the focus, or what holds it, is framed.
FRAMED = """() => {
  const framed = (one) => { const style = getComputedStyle(one);
    return (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2) || style.boxShadow !== 'none'; };
  const one = document.activeElement;
  return [one, one.parentElement].some(framed);
}"""


@pytest.mark.parametrize("scheme", quick_are(1, ["dark", "light"]))
def test_links_and_fields_are_framed_while_the_keyboard_is_there(new_visitor, scheme):
    page = opened(new_visitor(scheme=scheme), "cls")
    page.get_by_role("link", name="Masking", exact=True).focus()
    page.keyboard.press("Tab")
    holds(page, lambda: page.evaluate(FRAMED))
    model = page.get_by_role("combobox", name="Model of this picture")
    for field in (page.get_by_label("Sentence", exact=True), model):
        field.focus()
        holds(page, lambda: page.evaluate(FRAMED))

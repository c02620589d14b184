"""The main path by keyboard alone, from the sentence to three readers, with the focus in sight at every stop."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import JSHandle, Page, expect

from bert_core import TraceRequest, load_engine
from tests.browser.waiting import becomes, holds, settle
from tests.cases import quick_are
from ui.views import masking

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

TEXT = "The old dog chased my cat."
#: Stops of the Tab key that a page may have before one is given up.
MOST_STOPS = 90
#: What has the focus, in the shadow of a component too.
FOCUSED = """() => {
  let one = document.activeElement;
  while (one?.shadowRoot?.activeElement) one = one.shadowRoot.activeElement;
  return one;
}"""
#: A stop in words: role or tag, and name.
STOP = """one => `${one.getAttribute('role') ?? one.tagName.toLowerCase()} ${one.className} `
  + `${one.getAttribute('aria-label') ?? one.textContent}`.trim().slice(0, 200)"""


def focused(page: Page) -> JSHandle:
    return page.evaluate_handle(FOCUSED)


def stop(page: Page) -> str:
    return focused(page).evaluate(STOP)


def tab_to(page: Page, name: str, key: str = "Tab") -> None:
    """Press a key until a stop matches the pattern `name`, and check that one sees where the focus is.

    Raises:
        AssertionError: with the stops that were met, if none of them matches.
    """
    met = []
    for _ in range(MOST_STOPS):
        page.keyboard.press(key)
        met.append(stop(page))
        if re.search(name, met[-1]):
            check_focus_shows(page)
            return
    raise AssertionError(f"no stop {name!r} among {met}")


def check_focus_shows(page: Page) -> None:
    """Compare the place with and without the focus, pixel by pixel."""
    one = focused(page).as_element()
    one.scroll_into_view_if_needed()
    one.evaluate("one => one.blur()")
    bare = picture(page, one)
    one.evaluate("one => one.focus({ preventScroll: true })")
    holds(page, lambda: picture(page, one) != bare)


def picture(page: Page, one) -> bytes:
    """The element and what is close around it."""
    box = one.bounding_box()
    return page.screenshot(clip={"x": max(0, box["x"] - 8), "y": max(0, box["y"] - 8),
                                 "width": box["width"] + 16, "height": box["height"] + 16})


def go_by_keyboard(visitor, title: str) -> None:
    """Go back to the link of a page, and follow it."""
    tab_to(visitor.page, f"^a .*{re.escape(title)}$", "Shift+Tab")
    run = visitor.run_number()
    visitor.page.keyboard.press("Enter")
    visitor.after(run)
    visitor.in_sentence(TEXT)


def choose_chip(visitor, token: str) -> None:
    """From the first chip to the one of a token, and choose it."""
    page = visitor.page
    for _ in range(MOST_STOPS):
        if stop(page).split(" ", 1)[1].partition(", position")[0].endswith(f" {token}"):
            break
        page.keyboard.press("ArrowRight")
    check_focus_shows(page)
    run = visitor.run_number()
    page.keyboard.press("Enter")
    visitor.after(run)


def first_guess(text: str, position: int) -> str:
    """The word piece that the model puts there first."""
    engine = load_engine()
    logits = engine.run(TraceRequest(text, masked=(position,), parts=("mlm_logits",))).mlm_logits[0]
    return engine.loaded().tokenizer.token_of(int(logits.argmax()))


def test_the_main_path_without_a_mouse(visitor):
    page = visitor.open("tokens")
    tab_to(page, "^input .*Sentence$")
    page.keyboard.press("Control+a")
    page.keyboard.type(TEXT)
    visitor.wait_ready(TEXT)

    go_by_keyboard(visitor, "Masking")
    tab_to(page, "^option ")
    choose_chip(visitor, "dog")
    expect(page.locator(".bw-card-title")).to_contain_text("“dog” is hidden")
    becomes(page, lambda: page.locator(".bw-guess .bw-piece").first.inner_text(), first_guess(TEXT, 3))

    go_by_keyboard(visitor, "Attention")
    root = page.locator(".att-root")
    expect(root).to_have_attribute("data-exact", "true")
    layer, head = (int(root.get_attribute(f"data-{name}")) for name in ("layer", "head"))
    last = load_engine().loaded().config.num_attention_heads
    across, next_head = ("ArrowRight", head + 1) if head < last else ("ArrowLeft", head - 1)
    along, next_layer = ("ArrowUp", layer - 1) if layer > 1 else ("ArrowDown", layer + 1)
    tab_to(page, "att-grid")
    for key in (across, along, "Enter"):
        page.keyboard.press(key)
    expect(root).to_have_attribute("data-head", str(next_head))
    expect(root).to_have_attribute("data-layer", str(next_layer))
    visitor.in_address(f"head={next_head}")

    go_by_keyboard(visitor, "One way, both ways")
    tab_to(page, "^option ")
    choose_chip(visitor, "cat")
    expect(page.locator(".cmp-of").first).to_contain_text("“cat”")
    expect(page.locator(".cmp-card")).to_have_count(3)
    visitor.in_address("at=6")
    visitor.no_traceback()


@pytest.mark.parametrize(("page", "query", "one"), quick_are(1, [
    ("attention", {"view": "Roles"}, ".roles-root button"), ("tasks", {"view": "Entities"}, ".bw-word"),
    ("cls", {}, ".bw-column"), ("embeddings", {"view": "Positions"}, ".bw-panels [tabindex]"),
]))
def test_the_focus_stays_where_it_is_when_the_page_turns_dark_or_narrow(visitor, page, query, one):
    visitor.open(page, **query)
    places = visitor.page.locator(one)
    places.nth(min(2, places.count() - 1)).focus()
    before = stop(visitor.page)
    visitor.page.emulate_media(color_scheme="dark")
    becomes(visitor.page, visitor.page.locator("[data-theme=light]").count, 0)
    assert stop(visitor.page) == before
    visitor.page.set_viewport_size({"width": 900, "height": 800})
    settle(visitor.page)
    assert stop(visitor.page) == before


@pytest.mark.parametrize("name", quick_are(1, ["pretrain", "finetune"]))
def test_a_page_with_a_sentence_of_its_own_keeps_the_shared_one_within_reach(visitor, name):
    page = visitor.open(name)
    field = page.get_by_label("Sentence", exact=True)
    row = page.locator('[data-testid="stLayoutWrapper"]:has(> [data-testid="stHorizontalBlock"] > * .st-key-text)')
    assert row.evaluate("one => one.getBoundingClientRect().height") <= 1
    tab_to(page, "^input .*Sentence$")
    assert row.evaluate("one => one.getBoundingClientRect().height") > 40
    field.fill(TEXT)
    visitor.wait_ready(TEXT)
    visitor.fits()


def test_a_head_switched_off_is_told_to_who_cannot_see_the_cross(visitor):
    page = visitor.open("attention", text="Paris is the [MASK] of France.", view="Act", layer=3, head=1)
    grid, off, said = (page.locator(one) for one in ("canvas.att-grid", ".att-off", ".effect-said"))
    expect(off).to_have_text("No head is switched off.")
    page.locator(".att-gridtable summary").click()
    grid.focus()
    grid.press("ArrowRight")
    run = visitor.run_number()
    grid.press(" ")
    expect(grid).to_have_attribute("aria-valuetext", "layer 3, head 2, switched off")
    expect(off).to_have_text("Switched off: layer 3, head 2.")
    visitor.after(run)
    expect(said).to_have_attribute("role", "status")
    moved = page.locator(".effect-moved").first.inner_text()
    expect(said).to_contain_text(f"The gap at position 4: {moved}")
    rows = page.locator(".att-gridtable tbody tr")
    assert rows.evaluate_all("""rows => rows.map((row) => [...row.cells].slice(0, 2).map((cell) => cell.textContent))
      .filter(([, off]) => off === "yes")""") == [["3-2", "yes"]]
    for _ in range(2):
        grid.press("ArrowLeft")
    grid.press(" ")
    expect(grid).to_have_attribute("aria-valuetext", "layer 3, all its heads, switched off")
    expect(off).to_have_text("Switched off: layer 3, all its heads.")


def test_an_example_that_was_chosen_hands_the_focus_to_its_gap(visitor):
    page = visitor.open("masking", text="Nothing is hidden here.")
    example = page.get_by_role("button", name=masking.TO_TRY[1])
    example.focus()
    run = visitor.run_number()
    page.keyboard.press("Enter")
    visitor.after(run)
    visitor.wait_ready(masking.TO_TRY[1])
    expect(example).to_have_count(0)
    expect(page.locator(".bw-row .bw-mask")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".bw-row .bw-mask + .bw-chip")).to_be_focused()


@pytest.mark.parametrize(("page", "query", "one"), [
    ("masking", {"text": TEXT}, ".bw-row [tabindex='0']"), ("attention", {"text": TEXT}, "canvas.att-head"),
    ("compare", {"text": TEXT, "view": "Masks and heads"}, "canvas.cmp-heads"),
])
def test_alt_and_an_arrow_stay_the_browsers_way_back(visitor, page, query, one):
    visitor.open(page, **query)
    taken = visitor.page.locator(one).first.evaluate("""(one) => [true, false].map((altKey) =>
      !one.dispatchEvent(new KeyboardEvent(
        "keydown", { key: "ArrowRight", altKey, bubbles: true, cancelable: true })))""")
    assert taken == [False, True]


def test_of_maps_that_change_at_once_the_one_with_the_focus_is_read_out(visitor):
    page = visitor.open("compare", text=TEXT, view="Masks and heads")
    expect(page.locator(":is(.cmp-said, .cmp-share)[aria-live]")).to_have_count(0)
    gpt = page.get_by_role("region", name="GPT, left only", exact=True)
    picture, said = gpt.locator("canvas"), gpt.locator(".cmp-said")
    picture.focus()
    before = said.text_content()
    page.keyboard.press("ArrowUp")
    expect(said).not_to_have_text(before)
    assert picture.get_attribute("aria-valuetext") == said.text_content()
    run = visitor.run_number()
    heads = page.get_by_role("region", name="GPT, left only: looks right").locator("canvas")
    kept = heads.element_handle()
    heads.focus()
    page.keyboard.press("ArrowRight")
    visitor.after(run)
    expect(heads).to_have_attribute("aria-valuetext", re.compile(r"Layer \d+, head \d+: [<\d.]+\s% goes right"))
    assert kept.evaluate("one => one.isConnected && one.matches(':focus')")  # another would be told anew

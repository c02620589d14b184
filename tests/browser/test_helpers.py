"""What a browser does to a page by itself: it translates, corrects, composes letters, prints, forces colours.

Its translation changes what is explained, never a token, a number or a control.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.waiting import becomes
from tests.cases import quick_are

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

#: What Chrome's and Edge's do: each text gives way to two <font> with other words, now and whenever one is new; marked
#: elements are passed over with all that is in them. Firefox's goes into shadow roots, so this does.
TRANSLATE = """() => {
  const passed = (node) => {
    for (let at = node; at; at = at.parentElement ?? at.getRootNode().host)
      if (at.getAttribute("translate") === "no" || ["SCRIPT", "STYLE", "FONT"].includes(at.tagName)) return true;
    return false;
  };
  const swap = (text) => {
    const parent = text.parentElement ?? text.getRootNode().host;
    if (!parent || passed(parent) || !/[a-z]{2}/i.test(text.data)) return;
    const outer = document.createElement("font");
    outer.appendChild(document.createElement("font")).textContent = text.data.replace(/[a-z]+/gi, "$&ø");
    text.replaceWith(outer);
  };
  const watch = (root) => {
    if (root.__watched) return;
    root.__watched = true;
    new MutationObserver((changes) => changes.forEach((change) => change.addedNodes.forEach(walk)))
      .observe(root, { childList: true, subtree: true });
    walk(root);
  };
  const walk = (root) => {
    const found = [], seek = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    if (root.nodeType === Node.TEXT_NODE) found.push(root);
    while (seek.nextNode()) found.push(seek.currentNode);
    found.forEach(swap);
    for (const one of root.querySelectorAll?.("*") ?? []) if (one.shadowRoot) watch(one.shadowRoot);
  };
  watch(document.body);
}"""
#: Every text of the page that was translated, in shadow roots too, by what it stands in.
TRANSLATED = """() => {
  const found = [];
  const seek = (root) => { for (const one of root.querySelectorAll("*")) {
    if (one.shadowRoot) seek(one.shadowRoot);
    if (one.tagName === "FONT" && one.parentElement?.tagName !== "FONT") found.push(one.textContent);
  } };
  seek(document);
  return found;
}"""


def translated(visitor) -> str:
    """All that was translated, as one text."""
    return "\n".join(visitor.page.evaluate(TRANSLATED))


def test_only_what_is_explained_is_translated(visitor):
    page = visitor.open("masking", text="The dog [MASK] at the cat all night.", view="The head")
    texts = [page.locator(".bw-table tbody").inner_text(), page.locator("[data-testid=stSidebarNav]").inner_text(),
             page.locator(".st-key-view").inner_text()]
    page.evaluate(TRANSLATE)
    becomes(page, lambda: "Whatø goesø inø theø gapø?" in translated(visitor), True)
    becomes(page, lambda: "Howø toø readø itø" in translated(visitor), True)
    assert [page.locator(".bw-table tbody").inner_text(), page.locator("[data-testid=stSidebarNav]").inner_text(),
            page.locator(".st-key-view").inner_text()] == texts
    expect(page.locator(".bw-status")).to_contain_text("twin-bert")
    visitor.type("She poured the [MASK] into her cup.")
    expect(page.get_by_role("option", name="poured")).to_have_text("poured")
    said = translated(visitor)
    assert not [word for word in ("pouredø", "barkedø", "Sentenceø") if word in said]


@pytest.mark.parametrize(("page", "parameters"), quick_are(1, [
    ("attention", {"view": "All heads"}), ("masking", {"view": "Layer by layer"}), ("tasks", {"view": "Entities"}),
    ("family", {"view": "Side by side"}), ("tokens", {"view": "Step by step"}), ("compare", {"view": "Side by side"}),
    ("meaning", {"view": "Sentences"}), ("cls", {"view": "Answer"}), ("code", {"view": "Stages"}), ("class", {}),
]))
def test_a_translated_page_goes_on_working(visitor, page, parameters):
    """Typed into, and each of its views opened; a script that fails ends the test (conftest.py)."""
    visitor.open(page, text="The small dog barked.", **parameters)
    visitor.page.evaluate(TRANSLATE)
    if visitor.page.get_by_label("Sentence", exact=True).is_visible():
        visitor.type("The big dog barked at Zyxomma.")
    for view in visitor.page.locator(".st-key-view button").all():
        if view.get_attribute("data-selected") != "true":
            run = visitor.run_number()
            view.click()
            visitor.after(run)
    visitor.no_traceback()
    said = translated(visitor)
    assert "ø" in said
    assert "Zyxommaø" not in said


def test_what_is_explained_in_tables_and_lessons_is_offered(visitor):
    page = visitor.open("family", view="Relatives")
    page.evaluate(TRANSLATE)
    becomes(page, lambda: "Halfø theø layersø" in translated(visitor), True)
    visitor.open("class", view="Lessons")
    page.evaluate(TRANSLATE)
    becomes(page, lambda: "Howø manyø piecesø" in translated(visitor), True)


def test_nothing_typed_is_corrected_or_underlined(visitor):
    page = visitor.open("masking")
    for label in ("Sentence", "Second sentence"):
        field = page.get_by_label(label, exact=True)
        for name, value in (("spellcheck", "false"), ("autocorrect", "off"), ("autocapitalize", "off"),
                            ("autocomplete", "off")):
            expect(field).to_have_attribute(name, value)


def test_letters_that_are_still_being_composed_are_not_read(visitor):
    """Chinese, Japanese and Korean are typed in letters first, and chosen from what these may stand for."""
    page = visitor.open("tokens", text="tea ")
    page.get_by_label("Sentence", exact=True).focus()
    page.keyboard.press("End")
    keys, run = page.context.new_cdp_session(page), visitor.run_number()
    for letters in ("c", "ch", "cha"):
        keys.send("Input.imeSetComposition", {"text": letters, "selectionStart": len(letters),
                                              "selectionEnd": len(letters)})
        page.wait_for_timeout(300)  # longer than the pause after which a sentence is sent
        visitor.in_sentence("tea " + letters)
    assert (visitor.run_number(), visitor.text_drawn()) == (run, "tea ")
    keys.send("Input.insertText", {"text": "茶"})
    visitor.wait_ready("tea 茶")
    visitor.in_sentence("tea 茶")


#: What a printed page looks like at the moment of printing; `beforeprint` of the page itself was heard before this.
NOTE_PAPER = """() => addEventListener("beforeprint", () => {
  const host = [...document.querySelectorAll("[data-testid^=stBidiComponent]")].find((one) => one.shadowRoot);
  const chart = document.querySelector("[data-testid=stPlotlyChart]");
  window.__paper = { page: getComputedStyle(document.querySelector(".stApp")).backgroundColor,
                     theme: host.dataset.theme, chart: chart?.querySelector("svg").getBoundingClientRect().width };
})"""
WHITE = "rgb(255, 255, 255)"


def test_what_is_printed_from_the_dark_theme_is_not_black(new_visitor):
    visitor = new_visitor(scheme="dark")
    page = visitor.open("compare", view="Surprise")
    expect(page.locator("[data-testid=stPlotlyChart] svg").first).to_be_visible()
    page.evaluate(NOTE_PAPER)
    host = page.locator("[data-theme]").first
    expect(host).to_have_attribute("data-theme", "dark")
    assert page.pdf(format="A4").startswith(b"%PDF")
    paper = page.evaluate("window.__paper")
    assert (paper["page"], paper["theme"]) == (WHITE, "light")
    assert paper["chart"] <= 701, "a chart is cut off at the paper's edge"
    expect(host).to_have_attribute("data-theme", "dark")  # and on screen it is as it was
    assert page.locator("[style*=zoom]").count() == 0
    assert page.evaluate("getComputedStyle(document.querySelector('.stApp')).backgroundColor") != WHITE


#: Fills of the treemap, and whether each name in it is black on light or white on dark.
RECTANGLES = """() => [...document.querySelectorAll(".treemaplayer .slice")].map((slice) =>
  [slice.querySelector(".surface").style.fill, slice.querySelector("text")?.style.fill])"""


def test_a_charts_colours_are_those_of_its_legend_on_paper_too(new_visitor):
    page = new_visitor(scheme="dark").open("family")
    expect(page.locator(".treemaplayer .slice").first).to_be_visible()
    before = page.evaluate(RECTANGLES)
    page.evaluate(f"""() => addEventListener("beforeprint", () => {{
        window.__printed = ({RECTANGLES})();
        const kinds = [...document.querySelectorAll(".bw-kinds i")];
        window.__named = kinds.map((one) => getComputedStyle(one).backgroundColor);
    }})""")
    page.pdf(format="A4")
    printed, named = page.evaluate("[window.__printed, window.__named]")
    fills = {fill for fill, _ in printed}
    assert len(fills) > 3
    assert fills - {"rgb(95, 101, 112)"} <= set(named)
    assert dict(printed)["rgb(0, 114, 178)"] == "rgb(255, 255, 255)"
    becomes(page, lambda: page.evaluate(RECTANGLES), before)


def test_the_light_theme_is_printed_as_it_is(visitor):
    page = visitor.open("masking")
    page.evaluate(NOTE_PAPER)
    before = page.evaluate("getComputedStyle(document.querySelector('.stApp')).backgroundColor")
    page.pdf(format="A4")
    assert page.evaluate("window.__paper.page") == before
    assert not page.evaluate("document.documentElement.hasAttribute('data-printing')")


def test_high_contrast_takes_no_number_and_no_choice_away(visitor):
    page = visitor.open("masking", text="The dog [MASK] at the cat all night.")
    page.emulate_media(forced_colors="active")
    colour = "one => getComputedStyle(one).backgroundColor"
    views = page.locator(".st-key-view button")
    chosen = {view.evaluate(colour) for view in views.all() if view.get_attribute("data-selected") == "true"}
    others = {view.evaluate(colour) for view in views.all() if view.get_attribute("data-selected") != "true"}
    assert not chosen & others
    bar = page.locator(".bw-bar").first
    expect(bar).to_have_css("forced-color-adjust", "none")
    assert bar.evaluate(colour) not in ("rgba(0, 0, 0, 0)", WHITE)


@pytest.mark.parametrize(("name", "view"), quick_are(1, [
    ("attention", "All heads"), ("family", "Wrong claims"), ("attention", "Act"), ("masking", "The head"),
    ("compare", "Side by side"),
]))
def test_a_page_four_times_as_large_does_not_scroll_sideways(new_visitor, name, view):
    """A window of 1280 pixels at 400 %, or a small phone: 320 pixels (WCAG 2.2, 1.4.10)."""
    visitor = new_visitor(width=320, height=640)
    visitor.open(name, text="She poured the [MASK] into her cup.", view=view)
    visitor.fits()


#: The distances of WCAG 2.2, 1.4.12.
FURTHER_APART = ("* { line-height: 1.5 !important; letter-spacing: .12em !important; word-spacing: .16em !important } "
                 "p { margin-bottom: 2em !important }")
#: The same within components.
APART_WITHIN = """style => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(style);
  for (const { shadowRoot } of document.querySelectorAll("*")) shadowRoot?.adoptedStyleSheets.push(sheet);
}"""


def test_a_page_with_its_letters_and_paragraphs_further_apart_cuts_no_name_off(visitor):
    page = visitor.open("masking", text="She poured the [MASK] into her cup.")
    page.add_style_tag(content=FURTHER_APART)
    for button in page.locator(".st-key-view button").all():
        around, name = button.bounding_box(), button.locator("p").bounding_box()
        assert around["y"] <= name["y"]
        assert name["y"] + name["height"] <= around["y"] + around["height"]
    visitor.fits()


@pytest.mark.parametrize("width", quick_are(1, [640, 800]))
def test_a_narrow_page_with_its_letters_further_apart_does_not_scroll_sideways(new_visitor, width):
    visitor = new_visitor(width=width, height=800)
    page = visitor.open("masking", view="80/10/10")
    page.add_style_tag(content=FURTHER_APART)
    page.evaluate(APART_WITHIN, FURTHER_APART)
    page.wait_for_timeout(300)
    main = page.get_by_test_id("stMain")
    assert main.evaluate("one => one.scrollWidth <= one.clientWidth")

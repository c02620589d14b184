"""The Code page: the difference to transformers, live; the walk by keyboard; the script."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.test_axe import violations
from tests.browser.waiting import becomes, holds

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]


def differences(page) -> list[float]:
    """The column of differences."""
    cells = page.locator(".bw-table tbody tr td:nth-child(2)").all_inner_texts()
    return [float(cell.replace("−", "-")) for cell in cells if re.fullmatch(r"0|\d\.\de[+−]\d\d", cell)]


def test_every_stage_agrees_with_transformers_on_the_typed_sentence(visitor):
    page = visitor.open("code", text="The [MASK] barked all night.", layer=3)
    holds(page, lambda: len(differences(page)) == 8 and max(differences(page)) < 1e-5)
    visitor.type("Another sentence, typed [MASK].")
    holds(page, lambda: len(differences(page)) == 8 and max(differences(page)) < 1e-5)
    page = visitor.open("code", stage="Pooler")
    page.get_by_text("class BertPooler", exact=False).or_(page.get_by_text("BertPooler.forward")).first.wait_for()
    page.get_by_text("def pooled_output").first.wait_for()
    visitor.no_traceback()


def test_the_stages_have_no_violation_and_their_printed_page_says_where_the_slider_stood(new_visitor):
    """What test_axe.py and test_look.py ask of other pages; here transformers is there already."""
    page = (visitor := new_visitor(scheme="dark")).open("code", view="Stages", layer="4")
    becomes(page, lambda: violations(page), [])
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    expect(page.locator(".bw-status .bw-fields")).to_have_text("Layer: 4")
    visitor.no_traceback()


def test_walk_by_keyboard(new_visitor):
    visitor = new_visitor(scheme="dark")
    page = visitor.open("code", view="Walk", text="the dog slept")
    expect(page.locator(".bw-figure-number")).to_contain_text("token: 1 × 5 × 384")
    run = visitor.run_number()
    page.get_by_role("slider", name="Line").press("ArrowRight")
    visitor.after(run)
    expect(page.locator(".bw-figure-number")).to_contain_text("position: 1 × 5 × 384")
    visitor.in_address("line=2")
    run = visitor.run_number()
    page.get_by_role("radio", name="4 Feed-forward").click()
    visitor.after(run)
    expect(page.locator(".bw-figure-number")).to_contain_text("wide: 1 × 5 × 1536")
    expect(page.get_by_role("radio", name="4 Feed-forward")).to_be_checked()
    visitor.in_address("line=18")


def test_script_stands_beside_what_it_prints(new_visitor):
    visitor = new_visitor(width=390)
    page = visitor.open("code", view="Script", text="the [MASK] slept")
    blocks = page.locator("[data-testid=stCode]")
    expect(blocks.first).to_contain_text("load_model('twin-bert')")
    expect(blocks.nth(1)).to_contain_text(re.compile(r'position 2: \{"\w+": 0\.\d+'))
    page.get_by_role("button", name="Download sentence.py").wait_for()
    visitor.open("code", view="Script", model="twin-rtl", text="the dog")
    page.get_by_text("take the short script").wait_for()
    visitor.no_traceback()


#: The least contrast of a coloured word of code with what is behind it (WCAG 2, 1.4.3), and that word.
FAINTEST = """() => {
  const pen = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d");
  const light = (colour) => {
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...pen.getImageData(0, 0, 1, 1).data].map((c) => c / 255)
      .map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const found = [...document.querySelectorAll("[data-testid=stCode] .token")].map((token) => {
    let behind = token;
    while (/, 0\\)$|transparent/.test(getComputedStyle(behind).backgroundColor)) behind = behind.parentElement;
    const [a, b] = [getComputedStyle(token).color, getComputedStyle(behind).backgroundColor].map(light);
    return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), token.textContent.slice(0, 40)];
  });
  return found.sort((one, other) => one[0] - other[0])[0];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_word_of_code_can_be_read(new_visitor, scheme):
    page = new_visitor(scheme=scheme).open("code", view="Script")
    page.locator("[data-testid=stCode] .token.operator").first.wait_for()
    contrast, word = page.evaluate(FAINTEST)
    assert contrast >= 4.5, word

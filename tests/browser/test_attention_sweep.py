"""Which head matters: the grid shows the engine's numbers, is read by keyboard, and switches heads off."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from playwright.sync_api import expect

from bert_core.measures.ablation import masked_moves
from bert_core.serving.local import LocalEngine
from bert_core.trace import TraceRequest
from tests.browser.test_axe import violations
from tests.browser.waiting import PATIENCE, becomes, holds
from tests.cases import quick_are

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

TEXT = "Paris is the [MASK] of France."
GRID, CELL = ".fx-grid", ".fx-cell[data-cell='{}']"


@pytest.fixture(scope="module")
def engine() -> LocalEngine:
    return LocalEngine("twin-bert")


@pytest.fixture(scope="module")
def effects(engine) -> np.ndarray:
    """(6, 12) KL of the answer without each head alone."""
    asked = TraceRequest(TEXT, model="twin-bert", parts=("mlm_positions", "mlm_logits"))
    off = [replace(asked, heads_off=((layer, head),)) for layer in range(6) for head in range(12)]
    whole, *without = engine.run_many([asked, *off])
    tokenizer = engine.loaded("twin-bert").tokenizer
    return np.array([masked_moves(whole, one, tokenizer)[0].divergence for one in without]).reshape(6, 12)


def test_the_switch_draws_every_head_and_the_table_ranks_them(visitor, effects):
    page = visitor.open("attention", text=TEXT, view="Act")
    expect(page.locator(GRID)).to_have_count(0)
    page.locator("[data-testid=stCheckbox]", has_text="Which head matters?").click()
    expect(page.locator(".fx-cell")).to_have_count(72, timeout=PATIENCE)
    visitor.in_address("sweep=true")
    becomes(page, lambda: page.locator(".fx-cell").all_text_contents(), [f"{value:.2f}" for value in effects.ravel()])
    page.locator(".fx-box summary").click()
    rows = page.locator(".fx-box tbody tr")
    order = np.argsort(-effects.ravel(), kind="stable")[:3]
    becomes(page, lambda: rows.locator("th").all_text_contents()[:3], [f"{n // 12 + 1}, {n % 12 + 1}" for n in order])
    becomes(page, lambda: [float(text) for text in rows.locator("td:nth-child(2)").all_text_contents()[:3]],
            [pytest.approx(float(effects.flat[n]), abs=1e-4) for n in order])
    visitor.no_traceback()


def test_keys_read_a_head_and_switch_it_off_in_the_view(visitor, effects):
    page = visitor.open("attention", text=TEXT, view="Act", sweep="true")
    best = int(effects.argmax())
    expect(page.locator(f"{GRID} [tabindex='0']")).to_have_attribute("data-cell", str(best), timeout=PATIENCE)
    page.locator(CELL.format(best)).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    layer, head = best // 12 + 1, best % 12 + 1
    expect(page.locator(".fx-says")).to_contain_text(f"Layer {layer + 1}, head {head + 1}:", timeout=PATIENCE)
    run = visitor.run_number()
    page.keyboard.press(" ")
    visitor.after(run)
    visitor.in_address(f"off={layer + 1}-{head + 1}")
    shown = page.locator(".effect-moved").first
    holds(page, lambda: float(shown.inner_text().split()[2]) == pytest.approx(effects[layer, head], rel=1e-2, abs=1e-4))
    expect(page.locator(f"{GRID} [aria-selected=true]")).to_have_count(1)
    holds(page, lambda: page.evaluate(
        "() => document.querySelector('.st-key-c_head_effects [data-testid^=stBidiComponent]')"
        ".shadowRoot.activeElement?.getAttribute('aria-selected')") == "true")
    page.keyboard.press(" ")
    holds(page, lambda: "off=" not in page.url)


@pytest.mark.parametrize(("width", "scheme"), quick_are(1, [
    (390, "dark"), (1440, "light"), (390, "light"), (1440, "dark")]))
def test_clicks_add_heads_on_any_screen(new_visitor, width, scheme):
    visitor = new_visitor(width=width, scheme=scheme)
    page = visitor.open("attention", text=TEXT, view="Act", sweep="true")
    for cell in (14, 40):
        page.locator(CELL.format(cell)).click()
    visitor.in_address("off=2-3%2C4-5")
    expect(page.locator(f"{GRID} [aria-selected=true]")).to_have_count(2, timeout=PATIENCE)
    expect(page.locator("body")).to_contain_text("The 2 heads that are off move the answer by", timeout=PATIENCE)
    visitor.fits()
    visitor.no_traceback()
    becomes(page, lambda: violations(page), [])

"""What the attention component shows is what the Trace says, in both themes, wide and narrow, offline."""

from __future__ import annotations

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from bert_core import TraceRequest, load_engine
from bert_core.measures.attention import MapOptions, shown_map
from bert_core.trace import Trace
from ui.views.attention_export import standalone

pytestmark = pytest.mark.browser

#: Milliseconds that a picture may take on a busy two-core machine.
PATIENCE = 60_000
LISTED = "all => all.map(line => [Number(line.dataset.position), Number(line.dataset.weight)])"
TEXT, PAIR = "The unbelievably old dog chased my cat.", "She fed it."


@pytest.fixture(scope="module")
def engine():
    return load_engine("twin-bert")


@pytest.fixture(scope="module")
def trace(engine) -> Trace:
    return engine.run(TraceRequest(TEXT, PAIR))


def shown_table(page: Page, box: str = ".att-headtable") -> tuple[list[str], np.ndarray]:
    """The table under a picture: row names and numbers."""
    page.locator(f"{box} summary").evaluate("node => { node.parentElement.open = true; }")
    rows = page.locator(f"{box} tbody tr")
    expect(rows.first).to_be_attached(timeout=PATIENCE)
    cells = rows.evaluate_all("rows => rows.map(row => [...row.cells].map(cell => cell.textContent))")
    return [row[0] for row in cells], np.array([[float(cell) for cell in row[1:]] for row in cells])


def wait_for(page: Page, **data: object) -> None:
    """Until the component says so in its data attributes."""
    for key, value in data.items():
        expect(page.locator(".att-root")).to_have_attribute(f"data-{key}", str(value), timeout=PATIENCE)


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark"), (390, "light"), (1440, "dark")])
def test_the_table_of_the_open_head_is_the_trace(new_visitor, trace, width, scheme):
    visitor = new_visitor(width=width, scheme=scheme)
    page = visitor.open("attention", text=TEXT, pair=PAIR, layer=3, head=9, look="map")
    wait_for(page, layer=3, head=9, exact="true")
    names, numbers = shown_table(page)
    assert names == list(trace.tokens)
    assert np.abs(numbers - trace.attention_probs[2, 8]).max() < 1e-4
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    visitor.no_traceback()


def test_options_of_the_picture_are_those_of_the_measure(visitor, trace):
    page = visitor.open("attention", text=TEXT, pair=PAIR, layer=2, head=9, look="map.words.renormalise.aa.t5.n2")
    wait_for(page, layer=2, exact="true")
    names, numbers = shown_table(page)
    options = MapOptions(words=True, specials="renormalise", segments="aa", threshold=0.05, top=2)
    labels, weights = shown_map(trace, trace.attention_probs[1, 8], options)
    assert names == labels
    assert np.abs(numbers - weights).max() < 1e-4


def test_pointing_at_a_token_lists_its_weights_both_ways(visitor, trace):
    page = visitor.open("attention", text=TEXT, pair=PAIR, layer=3, head=9, look="lines")
    box = page.locator("canvas.att-head").bounding_box()
    page.mouse.move(box["x"] + 0.1 * box["width"], box["y"] + 26 + 25 * 7.5)  # row 7: old
    said = page.locator(".att-says")
    expect(said).to_contain_text(f"“{trace.tokens[7]}”, position 7", timeout=PATIENCE)
    one = trace.attention_probs[2, 8]
    for side, values in (("from", one[7]), ("to", one[:, 7])):
        shown = page.locator(f".att-{side} li").evaluate_all(LISTED)
        expected = np.argsort(-values, kind="stable")[:6]
        assert [i for i, _ in shown] == expected.tolist()
        assert np.abs(np.array([p for _, p in shown]) - values[expected]).max() < 1e-4


def test_keys_open_heads_and_the_address_restores_them(visitor):
    page = visitor.open("attention", text=TEXT, layer=2, head=3)
    page.locator("canvas.att-grid").focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    wait_for(page, layer=3, head=5)
    page.wait_for_url("**layer=3**")
    page.wait_for_url("**head=5**")
    page.reload()
    visitor.wait_ready(TEXT)
    wait_for(page, layer=3, head=5)
    page.locator("canvas.att-head").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".att-says")).to_contain_text("position 1, pinned", timeout=PATIENCE)


def test_a_head_switched_off_moves_the_answer_as_the_engine_says(visitor, engine):
    text = "Paris is the [MASK] of France."
    page = visitor.open("attention", text=text, view="Act", layer=3, head=1)
    run = visitor.run_number()
    page.locator("canvas.att-grid").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press(" ")
    visitor.after(run)
    page.wait_for_url("**off=3-2**")
    expect(page.locator(".effect-moved").first).to_contain_text("moved by", timeout=PATIENCE)
    shown = page.locator(".effect-block").first.locator("tbody tr").evaluate_all(
        "rows => rows.map(row => [row.cells[0].textContent, +row.cells[1].dataset.value, +row.cells[2].dataset.value])")
    loaded = engine.loaded("twin-bert")
    for column, off in ((1, ()), (2, ((2, 1),))):
        logits = engine.run(TraceRequest(text, heads_off=off)).mlm_logits[0].astype(np.float64)
        chances = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
        for row in shown:
            assert row[column] == pytest.approx(chances[loaded.tokenizer.id_of(row[0])], rel=1e-3)


def test_the_steps_are_the_trace_s_numbers(visitor, trace):
    page = visitor.open("attention", text=TEXT, pair=PAIR, view="Step by step", layer=3, head=9, token=7, step=4)
    cells = page.locator(".steps-table tbody tr")
    expect(cells.first).to_be_visible(timeout=PATIENCE)
    for field, values in (("scores", trace.attention_scores[2, 8, 7]), ("weights", trace.attention_probs[2, 8, 7])):
        shown = page.locator(f".steps-table td[data-field={field}]").all_text_contents()
        assert np.allclose([float(text) for text in shown], values, rtol=6e-3, atol=6e-4)
    page.get_by_role("button", name="6 project").click()
    expect(page.locator(".steps-norms li")).to_have_count(12, timeout=PATIENCE)


def test_512_tokens_open_exactly_on_demand(visitor, engine):
    text = " ".join(["The old dog chased my cat into the garden ."] * 60)
    page = visitor.open("attention", text=text, layer=2, head=1)
    wait_for(page, layer=2, exact="true")
    page.locator(".att-layer input").fill("5")
    wait_for(page, layer=5, exact="true")
    _, numbers = shown_table(page)
    probs = engine.run(TraceRequest(text, parts=("attention_probs",))).attention_probs
    assert numbers.shape == (512, 3)
    assert np.abs(numbers[:, 1] - probs[4, 0, 0]).max() < 1e-4
    assert np.abs(numbers[:, 2] - probs[4, 0, :, 0]).max() < 1e-4
    visitor.no_traceback()


@pytest.mark.parametrize("view", ["Head view", "Model view", "Neuron view"])
def test_bertviz_draws_with_no_network(visitor, view):
    page = visitor.open("attention", text=TEXT, view="bertviz", bertviz=view)
    frame = page.frame_locator("iframe")
    expect(frame.locator("#bertviz-view svg").first).to_be_visible(timeout=PATIENCE)
    assert frame.locator("#bertviz-view svg line, #bertviz-view svg rect").count() > 100


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_saved_page_opens_from_disk_with_the_same_numbers(browser, trace, tmp_path, scheme):
    file = tmp_path / "attention.html"
    file.write_text(standalone(trace, 2, 8, "map"), encoding="utf-8")
    context = browser.new_context(offline=True, color_scheme=scheme)
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: wrong.append(request.url))
    page.goto(file.as_uri())
    wait_for(page, layer=3, head=9, exact="true")
    names, numbers = shown_table(page)
    assert names == list(trace.tokens)
    assert np.abs(numbers - trace.attention_probs[2, 8]).max() < 1e-4
    assert [url for url in wrong if not url.startswith(("file:", "data:"))] == []
    context.close()


@pytest.mark.parametrize("kind", ["PNG", "SVG"])
def test_the_picture_can_be_saved(visitor, trace, kind):
    page = visitor.open("attention", text=TEXT, layer=3, head=9, look="lines")
    with page.expect_download() as download:
        page.get_by_role("button", name=f"Save as {kind}").click()
    data = download.value.path().read_bytes()
    assert download.value.suggested_filename == f"attention-layer3-head9.{kind.lower()}"
    assert data.startswith(b"\x89PNG" if kind == "PNG" else b"<svg")
    if kind == "SVG":
        assert data.count(b"<path") > 50
        assert b"chased" in data

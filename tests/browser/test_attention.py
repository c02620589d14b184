"""What the attention component shows is what the Trace says, in both themes, wide and narrow, offline."""

from __future__ import annotations

import re

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from bert_core import TraceRequest, load_engine
from bert_core.facts import read_facts
from bert_core.figures.attention import heads_payload
from bert_core.figures.masking import percent
from bert_core.measures.attention import MapOptions, shown_map
from bert_core.measures.head_places import KINDS, head_places
from bert_core.trace import Trace
from tests.browser.alone import Alone
from tests.browser.test_rooms import go_to, open_room
from tests.browser.waiting import PATIENCE, becomes, holds
from tests.cases import quick_are
from ui import components
from ui.views.attention_export import standalone

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

LISTED = "all => all.map(line => [Number(line.dataset.position), Number(line.dataset.weight)])"
TEXT, PAIR = "The unbelievably old dog chased my cat.", "She fed it."


@pytest.fixture(scope="module")
def engine():
    return load_engine("twin-bert")


@pytest.fixture(scope="module")
def trace(engine) -> Trace:
    return engine.run(TraceRequest(TEXT, PAIR))


def shown_table(page: Page, box: str = ".att-headtable") -> tuple[list[str], np.ndarray]:
    """The table under a picture, which must be open: row names and numbers."""
    cells = page.locator(f"{box} tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))")
    return [row[0] for row in cells], np.array([[float(cell) for cell in row[1:]] for row in cells])


def wait_for_table(page: Page, names: list[str], numbers: np.ndarray, box: str = ".att-headtable",
                   relative: float = 0.0) -> None:
    """Open the table under a picture, and wait until it shows these rows, to 1e-4 (and to a share of each).

    Args:
        names: of the rows, without the positions that tell equal ones apart.
    """
    page.locator(f"{box} summary").evaluate("node => { node.parentElement.open = true; }")

    def agrees() -> bool:
        shown, cells = shown_table(page, box)
        return ([re.sub(r" \(\d+\)$", "", name) for name in shown] == names and cells.shape == numbers.shape
                and bool((np.abs(cells - numbers) < 1e-4 + relative * numbers).all()))

    holds(page, agrees)


def wait_for(page: Page, **data: object) -> None:
    """Until the component says so in its data attributes."""
    for key, value in data.items():
        expect(page.locator(".att-root")).to_have_attribute(f"data-{key}", str(value), timeout=PATIENCE)


@pytest.mark.parametrize(("width", "scheme"), quick_are(1, [
    (390, "dark"), (1440, "light"), (390, "light"), (1440, "dark")]))
def test_the_table_of_the_open_head_is_the_trace(new_visitor, trace, width, scheme):
    visitor = new_visitor(width=width, scheme=scheme)
    page = visitor.open("attention", text=TEXT, pair=PAIR, layer=3, head=9, look="map")
    wait_for(page, layer=3, head=9, exact="true")
    wait_for_table(page, list(trace.tokens), trace.attention_probs[2, 8])
    visitor.fits()
    visitor.no_traceback()


def test_options_of_the_picture_are_those_of_the_measure(visitor, trace):
    page = visitor.open("attention", text=TEXT, pair=PAIR, layer=2, head=9, look="map.words.renormalise.aa.t5.n2")
    wait_for(page, layer=2, exact="true")
    options = MapOptions(words=True, specials="renormalise", segments="aa", threshold=0.05, top=2)
    labels, weights = shown_map(trace, trace.attention_probs[1, 8], options)
    wait_for_table(page, labels, weights, relative=2**-11)  # the page renormalises what came in half precision


def test_pointing_at_a_token_lists_its_weights_both_ways(visitor, trace):
    page = visitor.open("attention", text=TEXT, pair=PAIR, layer=3, head=9, look="lines")
    wait_for(page, layer=3, head=9, exact="true")
    picture, said = page.locator("canvas.att-head"), page.locator(".att-says")

    def pointed() -> bool:
        """Go down the tokens on the left until the one at position 7 is spoken of."""
        box = picture.bounding_box()
        for y in range(4, int(box["height"]), 9):
            picture.hover(position={"x": 0.1 * box["width"], "y": y})
            page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
            if f"“{trace.tokens[7]}”, position 7" in said.inner_text():
                return True
        return False

    holds(page, pointed)
    one = trace.attention_probs[2, 8]
    for side, values in (("from", one[7]), ("to", one[:, 7])):
        expected = np.argsort(-values, kind="stable")[:6]
        becomes(page, lambda side=side: page.locator(f".att-{side} li").evaluate_all(LISTED),
                [[i, pytest.approx(float(values[i]), abs=1e-4)] for i in expected.tolist()])


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


def test_the_picture_goes_back_with_the_address(visitor):
    page = visitor.open("attention", text=TEXT, layer=2, head=3, look="map")
    page.locator("canvas.att-grid").focus()
    for head in (4, 5):
        page.keyboard.press("ArrowRight")
        wait_for(page, layer=2, head=head)
        page.wait_for_url(f"**head={head}**")
    visitor.wait_ready(TEXT)
    page.go_back()
    wait_for(page, layer=2, head=4)
    page.locator("canvas.att-grid").focus()
    page.keyboard.press("ArrowDown")
    wait_for(page, layer=3, head=4)
    page.wait_for_url("**layer=3**")
    visitor.wait_ready(TEXT)
    wait_for(page, layer=3, head=4)


def test_a_long_text_s_layer_comes_with_the_way_back(visitor):
    page = visitor.open("attention", text=" ".join(["The old dog chased my cat ."] * 24), layer=2, head=1)
    wait_for(page, layer=2, exact="true")
    page.locator(".att-layer input").fill("5")
    wait_for(page, layer=5, exact="true")
    page.go_back()
    wait_for(page, layer=2, exact="true")


def test_a_follower_s_picture_goes_where_the_teacher_s_goes(new_visitor):
    teacher, student = new_visitor(), new_visitor()
    code = open_room(teacher)
    student.open("attention", room=code)
    student.page.get_by_text("Following room").wait_for()
    go_to(teacher, "Attention")
    for layer, head in ((1, 2), (1, 3), (4, 3)):
        teacher.page.locator(".att-layer input").fill(str(layer))
        teacher.page.locator(".att-which input").fill(str(head))
        wait_for(student.page, layer=layer, head=head, exact="true")


def test_pairs_and_layers_are_switched_by_keyboard(visitor, trace):
    page = visitor.open("attention", text=TEXT, view="Act", mask=6, layer=3, head=1)
    picture, said = page.locator("canvas.att-head"), page.locator(".att-says")
    picture.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight"):  # the first key comes to the first cell
        page.keyboard.press(key)
    expect(said).to_contain_text(f"From “{trace.tokens[1]}” to “{trace.tokens[2]}”", timeout=PATIENCE)
    run = visitor.run_number()
    page.keyboard.press("Enter")
    visitor.after(run)
    page.wait_for_url("**cut=1-2**")
    page.keyboard.press("Enter")
    holds(page, lambda: "cut=" not in page.url)
    visitor.wait_ready(TEXT)
    page.locator("canvas.att-grid").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press(" ")
    visitor.in_address("off=3-1%2C3-2%2C")
    visitor.no_traceback()


def test_a_token_is_pinned_by_enter(visitor):
    page = visitor.open("attention", text=TEXT, layer=3, head=9, look="lines")
    page.locator("canvas.att-head").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".att-says")).to_contain_text("position 0, pinned", timeout=PATIENCE)
    page.keyboard.press("Enter")
    page.wait_for_url("**token=0**")
    page.keyboard.press("Escape")
    expect(page.locator(".att-says")).to_contain_text("Point at a token", timeout=PATIENCE)


def test_heads_beyond_the_colours_are_said(visitor):
    page = visitor.open("attention", text=TEXT, layer=3, head=9, look="h1-2-3-4-5-6-7")
    expect(page.locator(".att-tag")).to_have_count(6, timeout=PATIENCE)
    expect(page.locator(".att-title")).to_contain_text("2 more chosen, not drawn", timeout=PATIENCE)


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
    rows = page.locator(".effect-block").first.locator("tbody tr")
    number_of = engine.loaded("twin-bert").tokenizer.id_of
    for column, off in ((1, ()), (2, ((2, 1),))):
        logits = engine.run(TraceRequest(text, heads_off=off)).mlm_logits[0].astype(np.float64)
        chances = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()

        def agrees(column: int = column, chances: np.ndarray = chances) -> bool:
            shown = rows.evaluate_all(
                "(rows, at) => rows.map(row => [row.cells[0].textContent, +row.cells[at].dataset.value])", column)
            return shown == [[word, pytest.approx(chances[number_of(word)], rel=1e-3)] for word, _ in shown] != []

        holds(page, agrees)


def test_the_steps_are_the_trace_s_numbers(visitor, trace):
    page = visitor.open("attention", text=TEXT, pair=PAIR, view="Step by step", layer=3, head=9, token=7, step=4)
    for field, values in (("scores", trace.attention_scores[2, 8, 7]), ("weights", trace.attention_probs[2, 8, 7])):
        cells = page.locator(f".steps-table td[data-field={field}]")
        becomes(page, lambda cells=cells: [float(text.replace("−", "-")) for text in cells.all_text_contents()],
                pytest.approx(values.tolist(), rel=6e-3, abs=6e-4))
    page.get_by_role("button", name="6 project").click()
    expect(page.locator(".steps-norms li")).to_have_count(12, timeout=PATIENCE)


def test_a_neuron_s_operands_add_up_on_screen(visitor, engine):
    page = visitor.open("attention", text=TEXT, pair=PAIR, view="Step by step", layer=3, token=7, step=6)
    page.get_by_role("button", name="7 feed-forward").click()
    rows = page.get_by_role("region", name="The strongest neurons for this token").locator("tbody tr")
    expect(rows).to_have_count(12, timeout=PATIENCE)
    expect(page.locator(".steps-head")).to_be_hidden()
    rows.nth(3).get_by_role("button").click()
    number = int(rows.nth(3).get_by_role("button").text_content())
    inner = engine.run(TraceRequest(TEXT, PAIR, parts=("intermediate",))).intermediate[2, :, number]
    expect(page.locator(".steps-says")).to_contain_text(f"neuron {number} sums up to")
    strips = page.locator(".steps-strip")
    strips.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")

    def read(text: str) -> float:
        return float(text.replace("−", "-"))

    def agree() -> bool:
        token, weights, products, everywhere = ([read(cell) for cell in strips.nth(n).locator("td").all_text_contents()]
                                                for n in range(4))
        bias = read(re.search(r"with the bias (\S+) it", strips.nth(2).text_content())[1])
        summed = read(rows.nth(3).locator("td").first.text_content())
        return (np.allclose(np.multiply(token, weights), products, rtol=0.01, atol=1e-3)
                and sum(products) + bias == pytest.approx(summed, abs=5e-3)
                and everywhere == pytest.approx(inner.tolist(), abs=5e-4))

    holds(page, agree)
    visitor.in_address("step=7")
    page.get_by_text("Where else are these neurons strong?").click()
    expect(page.get_by_text(f"Neuron {number} in the shipped sentences")).to_be_visible(timeout=PATIENCE)
    expect(page.locator(".steps-elsewhere li")).to_have_count(5)
    visitor.no_traceback()


def test_where_else_a_head_looks_follows_from_head_to_head(visitor, engine):
    page = visitor.open("attention", text=TEXT, layer=2, head=1)
    wait_for(page, layer=2, head=1)
    page.locator("[data-testid=stCheckbox]", has_text="Where else does this head look?").click()
    lines, found = page.locator(".att-places:not(.att-kinds) li"), head_places(engine, "twin-bert")

    def expect_place(layer: int, head: int) -> None:
        words = found.sentences[found.sentence[0, layer, head]]
        query, key = (words[part[0, layer, head]] for part in (found.query, found.key))
        expect(lines).to_have_count(6, timeout=PATIENCE)
        expect(lines.first.locator(".att-looks")).to_have_text(query, timeout=PATIENCE)
        expect(lines.first.locator(".att-seen")).to_have_text(key)
        expect(lines.first.locator(".att-number")).to_have_text(f"{found.weight[0, layer, head]:.4f}")
        distance = page.locator("[data-number=distance] dd")
        expect(distance.nth(1)).to_have_text(f"{found.means.distance[layer, head]:.2f}")
        verbs = page.locator(".att-kinds li", has_text=re.compile("^verb"))
        expect(verbs.locator(".att-number")).to_contain_text(
            percent(float(found.kinds.share[KINDS.index("verb"), layer, head])))

    expect_place(1, 0)
    visitor.in_address("elsewhere=true")
    page.locator(".att-layer input").fill("5")
    page.locator(".att-which input").fill("10")
    wait_for(page, layer=5, head=10)
    expect_place(4, 9)
    visitor.no_traceback()


def test_the_head_that_was_open_is_open_still_when_one_comes_back(visitor):
    page = visitor.open("attention", text=TEXT, layer=5, head=7)
    wait_for(page, layer=5, head=7)
    for name in ("Masking", "Attention"):
        page.get_by_role("link", name=name, exact=True).click()
        page.wait_for_url(f"**/{name.lower()}**")
        visitor.wait_ready(TEXT)
    wait_for(page, layer=5, head=7)
    visitor.in_address("head=7")


def test_512_tokens_open_exactly_on_demand(visitor, engine):
    text = " ".join(["The old dog chased my cat into the garden ."] * 60)
    page = visitor.open("attention", text=text, layer=2, head=1)
    wait_for(page, layer=2, exact="true")
    page.locator(".att-layer input").fill("5")
    wait_for(page, layer=5, exact="true")
    probs = engine.run(TraceRequest(text, parts=("attention_probs",))).attention_probs
    page.locator(".att-headtable summary").evaluate("node => { node.parentElement.open = true; }")

    def agrees() -> bool:
        _, numbers = shown_table(page)
        return numbers.shape == (512, 3) and (np.abs(numbers[:, 1] - probs[4, 0, 0]).max() < 1e-4
                                              and np.abs(numbers[:, 2] - probs[4, 0, :, 0]).max() < 1e-4)

    holds(page, agrees)
    visitor.no_traceback()


@pytest.mark.parametrize("view", quick_are(1, ["Head view", "Model view", "Neuron view"]))
def test_bertviz_draws_with_no_network(visitor, view):
    page = visitor.open("attention", text=TEXT, view="bertviz", bertviz=view, present=1)
    frame = page.frame_locator("iframe")
    expect(frame.locator("#bertviz-view svg").first).to_be_visible(timeout=PATIENCE)
    holds(page, lambda: frame.locator("#bertviz-view svg line, #bertviz-view svg rect").count() > 100)
    holds(page, lambda: frame.locator("html").evaluate("root => root.scrollHeight <= root.clientHeight"))  # all of it


@pytest.mark.parametrize("scheme", quick_are(1, ["light", "dark"]))
def test_the_saved_page_opens_from_disk_with_the_same_numbers(browser, trace, tmp_path, scheme):
    file = tmp_path / "attention.html"
    file.write_text(standalone(trace, 2, 8, "map", 3), encoding="utf-8")
    context = browser.new_context(offline=True, color_scheme=scheme)
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: wrong.append(request.url))
    page.goto(file.as_uri())
    wait_for(page, layer=3, head=9, exact="true")
    expect(page.locator(".att-says")).to_contain_text("position 3, pinned")
    wait_for_table(page, list(trace.tokens), trace.attention_probs[2, 8])
    assert [url for url in wrong if not url.startswith(("file:", "data:"))] == []
    context.close()


@pytest.mark.parametrize("kind", quick_are(1, ["PNG", "SVG"]))
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


def test_published_heads_are_given_as_published(visitor):
    page = visitor.open("attention", view="Roles", text="The dog barked.")
    cells = page.locator('.roles-scroll td[data-column="bert-base, published"]')
    published = {f"{one['head']}: {one['accuracy']:.1f} % ({one['baseline']:.1f} %)"
                 for one in read_facts("heads")["head"]}
    becomes(page, lambda: set(cells.all_inner_texts()), published)


@pytest.mark.parametrize("width", quick_are(1, [1024, 1120]))
def test_the_verdict_on_a_head_is_read_without_scrolling_beside_the_sidebar(new_visitor, width):
    page = new_visitor(width=width, height=768).open("attention", view="Roles", text="The old dog [MASK] all night.")
    box = page.locator(".roles-scroll")
    expect(box).to_be_visible()
    holds(page, lambda: box.evaluate("box => box.scrollWidth - box.clientWidth") <= 1)
    assert "linear-gradient" in box.evaluate("box => getComputedStyle(box).backgroundImage")  # where it doesn't fit


@pytest.mark.parametrize(("view", "table"), quick_are(1, [
    ("Attribution", ".strips-scroll"), ("Roles", ".roles-scroll")]))
def test_tables_fit_a_phone(new_visitor, view, table):
    page = new_visitor(width=390).open("attention", view=view, text="The old dog [MASK] all night.")
    box = page.locator(table)
    expect(box).to_be_visible()
    holds(page, lambda: box.evaluate("box => box.scrollWidth - box.clientWidth") <= 1)


def test_on_a_phone_the_tested_relations_are_one_screen_and_all_their_numbers_one_touch_away(new_visitor):
    visitor = new_visitor(width=390)
    page = visitor.open("attention", view="Roles", text=TEXT)
    box, cases = page.locator(".roles-scroll"), page.locator('.roles-scroll td[data-column="Cases"]')
    expect(cases).to_have_count(8)
    expect(cases.first).to_be_hidden()
    assert box.bounding_box()["height"] < 844
    page.get_by_role("button", name="All numbers of each relation").click()
    expect(cases.first).to_be_visible()
    visitor.fits()
    page.locator(".roles-scroll button").first.click()
    holds(page, lambda: 0 <= page.locator("canvas.att-grid").bounding_box()["y"] < 500)


def test_a_head_taken_back_before_the_answer_does_not_shut_out_later_ones(browser: Browser, trace):
    header, arrays = heads_payload(trace, 1, 4, mode="act")
    one = Alone(browser, "attention")
    one.page.clock.install(time=0)
    one.draw(components.pack(header, arrays))
    one.page.locator(".att-grid").focus()
    one.page.keyboard.press(" ")
    one.page.keyboard.press(" ")  # one run answers both, and changes nothing: no answer comes
    one.page.clock.fast_forward(6_000)
    one.draw(components.pack({**header, "off": [17]}, arrays))
    assert one.page.locator(".att-root").evaluate("root => [...root.view.off]") == [17]
    one.close()


def test_words_that_are_written_the_same_are_told_apart_where_only_their_names_stand(browser: Browser, engine):
    trace = engine.run(TraceRequest("the dog saw the cat", parts=("attention_probs",)))
    one = Alone(browser, "attention")
    one.draw(components.pack(*heads_payload(trace, 1, 4)))
    pairs = one.page.locator(".att-wide .att-token").all_text_contents()
    assert any("the (1)" in pair or "the (4)" in pair for pair in pairs)
    one.page.locator(".att-headtable summary").click()
    becomes(one.page, lambda: shown_table(one.page)[0], ["[CLS]", "the (1)", "dog", "saw", "the (4)", "cat", "[SEP]"])
    one.close()


def test_from_stands_left_of_to_in_a_script_that_runs_from_the_right(browser: Browser, engine):
    trace = engine.run(TraceRequest("שלום עולם", parts=("attention_probs",)))
    one = Alone(browser, "attention")
    one.draw(components.pack(*heads_payload(trace, 1, 4)))
    pairs = one.page.locator(".att-wide .att-token").all_text_contents()
    assert pairs
    for pair in pairs:
        assert pair.startswith("\u2068")
        assert "\u2069 → \u2068" in pair
    one.close()

"""What a first visit and a key press bring over the network: a class's Wi-Fi is shared by all of it."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visitor
from tests.browser.waiting import holds
from tests.cases import quick_are
from ui import look, served

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

KIB = 1024
THEIRS = Path(find_spec("streamlit").origin).parent / "static" / "static"
ICON = re.compile(r":material/([a-z_0-9]+):")
#: Names that Streamlit's scripts hold and its own font of icons has not either.
NO_ICON = {"star_filled"}
#: Width of each name in the small font of icons, in its own size.
WIDTHS = """async ([names, address]) => {
  const font = await new FontFace("Small Icons", `url(${address})`).load();
  document.fonts.add(font);
  const one = document.body.appendChild(document.createElement("span"));
  one.style.cssText = "position: absolute; white-space: nowrap; font: 100px 'Small Icons'";
  return Object.fromEntries(names.map((name) => {
    one.textContent = name;
    return [name, one.getBoundingClientRect().width / 100];
  }));
}"""


@dataclass
class Wire:
    """What came since it was last emptied: address -> bytes, and the socket's messages."""

    fetched: dict[str, int] = field(default_factory=dict)
    messages: list[bytes] = field(default_factory=list)

    @classmethod
    def of(cls, page: Page) -> Wire:
        """Everything that comes to this page from now on."""
        wire, address = cls(), {}
        browser = page.context.new_cdp_session(page)
        browser.send("Network.enable")
        browser.on("Network.responseReceived", lambda one: address.update({one["requestId"]: one["response"]["url"]}))
        browser.on("Network.loadingFinished",
                   lambda one: wire.fetched.update({address.get(one["requestId"], "?"): int(one["encodedDataLength"])}))
        browser.on("Network.webSocketFrameReceived",
                   lambda one: wire.messages.append(base64.b64decode(one["response"]["payloadData"])))
        return wire

    def fonts(self) -> set[str]:
        """File names of the fonts."""
        return {address.rsplit("/", 1)[-1].split(".")[0] for address in self.fetched if ".woff2" in address}

    def empty(self) -> None:
        self.fetched.clear()
        self.messages.clear()


@pytest.fixture
def keeper(browser, address) -> Iterator[Visitor]:
    """A visitor whose browser keeps what it fetched: Playwright's gate, which others have, puts that off."""
    with browser.new_context() as context:
        yield Visitor(context.new_page(), address)


@pytest.mark.parametrize(("name", "most"), quick_are(1, [("attention", 1000), ("masking", 900)]))
def test_a_first_visit_is_small_and_the_second_fetches_nothing_anew(keeper, name, most):
    visitor = keeper
    wire = Wire.of(visitor.page)
    visitor.open(name)
    assert 300 * KIB < sum(wire.fetched.values()) + sum(map(len, wire.messages)) < most * KIB
    assert wire.fonts() == set(look.FACES)
    wire.empty()
    visitor.page.reload()
    visitor.wait_ready()
    assert len(wire.fetched) > 50
    assert sum(wire.fetched.values()) < 20 * KIB


@pytest.mark.parametrize(("name", "most"), quick_are(1, [("attention", 60), ("masking", 14), ("compare", 24)]))
def test_a_key_press_brings_the_picture_and_no_code(visitor, name, most):
    visitor.open(name)
    wire = Wire.of(visitor.page)
    visitor.type("The old dog slept by the [MASK] all day.")
    assert 2 * KIB < sum(map(len, wire.messages)) < most * KIB
    assert not [message for message in wire.messages if b"function unpack" in message]
    assert not [address for address in wire.fetched if address.endswith((".js", ".css"))]


def test_a_letter_of_another_script_is_drawn_in_streamlits_font(visitor):
    wire = Wire.of(visitor.page)
    visitor.open("masking")
    assert "SourceSansVF-Upright" not in wire.fonts()
    visitor.type("Старый пёс спал весь день.")
    holds(visitor.page, lambda: "SourceSansVF-Upright" in wire.fonts())


def test_code_that_did_not_arrive_is_fetched_again(visitor):
    tried: list[str] = []

    def drop_twice(route):
        tried.append(route.request.url)
        route.abort() if len(tried) < 3 else route.continue_()

    visitor.page.route("**/bothways/gaps.*", drop_twice)
    visitor.open("masking")
    assert len(tried) == 3
    assert visitor.page.locator(".bw-guess .bw-piece").count() > 1


def test_every_icon_that_a_page_or_streamlit_names_is_in_the_small_font(visitor):
    files = [*(THEIRS / "js").glob("*.js"), *(served.ASSETS.parent / "ui").rglob("*.py")]
    names = {name for file in files for name in ICON.findall(file.read_text(encoding="utf-8", errors="replace"))}
    assert {"expand_more", "keyboard_double_arrow_left", "open_in_new"} <= names
    page = visitor.open("masking")
    widths = page.evaluate(WIDTHS, [sorted(names | {"no_such_icon"}), f"/{served.address('icons', 'woff2')}"])
    assert widths.pop("no_such_icon") > 1.5
    assert {name for name, width in widths.items() if width != pytest.approx(1.0, abs=0.01)} == NO_ICON


def test_what_never_changes_says_so_and_what_is_not_there_is_not_found(visitor):
    page = visitor.open("masking")
    answer = page.request.get(f"{visitor.address}/{served.address('gaps', 'js')}")
    assert answer.ok
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    for name, status in (("gaps.js", 404), ("gaps.0123456789abcdef.js", 404), ("_base.js", 404), ("..%2Fapp.css", 400)):
        assert page.request.get(f"{visitor.address}/bothways/{name}").status == status


def test_no_module_waits_for_another_before_it_is_ready(browser):
    """WebKit gives a module with a top-level `await` to its second importer too early; a plain function takes none."""
    page = browser.new_page()
    names = sorted(path.stem for path in served.COMPONENTS.glob("*.js") if "." not in path.stem and path.stem[0] != "_")
    codes = {name: [served.loader(name), served.content(name, "js").decode()] for name in names}
    plain = """codes => Object.entries(codes).filter(([, both]) => both.some((code) => {
      try { new Function(code.replace(/^export default /m, "return ")); return false; } catch { return true; }
    })).map(([name]) => name)"""
    assert page.evaluate(plain, {"waits": ["export default await 1;", ""], **codes}) == ["waits"]
    page.close()


def test_a_browser_that_is_too_old_says_so_until_it_is_clicked_away(visitor):
    said = visitor.page.get_by_text("This browser is too old")
    visitor.open("tokens", text="The dog barked.")
    expect(said).to_have_count(0)
    visitor.page.add_init_script("CSS.supports = () => false")
    visitor.open("tokens", text="The dog barked.")
    expect(said).to_be_visible()
    said.click()
    expect(said).to_have_count(0)
    expect(visitor.page.get_by_role("option", name="dog")).to_be_visible()

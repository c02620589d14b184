"""One server, one Chromium, and no request that leaves the app's own address."""

from __future__ import annotations

import os
import shutil
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, Request, WebSocket, expect, sync_playwright

from bench._server import Server, serve
from tests.browser.homes import Home
from tests.browser.waiting import PATIENCE, holds, settle

CHROMIUM_ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                      "--disable-background-networking", "--disable-component-update", "--disable-sync"]
#: What a test's server may be called; the browser finds no other.
HERE = ("127.0.0.1", "localhost", urllib.parse.urlsplit(os.environ.get("BOTH_WAYS_TEST_ADDRESS", "")).hostname)
ONLY_HERE = "--host-resolver-rules=" + ", ".join(["MAP * ~NOTFOUND", *(f"EXCLUDE {host}" for host in HERE if host)])
#: Where a page may fetch something.
OWN_SCHEMES = ("data:", "blob:")
#: The widest of the document and of Streamlit's column, in pixels.
WIDEST = """Math.max(document.documentElement.scrollWidth,
                     document.querySelector('[data-testid=stMain]')?.scrollWidth ?? 0)"""
#: How many times slower than it is the browser's processor is made, to find what only fails on an old laptop.
SLOWER = float(os.environ.get("BOTH_WAYS_TEST_SLOWER", "1"))
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="session")
def address(server: Server) -> str:
    """Base address of the running explorer."""
    return server.address


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A running explorer; one started by hand in BOTH_WAYS_TEST_ADDRESS is taken as it is, without its process.

    Its trainer runs at ordinary priority: at the lowest it might wait for minutes while other tests run. What a test
    leaves running does not run on beside the next ones.
    """
    if os.environ.get("BOTH_WAYS_TEST_ADDRESS"):
        yield Server(os.environ["BOTH_WAYS_TEST_ADDRESS"], 0)
        return
    log = tmp_path_factory.mktemp("server") / "log.txt"
    settings = {"BOTH_WAYS_HUB": os.environ.get("BOTH_WAYS_HUB", "off"), "BOTH_WAYS_TRAINER_NICE": "0",
                "BOTH_WAYS_RUN_KEEP": "25"}
    with serve(log=log, seconds=240, **settings) as running:
        yield running


def find_chromium() -> str | None:
    """A browser of the system, or None for Playwright's own."""
    named = os.environ.get("BOTH_WAYS_CHROMIUM")
    return named or shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="session")
def browser(playwright: Playwright) -> Iterator[Browser]:
    """Its windows are all new to the explorer: each fetches everything."""
    started = playwright.chromium.launch(executable_path=find_chromium(), args=[*CHROMIUM_ARGUMENTS, ONLY_HERE])
    yield started
    started.close()


@pytest.fixture(scope="session")
def homes(playwright: Playwright, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Home]]:
    """The browsers of a test's first visitors, which keep what they have fetched, as people's do."""
    def start() -> BrowserContext:
        return playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("home"), executable_path=find_chromium(), args=[*CHROMIUM_ARGUMENTS, ONLY_HERE],
            viewport={"width": 1440, "height": 900})

    made = [Home(start) for _ in range(2)]
    yield made
    for home in made:
        home.close()


@dataclass
class Visitor:
    """One visitor's browser window on the explorer."""

    page: Page
    address: str
    strangers: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def open(self, name: str = "", **parameters: object) -> Page:
        """Go to a page with parameters of the address, and wait until it is drawn."""
        query = urllib.parse.urlencode({key: str(value) for key, value in parameters.items()})
        self.page.goto(f"{self.address}/{name}" + (f"?{query}" if query else ""))
        return self.wait_ready(str(parameters["text"]) if "text" in parameters else None)

    def wait_ready(self, text: str | None = None) -> Page:
        """Wait until the page has drawn for `text` (or for whatever is there) and holds still."""
        self.page.wait_for_function(
            """text => { const bar = document.querySelector('[data-ready]');
                         return bar !== null && (text === null || bar.getAttribute('data-text') === text); }""",
            arg=text, timeout=PATIENCE,
        )
        settle(self.page)
        return self.page

    def run_number(self) -> int:
        """Number of the run whose picture is on screen; it grows with each."""
        return int(self.page.locator("[data-ready]").get_attribute("data-run") or 0)

    def after(self, run: int) -> Page:
        """Wait for a picture later than that of `run`, and until it holds still."""
        self.page.wait_for_function(
            "run => Number(document.querySelector('[data-ready]')?.getAttribute('data-run') || 0) > run",
            arg=run, timeout=PATIENCE,
        )
        settle(self.page)
        return self.page

    def type(self, text: str, label: str = "Sentence") -> Page:
        """Replace the sentence (or the second one) as a person would, and wait for the picture."""
        run = self.run_number()
        self.page.get_by_label(label, exact=True).fill(text)
        self.after(run)
        return self.wait_ready(text) if label == "Sentence" else self.page

    def text_drawn(self) -> str | None:
        """The sentence that the picture on screen was drawn for."""
        return self.page.locator("[data-ready]").get_attribute("data-text")

    def in_sentence(self, text: str, label: str = "Sentence") -> None:
        """Wait until the sentence (or the second one) reads `text`."""
        expect(self.page.get_by_label(label, exact=True)).to_have_value(text)

    def in_address(self, part: str) -> None:
        """Wait until the address holds `part`, such as 'mask=3'."""
        holds(self.page, lambda: part in self.page.url)

    def fits(self) -> None:
        """Wait until nothing sticks out of the window sideways."""
        width = self.page.viewport_size["width"]
        holds(self.page, lambda: self.page.evaluate(WIDEST) <= width)

    def no_traceback(self) -> None:
        """No exception box, no traceback in the page's text."""
        settle(self.page)
        expect(self.page.locator("[data-testid=stException]")).to_have_count(0)
        expect(self.page.locator("body")).not_to_contain_text("Traceback")


@pytest.fixture
def new_visitor(browser: Browser, homes: list[Home], address: str) -> Iterator:
    """Maker of visitors: new_visitor(width=1440, height=900, scheme='light' or 'dark').

    The first of a test come in browsers that have been here before, others in new ones.
    """
    contexts: list[BrowserContext] = []
    visitors: list[Visitor] = []
    own = (*OWN_SCHEMES, address, address.replace("http", "ws", 1))

    def make(width: int = 1440, height: int = 900, scheme: str = "light") -> Visitor:
        size = {"width": width, "height": height}
        home = homes[len(visitors)] if len(visitors) < len(homes) else None
        if home is None:
            contexts.append(browser.new_context(viewport=size))
        page = home.enter() if home else contexts[-1].new_page()
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme)
        page.set_default_timeout(PATIENCE)
        if SLOWER != 1:
            page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
        visitor = Visitor(page, address)
        visitors.append(visitor)

        def note(sent: Request | WebSocket) -> None:
            if not sent.url.startswith(own):
                visitor.strangers.append(sent.url)

        listen = home.listen if home else page.on
        listen("request", note)
        listen("websocket", note)
        listen("pageerror", lambda error: visitor.errors.append(str(error)))
        return visitor

    yield make
    for context in contexts:
        context.close()
    for home, _ in zip(homes, visitors):
        home.leave(address)
    for visitor in visitors:
        assert visitor.strangers == [], "a request left the app's own address"
        assert visitor.errors == [], "a script of the page failed"


@pytest.fixture
def visitor(new_visitor) -> Visitor:
    """A visitor with a wide light window."""
    return new_visitor()

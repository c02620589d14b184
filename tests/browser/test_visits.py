"""Closed lids, reloads, lost networks, many tabs: the right state, or a clear message."""

import pytest
from playwright.sync_api import expect

from bench._server import serve
from tests.cases import quick_are
from ui.unreached import LATE

TEXT = "A reload must not lose the [MASK]."

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]


def test_a_reload_finds_the_same_sentence(visitor):
    visitor.open("masking")
    visitor.type(TEXT)
    visitor.page.reload()
    visitor.wait_ready(TEXT)
    visitor.in_sentence(TEXT)
    visitor.no_traceback()


class Network:
    """A page's way to its server, with which it can be cut: Playwright's `set_offline` lets an open WebSocket be."""

    def __init__(self, page):
        self.page, self.is_cut, self._sockets = page, False, []
        page.route_web_socket("**/*", self._connect)

    def _connect(self, socket):
        if self.is_cut:
            socket.close()
        else:
            self._sockets.append((socket, socket.connect_to_server()))

    def cut(self):
        self.is_cut = True
        self.page.context.set_offline(True)
        for ends in self._sockets:
            for end in ends:
                end.close()
        self._sockets.clear()

    def mend(self):
        self.page.context.set_offline(False)
        self.is_cut = False


@pytest.mark.full
def test_a_network_lost_for_twenty_seconds_is_picked_up_again(visitor):
    network = Network(visitor.page)
    page = visitor.open("masking", text=TEXT)
    app = page.get_by_test_id("stApp")
    network.cut()
    expect(app).not_to_have_attribute("data-test-connection-state", "CONNECTED")
    page.wait_for_timeout(20_000)
    expect(app).not_to_have_attribute("data-test-connection-state", "CONNECTED")
    network.mend()
    expect(app).to_have_attribute("data-test-connection-state", "CONNECTED", timeout=60_000)
    visitor.in_sentence(TEXT)
    visitor.type("The network came [MASK].")
    visitor.no_traceback()


@pytest.mark.parametrize("count", [2, pytest.param(10, marks=pytest.mark.full)])
def test_tabs_each_keep_their_own(new_visitor, count):
    tabs = [new_visitor() for _ in range(count)]
    texts = [f"Tab {number} has its own [MASK]." for number in range(len(tabs))]
    for tab, text in zip(tabs, texts, strict=True):
        tab.open("masking", text=text)
    for number, tab in enumerate(tabs):
        tab.type(f"Tab {number} now reads [MASK].")
    for number, tab in enumerate(tabs):
        assert tab.text_drawn() == f"Tab {number} now reads [MASK]."
        tab.no_traceback()


@pytest.mark.parametrize(("name", "shown"), quick_are(2, [("", "Start"), ("masking", "Masking"), ("class", "Class")]))
def test_the_navigation_says_where_one_is(visitor, name, shown):
    page = visitor.open(name)
    here = page.locator("[data-testid=stSidebarNavLink][aria-current=page]")
    expect(here).to_have_count(1)
    expect(here).to_have_text(shown)
    expect(page).to_have_title(f"{'Masking' if shown == 'Start' else shown} · Both Ways")


def test_the_tab_of_the_browser_names_the_page_that_one_goes_to(visitor):
    page = visitor.open("masking")
    expect(page).to_have_title("Masking · Both Ways")
    page.get_by_role("link", name="[CLS]", exact=True).click()
    page.wait_for_url("**/cls**")
    visitor.wait_ready()
    expect(page).to_have_title("[CLS] · Both Ways")


def test_the_first_visitor_of_a_server_sees_a_page_as_all_do(browser):
    """Streamlit starts the first visitor's page without app.py; each tab is a visitor."""
    widths = []
    with serve(seconds=240) as server, browser.new_context(viewport={"width": 1440, "height": 900}) as context:
        for _ in range(2):
            page = context.new_page()
            page.goto(f"{server.address}/tokens")
            page.wait_for_selector("[data-ready]", state="attached", timeout=240_000)
            widths.append(page.get_by_test_id("stSidebar").bounding_box()["width"])
            page.close()
    assert widths == [264, 264]


def test_a_page_that_outlives_its_server_takes_the_style_of_the_next(visitor):
    page = visitor.open("masking", text=TEXT)
    link = page.locator('link[rel=stylesheet][href*="bothways/app."]')
    newest = link.evaluate("one => one.href")
    link.evaluate("one => { one.href = one.href.replace(/app[.].*/, 'app.0123456789abcdef.css'); }")
    expect(page.locator(".bw-status")).to_have_css("position", "static")  # the older one, which is not there any more
    visitor.type("The server was [MASK].")
    expect(page.locator(".bw-status")).to_have_css("position", "fixed")
    assert link.evaluate("one => one.href") == newest


def test_a_network_that_lets_no_websocket_through_is_told(new_visitor):
    visitor = new_visitor()
    page = visitor.page
    page.clock.install()
    page.route_web_socket("**/*", lambda socket: socket.close())
    page.goto(visitor.address)
    expect(page.locator("[data-test-connection-state]")).not_to_have_attribute(
        "data-test-connection-state", "CONNECTED")
    said = page.get_by_role("status").filter(has_text="No connection to the server yet")
    expect(said).to_have_count(0)
    page.clock.run_for(1000 * LATE)
    expect(said).to_contain_text("blocks WebSockets")
    expect(said).to_have_count(1)


def test_a_lost_connection_is_told_until_it_is_back(visitor):
    network = Network(visitor.page)
    visitor.page.clock.install()
    page = visitor.open("masking", text=TEXT)
    said = page.get_by_role("status").filter(has_text="The connection to the server is lost")
    network.cut()
    expect(page.get_by_test_id("stApp")).not_to_have_attribute("data-test-connection-state", "CONNECTED")
    expect(said).to_have_count(0)
    page.clock.run_for(1000 * LATE)
    expect(said).to_have_count(1)
    visitor.in_sentence(TEXT)
    network.mend()
    expect(said).to_have_count(0)
    visitor.type("The network came [MASK].")


def test_a_request_that_leaves_the_apps_address_goes_nowhere_and_is_noticed(visitor):
    page = visitor.open("tokens")
    said = page.evaluate("fetch('http://elsewhere.example/x').then(() => 'an answer', (error) => error.message)")
    assert said == "Failed to fetch"
    assert visitor.strangers == ["http://elsewhere.example/x"]
    visitor.strangers.clear()  # it would fail the test

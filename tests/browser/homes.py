"""Browsers that live through all tests: what one has opened before it opens in half the time, in the same tab in less.

A person's browser keeps what it has fetched, and so does a `Home`. Its tab is used again by the next test, unless a
test did something to it that can't be taken back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from playwright.sync_api import BrowserContext, CDPSession, Error, Page

#: Out of the window.
NOWHERE = (-9, -9)


class Tab(Page):
    """A page that notes what stays with it for good: its next test gets another one."""

    spoilt = False

    @property
    def clock(self) -> object:
        self.spoilt = True
        return super().clock

    def add_init_script(self, *args, **options) -> None:
        self.spoilt = True
        super().add_init_script(*args, **options)

    def route(self, *args, **options) -> None:
        self.spoilt = True
        super().route(*args, **options)


class Window(BrowserContext):
    """A browser's window; what speaks to a tab by the DevTools' protocol may leave anything behind in it."""

    def new_cdp_session(self, page: Page) -> CDPSession:
        if isinstance(page, Tab):
            page.spoilt = True
        return super().new_cdp_session(page)


class Home:
    """One browser, for one visitor at a time.

    Args:
        start: makes its window; called again if a test has closed it.
    """

    def __init__(self, start: Callable[[], BrowserContext]) -> None:
        self._start = start
        self._window: BrowserContext | None = None
        self._tab: Tab | None = None
        self._listening: list[tuple[str, Callable]] = []

    @property
    def window(self) -> BrowserContext:
        """Its window, open."""
        if self._window is None:
            self._window = self._start()
            self._window.__class__ = Window  # both are plain Python objects; Playwright has no hook for it
        return self._window

    def enter(self) -> Page:
        """A tab for a visitor, as good as new."""
        if self._tab is None:
            self._tab = self.window.new_page()
            self._tab.__class__ = Tab
        self._tab.emulate_media(media="null", color_scheme="null", reduced_motion="null", forced_colors="null")
        return self._tab

    def listen(self, event: str, heard: Callable) -> None:
        """Call `heard` at each event of the tab until the visitor leaves."""
        self._tab.on(event, heard)
        self._listening.append((event, heard))

    def leave(self, address: str) -> None:
        """Leave nothing of the visitor but what was fetched."""
        try:
            self._leave(address)
        except Error:  # the test closed the window, or its page is beyond help
            self.close()

    def _leave(self, address: str) -> None:
        tab, self._tab = self._tab, None
        listening, self._listening = self._listening, []
        self.window.set_offline(False)
        self.window.clear_permissions()
        self.window.clear_cookies()
        first, *others = self.window.pages
        again = not (tab.is_closed() or tab.spoilt)
        for page in others:
            if not (again and page is tab):
                page.close()
        BrowserContext.new_cdp_session(self.window, first).send("Storage.clearDataForOrigin", {
            "origin": address, "storageTypes": "local_storage,indexeddb"})
        if again:
            for event, heard in listening:
                tab.remove_listener(event, heard)
            tab.evaluate("sessionStorage.clear()")
            tab.mouse.move(*NOWHERE)
            tab.goto("about:blank")
            self._tab = tab

    def close(self) -> None:
        """Close its window, if it has one."""
        window, self._window, self._tab, self._listening = self._window, None, None, []
        if window is not None:
            with contextlib.suppress(Error):
                window.close()

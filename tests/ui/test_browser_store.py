"""What a browser keeps: its word counts, with what was changed here and not taken on yet."""

from __future__ import annotations

from typing import Any

import pytest

from tests.payloads import unpack
from ui import browser_store


class Browser:
    """The way in for what a browser says, and what it was told last."""

    def __init__(self) -> None:
        self.mounted: list[tuple[bytes, Any]] = []

    def told(self) -> dict[str, Any]:
        return unpack(self.mounted[-1][0])

    def says(self, **message: Any) -> None:
        self.mounted[-1][1](message)


@pytest.fixture
def browser(monkeypatch) -> Browser:
    made = Browser()
    monkeypatch.setattr(browser_store.st, "session_state", {})
    monkeypatch.setattr(browser_store.components, "mount",
                        lambda *data, on_event: made.mounted.append((data[-1], on_event)))
    return made


THINGS = browser_store.BrowserStore("things", 3, lambda key, text: key != "bad")


@pytest.mark.parametrize("message", [
    *({"kept": said, "changes": []} for said in (None, "x", {"a": "1"}, 5)),
    {"kept": []}, {"kept": [], "changes": {}}, {"kept": [], "changes": "a1"},
])
def test_a_message_that_is_none_is_dropped(browser, message):
    THINGS.put("a", "1")
    THINGS.ask()
    browser.says(kept=[["b", "2"]], changes=[])
    browser.says(**message)
    assert THINGS.entries() == {"a": "1", "b": "2"}


@pytest.mark.parametrize("pair", [None, [], ["a"], ["a", 1], [["a"], "1"], ["a", "1", "1"], "a1", {"a": "1"}])
def test_what_is_no_pair_and_what_is_not_taken_is_left_out(browser, pair):
    THINGS.ask()
    browser.says(kept=[pair, ["bad", "1"], ["c", "3"], ["d", "4"]], changes=[])
    assert THINGS.entries() == {"c": "3"}  # "d" is beyond `most`


def test_what_the_browser_has_counts_with_what_it_has_not_taken_on_yet(browser):
    THINGS.put("a", "1")
    THINGS.ask()
    browser.says(kept=[["b", "2"]], changes=[])  # sent before it heard of "a"
    assert THINGS.entries() == {"a": "1", "b": "2"}
    THINGS.ask()
    assert browser.told()["changes"] == [["a", "1"]]
    browser.says(kept=[["a", "1"], ["b", "2"]], changes=[["a", "1"]])
    browser.says(kept=[], changes=[])  # another tab has forgotten all
    assert THINGS.entries() == {}
    THINGS.ask()
    assert browser.told()["changes"] == []


def test_what_was_changed_again_meanwhile_is_told_again(browser):
    THINGS.put("a", "1")
    THINGS.ask()
    THINGS.put("a", "2")
    browser.says(kept=[["a", "1"]], changes=[["a", "1"]])
    assert THINGS.entries() == {"a": "2"}
    THINGS.ask()
    assert browser.told()["changes"] == [["a", "2"]]


def test_the_last_changed_stand_first_and_the_oldest_go(browser):
    THINGS.ask()
    browser.says(kept=[["a", "1"], ["b", "2"]], changes=[])
    for key in ("c", "b", "d"):
        THINGS.put(key, "new")
    assert list(THINGS.entries()) == ["d", "b", "c"]
    THINGS.forget("b")
    assert list(THINGS.entries()) == ["d", "c", "a"]


def test_a_browser_that_takes_nothing_leaves_a_session_with_its_last_changes(browser):
    for n in range(9):
        THINGS.put(str(n), "1")
        THINGS.ask()
    assert list(THINGS.entries()) == ["8", "7", "6"]
    assert browser.told()["changes"] == [["6", "1"], ["7", "1"], ["8", "1"]]


def test_a_browser_that_refuses_says_so_until_it_takes_something(browser):
    THINGS.ask()
    browser.says(refused=True)
    assert THINGS.is_refused()
    browser.says(kept=[], changes=[])
    assert not THINGS.is_refused()


def test_two_things_of_one_browser_know_nothing_of_one_another(browser):
    others = browser_store.BrowserStore("others", 3, lambda key, text: True)
    THINGS.put("a", "1")
    assert others.entries() == {}

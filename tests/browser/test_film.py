"""The film of a training run as a component by itself: no server, its data handed to it one after the other."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from playwright.sync_api import Browser, Page

from tests.browser.alone import DRAW
from ui import components, served

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

TOKENS, WORDS = ["[CLS]", "anna", "[MASK]", "[SEP]"], ["dog", "cat"]


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """An empty page with the component's script, its clock stopped."""
    made = browser.new_page()
    made.clock.install(time=0)
    errors: list[str] = []
    made.on("pageerror", lambda error: errors.append(str(error)))
    script = served.source("live_film")[0].replace("export default function", "window.mount = function")
    made.add_script_tag(content=script, type="module")
    made.wait_for_function("() => !!window.mount")
    made.clock.pause_at(60_000)
    yield made
    made.close()
    assert not errors


@pytest.fixture
def show(page: Page) -> Callable[..., None]:
    """show(count, frame=...): a film of so many frames, at steps 0, 10, 20, ..., of this sentence and these words."""
    def draw(count: int, frame: int | None = None, tokens: list[str] = TOKENS, words: list[str] = WORDS) -> None:
        header = {
            "steps": [10 * n for n in range(count)], "tokens": tokens, "gaps": [2], "cut": 0,
            "guesses": [[[[f"word{n}", 0.5]]] for n in range(count)], "words": words, "groups": ["pet", "pet"],
            "layer": 0, "head": 0, **({} if frame is None else {"frame": frame}),
        }
        places = np.arange(count * 4, dtype=np.float32).reshape(count, 2, 2)
        tenths = np.round(65535 * np.sqrt(np.arange(count) / 10)).astype(np.uint16)  # 10 % more in each frame
        attention = np.broadcast_to(tenths[:, None, None, None, None], (count, 1, 2, 4, 4))
        data = components.pack(header, {"attention": attention, "places": places})
        page.evaluate(DRAW, base64.b64encode(data).decode())
    return draw


def scrub(page: Page, frame: int) -> None:
    """Let go of the slider at a frame."""
    page.evaluate("""(frame) => {
      const range = window.parent_.querySelector(".film-range");
      range.value = String(frame);
      range.dispatchEvent(new Event("input"));
      range.dispatchEvent(new Event("change"));
    }""", frame)


def at(page: Page) -> str:
    """What the film says of where it stands."""
    return page.locator(".film-step").inner_text()


def test_a_film_that_plays_goes_on_into_the_frames_that_arrive_meanwhile(page, show):
    show(3, frame=0)
    page.get_by_role("button", name="Play the film").click()
    page.clock.run_for(430)
    assert at(page) == "after 10 steps"
    show(6, frame=0)
    page.clock.run_for(420 * 4)
    assert at(page) == "after 50 steps"
    assert page.locator(".film-token").inner_text() == "word5"
    page.clock.run_for(420)
    assert page.get_by_role("button", name="Play the film").count() == 1
    assert at(page) == "after 50 steps"


def test_a_frame_from_outside_is_gone_to_once(page, show):
    show(6)
    assert at(page) == "after 50 steps"
    show(6, frame=2)
    assert at(page) == "after 20 steps"
    page.get_by_role("button", name="Play the film").click()
    page.clock.run_for(430)
    show(7, frame=2)
    assert at(page) == "after 30 steps"
    show(7)
    assert at(page) == "after 60 steps"
    page.clock.run_for(430)
    assert at(page) == "after 60 steps"


def test_late_answers_to_ones_own_frames_move_nothing(page, show):
    show(6)
    scrub(page, 3)
    scrub(page, 1)
    assert [message["frame"] for message in page.evaluate("window.sent")] == [3, 1]
    show(6, frame=3)
    assert at(page) == "after 10 steps"
    show(6, frame=1)
    assert at(page) == "after 10 steps"
    show(6, frame=3)  # this time it is the browser's Back
    assert at(page) == "after 30 steps"


def test_who_stands_at_the_end_follows_the_run(page, show):
    show(3)
    show(4)
    assert at(page) == "after 30 steps"
    scrub(page, 0)
    show(4, frame=0)
    show(5, frame=0)
    assert at(page) == "random start"
    scrub(page, 4)
    assert page.evaluate("window.sent.at(-1).following") is True
    show(6)
    assert at(page) == "after 50 steps"


def hints(page: Page) -> list[str]:
    """What stands below the two maps."""
    return [text.translate({0x2068: None, 0x2069: None}) for text in
            page.locator("canvas ~ .film-hint").all_inner_texts()]


def test_a_cell_and_a_word_are_chosen_by_keys_and_followed_through_the_film(page, show):
    show(6)
    page.locator(".film-map").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft"):
        page.keyboard.press(key)  # the first begins at the first cell
    page.locator(".film-places").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown"):  # and stays at the last word
        page.keyboard.press(key)
    assert hints(page) == ["anna → anna: 50 %", "cat (pet)"]
    scrub(page, 2)
    assert hints(page) == ["anna → anna: 20 %", "cat (pet)"]
    show(7, frame=2)
    assert hints(page) == ["anna → anna: 20 %", "cat (pet)"]


def test_what_is_followed_ends_with_its_sentence_and_its_word(page, show):
    """A place means other tokens in another sentence, and other words in a run on another text."""
    show(6)
    page.locator(".film-map").focus()
    page.keyboard.press("ArrowRight")
    page.locator(".film-places").focus()
    page.keyboard.press("ArrowRight")
    assert hints(page) == ["[CLS] → [CLS]: 50 %", "dog (pet)"]
    show(6, words=["cat", "dog"])
    assert hints(page) == ["[CLS] → [CLS]: 50 %", "dog (pet)"]
    show(6, tokens=["[CLS]", "bert", "[MASK]", "[SEP]"], words=["cow", "cat"])
    assert [hint.split()[:2] for hint in hints(page)] == [["Rows", "look"], ["Where", "words"]]


def test_a_click_chooses_a_cell_and_pointing_elsewhere_only_reads(page, show):
    show(6)
    page.locator(".film-map").scroll_into_view_if_needed()
    box = page.locator(".film-map").bounding_box()
    edge = min(84, 0.22 * box["width"])
    cell = (box["width"] - edge - 14) / 4
    spot = [(box["x"] + edge + (k + 0.5) * cell, box["y"] + edge + (q + 0.5) * cell) for q, k in ((1, 2), (3, 0))]
    page.mouse.click(*spot[0])
    page.mouse.move(*spot[1])
    assert hints(page)[0] == "[SEP] → [CLS]: 50 %"
    page.mouse.move(2, 2)
    assert hints(page)[0] == "anna → [MASK]: 50 %"

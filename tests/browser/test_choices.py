"""Fast clicks and slow answers: what was chosen stays chosen, and the focus stays where it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from playwright.sync_api import Browser, Page

from bert_core import TraceRequest, load_engine
from bert_core.figures.attention import heads_payload
from tests.browser.alone import Alone
from ui import components

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]


@pytest.fixture
def alone(browser: Browser) -> Iterator[Callable[[str], Alone]]:
    """alone(name): a component by itself."""
    opened: list[Alone] = []

    def make(name: str) -> Alone:
        opened.append(Alone(browser, name))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


def chips(selected: list[int], count: int = 6) -> bytes:
    return components.pack({"chips": [{"t": f"word{n}", "k": "word", "i": n} for n in range(count)],
                            "select": "many", "selected": selected, "fixed": [], "label": "Tokens"})


def chosen(page: Page) -> list[int]:
    return page.locator(".bw-chip").evaluate_all(
        "all => all.flatMap((one, n) => (one.getAttribute('aria-selected') === 'true' ? [n] : []))")


def click(page: Page, n: int) -> None:
    page.locator(".bw-chip").nth(n).click()


def test_the_answer_to_an_older_click_takes_no_newer_one_back(alone):
    one = alone("chips")
    one.draw(chips([]))
    click(one.page, 1)
    click(one.page, 3)
    one.draw(chips([1]))
    assert chosen(one.page) == [1, 3]
    click(one.page, 5)
    assert one.sent()[-1] == {"selected": [1, 3, 5]}
    one.draw(chips([1, 3]))
    assert chosen(one.page) == [1, 3, 5]
    one.draw(chips([1, 3, 5]))
    assert chosen(one.page) == [1, 3, 5]


def test_what_was_chosen_elsewhere_is_shown(alone):
    one = alone("chips")
    one.draw(chips([]))
    click(one.page, 1)
    one.draw(chips([2]))  # a room, or the browser's Back
    assert chosen(one.page) == [2]


def test_a_click_in_a_longer_sentence_is_none_in_a_shorter_one(alone):
    one = alone("chips")
    one.draw(chips([]))
    click(one.page, 5)
    one.draw(chips([], count=3))
    assert chosen(one.page) == []
    click(one.page, 1)
    assert one.sent()[-1] == {"selected": [1]}


def test_a_choice_taken_back_before_its_answer_does_not_shut_out_later_ones(alone):
    one = alone("chips")
    one.page.clock.install(time=0)
    one.draw(chips([]))
    click(one.page, 1)
    click(one.page, 1)  # one run answers both, and changes nothing: no answer comes
    one.page.clock.fast_forward(6_000)
    one.draw(chips([1]))
    assert chosen(one.page) == [1]


def maps(head: int) -> bytes:
    reader = {"reader": "both", "title": "BERT", "model": "m", "place": 0, "row": 0, "drawn": [0, 1], "layer": 0,
              "head": head, "what": "", "accent": "both", "tokens": ["dog", "cat"], "in_table": True}
    return components.pack({"readers": [reader], "hint": "", "caption": ""}, {
        "weights0": np.full((2, 2), 0.5, np.float32), "allowed0": np.ones((2, 2), np.uint8),
        "right0": np.zeros((1, 6), np.float32)})


def test_arrows_go_on_from_head_to_head_while_answers_are_on_their_way(alone):
    one = alone("compare_maps")
    one.draw(maps(0))
    one.page.locator(".cmp-fold").evaluate("fold => { fold.open = true; }")
    one.page.locator(".cmp-heads").focus()
    one.page.keyboard.press("ArrowRight")
    one.page.keyboard.press("ArrowRight")
    one.draw(maps(1))
    one.page.keyboard.press("ArrowRight")
    assert [message["head"] for message in one.sent()] == [1, 2, 3]


def steps(layer: int) -> bytes:
    size, tokens = 2, ["[CLS]", "dog", "[SEP]"]
    rows = {name: np.full(3, 0.3, np.float32) for name in ("dots", "scores", "weights", "norms")}
    wide = {name: np.ones(size, np.float32) for name in ("query", "context", "contribution", "projected", "residual",
                                                         "output")}
    both = {name: np.ones((3, size), np.float32) for name in ("keys", "values")}
    return components.pack({"tokens": tokens, "chips": ["special", "word", "special"], "layer": layer, "head": 0,
                            "query": 1, "step": 0, "layers": 6, "heads": 3},
                           {**rows, **wide, **both, "blocked": np.zeros(3, np.uint8)})


def test_the_layer_goes_on_while_answers_are_on_their_way(alone):
    one = alone("attention_steps")
    one.draw(steps(0))
    one.page.locator(".steps-layer input").focus()
    one.page.keyboard.press("ArrowRight")
    one.page.keyboard.press("ArrowRight")
    one.draw(steps(1))
    one.page.keyboard.press("ArrowRight")
    one.page.locator(".steps-head input").press("ArrowRight")
    assert [(message["layer"], message["head"]) for message in one.sent()] == [(1, 0), (2, 0), (3, 0), (3, 1)]


def test_the_key_that_was_pressed_keeps_the_focus(alone):
    one = alone("attention_steps")
    one.draw(steps(0))
    one.page.locator(".steps-table button", has_text="dog").press("Enter")
    assert (one.sent()[-1]["key"], one.sent()[-1]["neuron"]) == (1, None)
    assert one.page.evaluate("window.parent_.activeElement.textContent") == "dog"
    one.draw(steps(1))
    assert one.page.evaluate("window.parent_.activeElement.textContent") == "dog"


def acting(off: list[int]) -> bytes:
    trace = load_engine("twin-bert").run(TraceRequest("The dog slept.", parts=("attention_probs",)))
    header, arrays = heads_payload(trace, 1, 4, mode="act")
    return components.pack(header | {"off": off, "cut": []}, arrays)


def test_a_head_that_is_switched_off_is_said_again_until_there_is_an_answer(alone):
    """Of two messages that wait for a busy server Streamlit keeps the newer only."""
    one = alone("attention")
    one.draw(acting([]))
    grid = one.page.locator(".att-grid")
    grid.focus()
    one.page.keyboard.press("Space")
    one.page.locator(".att-scrub input").first.press("ArrowRight")
    one.page.wait_for_function("() => window.sent.length === 2")
    assert [message["heads"] for message in one.sent()] == [[16], [16]]
    assert [message["layer"] for message in one.sent()] == [1, 2]
    one.draw(acting([16]))
    one.page.locator(".att-scrub input").first.press("ArrowRight")
    one.page.wait_for_function("() => window.sent.length === 3")
    assert one.sent()[2].keys() == {"layer", "head", "token", "look"}

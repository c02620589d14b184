"""Safari's engine and Firefox draw every view, and what one does there works: typing, choosing, training."""

import pytest

from tests.engines.window import Window
from tests.pages.test_any_model import VIEWS

pytestmark = pytest.mark.timeout(600)

TEXT = "The [MASK] barked all night."


@pytest.mark.parametrize("width", [1440, 450])
@pytest.mark.parametrize(("name", "view"), [*VIEWS, ("pretrain", ""), ("finetune", ""), ("class", "Lessons"),
                                            ("class", "Room")])
def test_every_view_is_drawn_and_fits(window: Window, name, view, width):
    window.size(width, 940)
    window.open(name, text=TEXT, view=view)
    window.has_no_fault()


def test_a_sentence_is_followed_while_it_is_typed(window):
    window.open("masking")
    window.write("The cat sat on the [MASK].")
    window.wait("return document.querySelector('[data-ready]').dataset.text === 'The cat sat on the [MASK].'")
    window.wait("return deep('.bw-guess').length >= 5")
    window.has_no_fault()


def test_a_click_on_a_token_masks_it(window):
    window.open("masking", text="The dog barked all night.")
    window.click("[role=option]", "barked")
    window.wait("return location.search.includes('mask=3') && deep('.bw-guess').length >= 5")


def test_a_link_of_the_sidebar_leads_on_and_back(window):
    window.open("attention", text=TEXT)
    window.click("[data-testid=stSidebar] a", "Masking")
    window.wait("return location.pathname.endsWith('/masking') && document.querySelector('[data-ready]') !== null")
    window.wait("return deep('.bw-guess').length >= 5")
    window.back()
    window.wait("return location.pathname.endsWith('/attention') && deep('.att-root').length === 1")
    window.has_no_fault()


def test_a_model_trains_on_screen(window):
    window.open("pretrain")
    window.click("button", "Play")
    window.wait("return /Step \\d+ of/.test(document.body.innerText)")
    window.wait("return deep('*').some((one) => !one.firstElementChild && /after \\d+ steps/.test(one.textContent))")
    window.click("button", "Reset")
    window.has_no_fault()

"""The card's button is there where there is a card, and opens it."""

import pytest
from streamlit.testing.v1 import AppTest

from ui import model_card


def _page():
    import streamlit as st

    from ui import model_card

    model_card.draw(st.query_params.get("model"))


@pytest.fixture
def app(monkeypatch) -> AppTest:
    monkeypatch.setattr(model_card, "text", {"twin-bert": "# twin-bert\n\nA card."}.get)
    return AppTest.from_function(_page, default_timeout=120)


def test_a_shipped_model_opens_its_card(app):
    app.query_params["model"] = "twin-bert"
    app.run()
    assert [button.label for button in app.sidebar.button] == ["Model card"]
    app.sidebar.button[0].click().run()
    assert not app.exception
    assert any("A card." in element.value for element in app.markdown)
    app.run()  # a room's teacher typed, say
    assert any("A card." in element.value for element in app.markdown)


def test_a_model_without_a_card_has_no_button(app):
    app.query_params["model"] = "some/model"
    app.run()
    assert not app.sidebar.button
    assert not app.exception

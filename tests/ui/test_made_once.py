"""What no key press changes is made once: pages of the navigation, a card, the paper sheet, a token's neighbours."""

from types import SimpleNamespace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from bert_core.measures import embeddings as measures
from ui import model_card, served, shell
from ui.views import class_paper, compare_ask, embeddings, pretrain


@pytest.fixture
def made(monkeypatch):
    """The pages of each navigation that was made."""
    found, make = [], shell._pages
    monkeypatch.setattr(shell, "_pages", lambda: found.append(make()) or found[-1])
    return found


def test_a_session_makes_its_pages_once_and_shares_them_with_none(made):
    sessions = [AppTest.from_file(str(shell.ROOT / "app.py"), default_timeout=120) for _ in range(2)]
    for session in sessions:
        session.switch_page("pages/class.py").run()
        session.text_input(key="text").set_value("Two dogs ran.").run()
        assert not session.exception
    assert len(made) == 2
    first, second = ({id(page) for pages in one.values() for page in pages} for one in made)
    assert not first & second


def test_a_card_is_written_once(monkeypatch):
    written, write = [], model_card.to_markdown
    monkeypatch.setattr(model_card, "to_markdown", lambda found: written.append(found["name"]) or write(found))
    model_card.text.cache_clear()
    assert [model_card.text("twin-bert") for _ in range(3)] == [write(model_card.card("twin-bert"))] * 3
    assert written == ["twin-bert"]


def test_the_paper_sheet_is_made_once():
    assert class_paper._sheet() is class_paper._sheet()
    assert "Answers" in class_paper._sheet()


def test_a_tokens_neighbours_are_looked_up_once_for_each_model(monkeypatch):
    asked = []
    monkeypatch.setattr(embeddings.state, "loaded", lambda name: SimpleNamespace(model=name))
    monkeypatch.setattr(measures, "word_table", lambda model: model)
    monkeypatch.setattr(measures, "neighbours", lambda table, index, k: asked.append((table, index, k)) or ())
    embeddings.nearest_rows.cache_clear()
    for name, index in (("one", 5), ("one", 5), ("other", 5), ("one", 6)):
        embeddings.nearest_rows(name, index)
    embeddings.nearest_rows.cache_clear()
    assert asked == [("one", 5, 15), ("other", 5, 15), ("one", 6, 15)]


def test_words_of_a_film_are_placed_once_for_its_frames_whatever_is_typed(monkeypatch):
    asked = []
    monkeypatch.setattr(pretrain.filming, "project", lambda shots: asked.append(shots) or np.ones((len(shots), 2, 2)))
    pretrain.places.clear()
    first = pretrain.places("run", (0, 5), ["a", "b"])
    assert pretrain.places("run", (0, 5), ["the same", "frames"]) is first
    assert not first.flags.writeable
    pretrain.places("run", (0, 5, 9), ["a", "b", "c"])
    pretrain.places("another run", (0, 5), ["d", "e"])
    pretrain.places.clear()
    assert asked == [["a", "b"], ["a", "b", "c"], ["d", "e"]]


def test_a_line_of_compare_brings_no_style_of_its_own(monkeypatch):
    sent = []
    monkeypatch.setattr(compare_ask, "st", SimpleNamespace(html=sent.append))
    compare_ask.say("It *says* so.")
    assert sent == ['<p class="cmp-line">It <em>says</em> so.</p>']
    assert b".cmp-line {" in served.content("app", "css")

"""Fine-tune: the chosen epoch is in the address, and the status bar names the model that is on screen."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from bert_core.training.live.specs import FinetuneSpec
from tests.payloads import PATIENCE
from ui.views import finetune


def epochs_page() -> None:
    """A page with nothing but the choice of an epoch, of a run with four frames."""
    from types import SimpleNamespace

    import streamlit as st

    from ui import state
    from ui.views import finetune

    run = SimpleNamespace(id=st.session_state.get("run", "r"), folder=SimpleNamespace(frames=lambda: (0, 1, 2, 3)))
    st.text(str(finetune.epoch_of(run)))
    st.text(" ".join(state.dropped()))


def test_a_chosen_epoch_is_in_the_address_and_the_latest_is_not():
    at = AppTest.from_function(epochs_page, default_timeout=PATIENCE).run()
    assert "epoch" not in at.query_params
    at.select_slider[0].set_value("1").run()
    assert (at.text[0].value, at.query_params["epoch"]) == ("1", "1")
    at.select_slider[0].set_value("3").run()
    assert at.text[0].value == "3"
    assert "epoch" not in at.query_params


def test_a_link_opens_its_epoch_and_a_room_moves_it():
    at = AppTest.from_function(epochs_page, default_timeout=PATIENCE)
    for epoch in ("2", "1"):
        at.query_params["epoch"] = epoch
        at.run()
        assert (at.text[0].value, at.select_slider[0].value) == (epoch, epoch)


@pytest.mark.parametrize("epoch", ["9", "x", "-1"])
def test_an_epoch_that_is_not_there_is_said(epoch):
    at = AppTest.from_function(epochs_page, default_timeout=PATIENCE)
    at.query_params["epoch"] = epoch
    at.run()
    assert at.text[0].value == "3"
    assert f"“{epoch}” for “epoch”" in at.text[1].value


def view(way: str, task: str = "topic") -> SimpleNamespace:
    return SimpleNamespace(spec=FinetuneSpec(task, way))


@pytest.mark.parametrize(("controls", "present", "kept", "random"), [
    ("scratch", None, [], True), ("full", None, [], False),
    ("scratch", view("full"), [view("full")], False), ("full", view("scratch"), [view("scratch")], True),
    ("full", view("frozen", "order"), [view("frozen"), view("scratch")], True),
])
def test_the_status_bar_names_the_model_of_the_shown_run(monkeypatch, controls, present, kept, random):
    monkeypatch.setattr(finetune.training, "current", lambda *_: present)
    monkeypatch.setattr(finetune.runs, "runs_of", lambda *_: kept)
    line = finetune.status_line(FinetuneSpec("topic", controls))
    assert line.startswith("twin-bert's architecture · " if random else "twin-bert · ")
    assert line.endswith(" · with random weights and a new linear layer over [CLS]" if random else
                         " · with a new linear layer over [CLS]")

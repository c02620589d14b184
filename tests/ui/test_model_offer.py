"""A hub model that a link names: offered with its size, fetched by a click, and no page waits for it."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from bert_core import LoadError, hub
from tests.payloads import is_ready, plain_line, said, visit
from tests.waiting import wait_until
from ui import settings, state

NAME = "someone/tiny"


class Hub:
    """Stands for the model hub: says a size, and `download` puts a folder into the cache."""

    def __init__(self, folder: Path):
        self.folder, self.fetched = folder, []
        self.answer, self.go_on = threading.Event(), threading.Event()
        self.problem = ""

    def size(self, name: str) -> int:
        assert self.answer.wait(60)
        if self.problem:
            raise LoadError(self.problem)
        return 438 * 2**20

    def download(self, name: str, watch) -> None:
        for done in range(1, 4):
            watch(done * 2**20, 4 * 2**20)
        while not self.go_on.wait(0.01):
            watch(3 * 2**20, 4 * 2**20)
        self.fetched.append(name)

    def cached(self, name: str) -> Path | None:
        return self.folder if name in self.fetched else None


@pytest.fixture
def far(tiny_bert, tmp_path, monkeypatch) -> Hub:
    """The hub, with the tiny BERT as its only model; it does not answer before `answer` is set."""
    shutil.copytree(tiny_bert, tmp_path / "cache")
    found = Hub(tmp_path / "cache")
    for name in ("size", "download", "cached"):
        monkeypatch.setattr(hub, name, getattr(found, name))
    monkeypatch.setenv("BOTH_WAYS_HUB", "on")
    yield found
    found.answer.set()
    found.go_on.set()


def words(at) -> str:
    return " ".join([said(at), *(one.value for one in at.caption)])


def run_until(at, condition) -> None:
    """Run the page again until it is so."""
    wait_until(lambda: condition(at) or condition(at.run()))


def button(at, label: str):
    return next((one for one in at.button if one.label.startswith(label)), None)


def test_a_page_is_drawn_with_the_default_model_while_the_hub_is_silent(far):
    at = visit("masking", model=NAME, text="the dog [MASK]")
    assert is_ready(at)["status"].startswith("twin-bert ·")
    assert f"{NAME} is not on this server: until it is, the page shows twin-bert." in words(at)
    assert button(at, "Download") is None
    assert at.query_params["model"] == NAME


def test_nothing_is_fetched_before_the_click_and_the_model_opens_after_it(far):
    far.answer.set()
    at = visit("masking", model=NAME, text="the dog [MASK]")
    run_until(at, lambda at: button(at, "Download"))
    assert button(at, "Download").label == f"Download {NAME}, 438 MiB"
    assert not far.fetched
    button(at, "Download").click().run()
    run_until(at, lambda at: button(at, "Stop"))
    assert is_ready(at)["status"].startswith("twin-bert ·")
    far.go_on.set()
    run_until(at, lambda at: far.fetched and is_ready(at)["status"].startswith("tiny ·"))
    assert "not on this server" not in words(at)


def test_stop_keeps_the_page_and_offers_again(far):
    far.answer.set()
    at = visit("masking", model=NAME, text="the dog [MASK]")
    run_until(at, lambda at: button(at, "Download"))
    button(at, "Download").click().run()
    run_until(at, lambda at: button(at, "Stop"))
    button(at, "Stop").click().run()
    run_until(at, lambda at: button(at, "Try again"))
    assert "what was fetched is kept" in words(at)
    button(at, "Try again").click().run()
    run_until(at, lambda at: button(at, "Download"))
    assert not far.fetched


def test_a_model_that_is_here_opens_at_once(far):
    far.fetched.append(NAME)
    at = visit("masking", model=NAME, text="the dog [MASK]")
    assert is_ready(at)["status"].startswith("tiny ·")
    assert button(at, "Download") is None


def test_another_choice_drops_the_offer_and_its_download(far):
    far.answer.set()
    at = visit("masking", model=NAME, text="the dog [MASK]")
    run_until(at, lambda at: button(at, "Download"))
    button(at, "Download").click().run()
    job = at.session_state["_hub_offer"]
    at.selectbox(key="model").set_value("twin-gpt").run()
    assert "_hub_offer" not in at.session_state
    run_until(at, lambda at: job.state == "failed")
    assert not far.fetched


def test_a_refusal_of_the_hub_is_one_line_beside_the_default_model(far):
    far.problem = f"{NAME}: it has 3.0 GiB, and at most 2.0 GiB are fetched; choose a smaller model"
    far.answer.set()
    at = visit("masking", model=NAME, text="the dog [MASK]")
    run_until(at, lambda at: button(at, "Try again"))
    assert "at most 2.0 GiB are fetched" in words(at)
    assert is_ready(at)["status"].startswith("twin-bert ·")


def test_no_request_of_a_page_downloads(far):
    with pytest.raises(LoadError, match="download it first"):
        state.engine().loaded("someone/else")
    assert settings.must_be_fetched("someone/else")
    assert not settings.must_be_fetched("twin-bert")


@pytest.mark.parametrize("name", ["models/file.txt", "models/gone"])
def test_what_is_no_folder_below_the_models_is_said_and_not_looked_for_on_the_hub(far, tmp_path, monkeypatch, name):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "file.txt").write_text("no model", encoding="utf-8")
    (tmp_path / "models" / "gone").symlink_to(tmp_path / "models" / "nothing")
    monkeypatch.setenv("BOTH_WAYS_FOLDERS", str(tmp_path / "models"))
    monkeypatch.chdir(tmp_path)
    for ask in ("size", "download"):
        monkeypatch.setattr(hub, ask, lambda *_, **__: pytest.fail("the hub was asked"))
    at = visit("masking", model=name, text="the dog [MASK]")
    assert f"{name} is no folder" in plain_line(at)
    assert button(at, "Read with twin-bert") is not None


def _arrived_page():
    """A finished download and its button, as a script of its own."""
    import streamlit as st

    from ui import downloads

    if "slot" not in st.session_state and "used" not in st.session_state:
        job = downloads.Download("someone/tiny")
        job.state = "finished"
        st.session_state["slot"] = job
    downloads.show("slot", use=lambda name: st.session_state.update(used=name))


def test_a_second_click_on_use_it_before_the_first_is_answered_is_no_error():
    at = AppTest.from_function(_arrived_page).run()
    button(at, "Use it").click()
    twice = at._tree.get_widget_states()
    for _ in range(2):
        at._run(twice)
        assert not at.exception
    assert at.session_state["used"] == "someone/tiny"

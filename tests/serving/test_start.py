"""The server's start, over real HTTP: /ready is there from the first moment and needs no visitor."""

import asyncio
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from bench._server import free_port, serve
from bert_core.serving import engine
from tests.serving.http import fetch
from ui.server import Start

pytestmark = pytest.mark.timeout(900)

#: Seconds that a busy machine may take to load the default model.
PATIENCE = 240


def wait_until(address: str, wanted: str) -> list[tuple[int, str]]:
    """All answers up to the first one that holds `wanted`."""
    answers: list[tuple[int, str]] = []
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        answer = fetch(address)
        answers.append(answer)
        if wanted in answer[1].removeprefix("not ready"):
            return answers
        time.sleep(0.05)
    raise AssertionError(f"{address} never answered {wanted!r}: {set(answers)}")


def test_until_the_model_is_there_ready_says_that_it_is_not():
    with ThreadPoolExecutor(1) as own:  # a browser test before leaves an event loop running in this thread
        answer = own.submit(asyncio.run, Start()._answer(None)).result()
    assert (answer.status_code, answer.body) == (503, b"not ready: the model is loading\n")


class Panic(BaseException):
    """As pyo3's: outside of Exception."""


@pytest.mark.parametrize("problem", [Panic("retry-limit"), Panic(), ValueError("no such\nmodel")])
def test_whatever_ends_the_start_is_said(problem, monkeypatch):
    def start_engine():
        raise problem

    monkeypatch.delenv("BOTH_WAYS_METRICS_PORT", raising=False)
    monkeypatch.setattr("ui.state.start_engine", start_engine)
    start = Start()
    assert not start.load()
    assert not start.ready
    assert start.problem == (" ".join(str(problem).split()) or "Panic")


def test_a_model_that_could_not_be_loaded_is_tried_again(monkeypatch, caplog):
    """No visitor would: who balances the load sends none to a server that isn't ready."""
    problems = [ValueError("the disk is away"), ValueError("the disk is away"), ValueError("the hub is away")]

    def start_engine():
        if problems:
            raise problems.pop(0)
        return SimpleNamespace(problem=lambda: "")

    monkeypatch.delenv("BOTH_WAYS_METRICS_PORT", raising=False)
    monkeypatch.setattr("ui.state.start_engine", start_engine)
    monkeypatch.setattr("ui.server.AGAIN", 0.0)
    start = Start()
    start.begin()
    assert start.ready
    assert caplog.messages == ["not ready: the disk is away", "not ready: the hub is away"]


def test_without_a_folder_for_temporary_files_it_starts_all_the_same(monkeypatch):
    """A container with a read-only file system and no /tmp: nothing was left behind there."""
    def no_folder():
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.delenv("BOTH_WAYS_METRICS_PORT", raising=False)
    monkeypatch.setattr("tempfile.gettempdir", no_folder)
    monkeypatch.setattr("ui.state.start_engine", lambda: SimpleNamespace(problem=lambda: ""))
    start = Start()
    start.begin()
    assert start.ready


def test_a_server_whose_engine_can_answer_nobody_is_not_ready_until_it_can(monkeypatch):
    troubles = ["the cluster runs no both-ways; deploy it again", ""]
    engine = SimpleNamespace(problem=lambda: troubles.pop(0))
    monkeypatch.setattr("ui.state.start_engine", lambda: engine)
    start = Start()
    assert start.load()
    with ThreadPoolExecutor(1) as own:
        answers = [own.submit(asyncio.run, start._answer(None)).result() for _ in range(2)]
    assert [(one.status_code, one.body) for one in answers] == [
        (503, b"not ready: the cluster runs no both-ways; deploy it again\n"), (200, b"ready\n")]


def test_a_wrong_setting_is_no_matter_of_time(monkeypatch, caplog):
    monkeypatch.setenv("BOTH_WAYS_METRICS_PORT", "http")
    monkeypatch.setattr("ui.state.start_engine", lambda: pytest.fail("it goes on"))
    start = Start()
    start.begin()
    assert not start.ready
    assert start.problem.startswith("BOTH_WAYS_METRICS_PORT is 'http'")
    assert caplog.messages == [f"not ready: {start.problem}"]


def test_the_server_becomes_ready_without_a_visitor():
    port = free_port()
    with serve(seconds=PATIENCE, BOTH_WAYS_METRICS_PORT=str(port)) as server:
        *before, last = wait_until(f"{server.address}/ready", "ready")
        assert last == (200, "ready\n")
        assert set(before) <= {(503, "not ready: the model is loading\n")}
        assert fetch(f"http://127.0.0.1:{port}/ready") == (200, "ready\n")
        assert "both_ways_requests_total 0.0" in fetch(f"http://127.0.0.1:{port}/metrics")[1]


def test_a_wrong_setting_is_said_at_ready_and_in_the_log(tmp_path):
    log, why = tmp_path / "log.txt", "nobody/nothing: downloads are switched off here"
    with serve(log=log, seconds=PATIENCE, BOTH_WAYS_MODEL="nobody/nothing") as server:
        status, said = wait_until(f"{server.address}/ready", why)[-1]
        assert status == 503
        assert said.startswith("not ready: ")
        assert why in log.read_text()


def test_an_engine_whose_packages_are_not_installed_names_them(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "bert_core.serving.ray_engine", raising=False)
    monkeypatch.setenv("BOTH_WAYS_ENGINE", "ray")
    with pytest.raises(ValueError, match=r"which needs what requirements-cluster\.txt names"):
        engine.engine_of("a model", None)

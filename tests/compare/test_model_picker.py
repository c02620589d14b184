"""The picker's rows, and its downloads in the background."""

from __future__ import annotations

import threading
import time
import tomllib

import pytest

from bert_core import LoadError, hub
from bert_core.load import HUB_ID
from tests.waiting import wait_until
from ui import downloads, model_picker, visitors
from ui.downloads import Download


def test_every_row_is_a_hub_id_with_a_sourced_licence_and_a_sourced_size():
    sizes = {row["parameters"] for row in tomllib.loads((model_picker.FACTS / "sizes.toml").read_text())["model"]}
    rows = model_picker.known()
    assert len({row.id for row in rows}) == len(rows)
    for row in rows:
        assert HUB_ID.fullmatch(row.id), row
        assert (row.licence is None) == (row.licence_source is None), row
        assert row.parameters is None or row.parameters in sizes
    assert {row.language for row in rows} >= {"English", "French", "Polish", "Vietnamese", "many"}
    assert {row.task for row in rows} >= {"fill the gap", "sentiment", "entities", "answers"}


def test_a_row_says_size_licence_and_doubt():
    by_id = {row.id: row.line for row in model_picker.known()}
    assert by_id["google-bert/bert-base-uncased"].startswith("109 million parameters · Apache-2.0")
    assert by_id["SpanBERT/spanbert-base-cased"].startswith("108 million parameters · CC BY-NC 4.0")
    assert by_id["flaubert/flaubert_base_cased"].startswith("size not known here, counted once loaded · MIT")
    assert "refused" in by_id["allegro/herbert-base-cased"]
    assert "size not known here" in by_id["answerdotai/ModernBERT-base"]
    assert "licence not known here" in model_picker.Known("a/b", "write on", "English", "note").line


def test_asking_the_size_fetches_nothing(monkeypatch):
    fetched = []
    monkeypatch.setattr(hub, "size", lambda name: 438 * 2**20)
    monkeypatch.setattr(hub, "download", lambda name, watch: fetched.append(name))
    job = Download("someone/tiny")
    job.ask()
    wait_until(lambda: job.state == "offered")
    assert (job.total, job.done, fetched) == (438 * 2**20, 0, [])
    job.start()
    wait_until(lambda: job.state == "finished")
    assert fetched == ["someone/tiny"]


def test_a_download_ends_finished_with_its_bytes_counted(monkeypatch):
    monkeypatch.setattr(hub, "download", lambda name, watch: watch(7, 9))
    job = Download("someone/tiny")
    job.start()
    wait_until(lambda: job.state == "finished")
    assert (job.done, job.total, job.problem) == (7, 9, "")


def test_stopping_ends_a_download(monkeypatch):
    begun = threading.Event()

    def endless(name, watch):
        while True:
            watch(1, 100)
            begun.set()
            time.sleep(0.005)

    monkeypatch.setattr(hub, "download", endless)
    job = Download("someone/tiny")
    job.start()
    assert begun.wait(120)
    job.stop()
    wait_until(lambda: not job.running)
    assert job.problem.startswith("stopped")


@pytest.mark.parametrize(("error", "said"), [
    (LoadError("x: the model hub can't be reached"), "can't be reached"), (RuntimeError("secret"), "RuntimeError"),
])
def test_a_failing_download_says_one_line(monkeypatch, error, said):
    def fail(name, watch):
        raise error

    monkeypatch.setattr(hub, "download", fail)
    job = Download("someone/tiny")
    job.start()
    wait_until(lambda: not job.running)
    assert said in job.problem
    assert "secret" not in job.problem


def test_only_some_downloads_run_at_once(monkeypatch):
    gate = threading.Event()
    monkeypatch.setattr(hub, "download", lambda name, watch: gate.wait(120))
    jobs = [Download(f"someone/m{n}") for n in range(downloads.MAX_AT_ONCE + 1)]
    for job in jobs:
        job.start()
    assert "running already" in jobs[-1].problem
    gate.set()
    wait_until(lambda: all(job.state == "finished" for job in jobs[:-1]))


def test_a_second_click_fetches_no_second_time_and_takes_nobody_the_place(monkeypatch):
    gate, fetched = threading.Event(), []
    monkeypatch.setattr(hub, "download", lambda name, watch: (fetched.append(name), gate.wait(120)))
    twice, other = Download("someone/m"), Download("someone/else")
    for job in (twice, twice, twice, other):
        job.start()
    assert [job.state for job in (twice, other)] == ["fetching", "fetching"]
    gate.set()
    wait_until(lambda: (twice.state, other.state) == ("finished", "finished"))
    assert sorted(fetched) == ["someone/else", "someone/m"]


def test_a_download_whose_tab_is_gone_ends_and_frees_its_place(monkeypatch):
    here = {"nobody"}

    def endless(name, watch):
        while True:
            watch(1, 100)
            time.sleep(0.005)

    monkeypatch.setattr(hub, "download", endless)
    monkeypatch.setattr(visitors, "is_connected", here.__contains__)
    monkeypatch.setattr(downloads, "LEFT_AFTER", 0.3)
    job = Download("someone/tiny")
    job.start()
    time.sleep(0.6)
    assert job.state == "fetching"
    here.clear()
    wait_until(lambda: not job.running)
    assert job.problem.startswith("stopped")

"""Downloading from a hub: a small server on this machine that speaks its protocol."""

from __future__ import annotations

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bert_core import LoadError, hub
from bert_core.load import load_model

COMMIT = "0123456789abcdef0123456789abcdef01234567"
NAME = "someone/tiny"


def handler(files: dict[str, bytes]) -> type[BaseHTTPRequestHandler]:
    """A server class that holds one model's files."""

    class Hub(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_HEAD(self):
            self.answer(with_body=False)

        def do_GET(self):
            self.answer(with_body=True)

        def answer(self, with_body: bool):
            name = self.path.rsplit("/", 1)[-1]
            if self.path.startswith(f"/api/models/{NAME}/tree/"):
                body = json.dumps([{"type": "file", "path": f, "size": len(held), "oid": "0" * 40}
                                   for f, held in files.items()]).encode()
            elif self.path.startswith(f"/api/models/{NAME}"):
                body = json.dumps({"id": NAME, "sha": COMMIT, "siblings": [{"rfilename": f} for f in files]}).encode()
            elif self.path.startswith(f"/{NAME}/resolve/") and name in files:
                body = files[name]
            else:
                self.send_response(404)
                self.send_header("X-Error-Code", "RepoNotFound")
                self.end_headers()
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()}"')
            self.send_header("X-Repo-Commit", COMMIT)
            self.end_headers()
            if with_body:
                self.wfile.write(body)

    return Hub


@pytest.fixture
def served(tiny_bert, tmp_path, monkeypatch):
    """The address of a hub that has the tiny BERT and a pickle; downloads go to an empty cache."""
    from huggingface_hub import constants

    files = {path.name: path.read_bytes() for path in Path(tiny_bert).iterdir() if path.is_file()}
    files["pytorch_model.bin"] = b"a pickle that must not be fetched"
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(files))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/resolve/{revision}/{filename}")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("BOTH_WAYS_HUB", "on")
    yield files
    server.shutdown()
    server.server_close()


def test_a_download_tells_its_progress_and_takes_no_pickle(served):
    said = []
    folder = hub.download(NAME, lambda done, total: said.append((done, total)))
    assert (folder / "model.safetensors").read_bytes() == served["model.safetensors"]
    assert not (folder / "pytorch_model.bin").exists()
    total = said[-1][1]
    assert said[0] == (0, total)
    assert said[-1][0] == total
    assert total >= len(served["model.safetensors"])
    assert [done for done, _ in said] == sorted(done for done, _ in said)


def test_a_second_download_fetches_nothing(served):
    hub.download(NAME)
    said = []
    hub.download(NAME, lambda done, total: said.append((done, total)))
    assert said == [(0, 0)]


def test_a_watched_download_can_be_stopped_and_taken_up_again(served):
    def stop(done: int, total: int) -> None:
        if done:
            raise hub.Cancelled("stopped")

    with pytest.raises(hub.Cancelled):
        hub.download(NAME, stop)
    assert (hub.download(NAME) / "model.safetensors").exists()


def test_a_missing_model_is_said(served):
    with pytest.raises(LoadError, match="no such public model"):
        hub.download("someone/else", lambda done, total: None)


@pytest.fixture
def cut_off(served, monkeypatch):
    """Call it, and the hub can't be reached any more."""
    from huggingface_hub import constants

    def cut() -> None:
        address = "http://127.0.0.1:9"
        monkeypatch.setattr(constants, "ENDPOINT", address)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/{revision}/{filename}")

    return cut


def test_no_network_is_said(cut_off):
    cut_off()
    for ask in (hub.size, hub.download):
        with pytest.raises(LoadError, match=r"can't be reached \(ConnectError\); the shipped models work"):
            ask(NAME)


def test_a_model_that_was_fetched_opens_without_network(served, cut_off, monkeypatch):
    assert hub.cached(NAME) is None
    hub.download(NAME)
    cut_off()
    monkeypatch.setenv("BOTH_WAYS_HUB", "off")
    assert load_model(NAME).info.tasks == ("fill-mask", "nsp")


def test_the_size_is_that_of_what_is_still_to_fetch(served):
    wanted = [name for name in served if name != "pytorch_model.bin"]
    assert hub.size(NAME) == sum(len(served[name]) for name in wanted)
    assert hub.cached(NAME) is None
    hub.download(NAME)
    assert hub.size(NAME) == 0


def test_a_part_of_a_model_does_not_count_as_fetched(served):
    def stop(done: int, total: int) -> None:
        if done > total - len(served["model.safetensors"]):  # within the weights, which come last
            raise hub.Cancelled("stopped")

    with pytest.raises(hub.Cancelled):
        hub.download(NAME, stop)
    assert hub.cached(NAME) is None
    assert hub.size(NAME) == len(served["model.safetensors"])


def test_shards_count_as_fetched_only_together(served):
    served["model-2.safetensors"] = served.pop("model.safetensors")
    served["model.safetensors.index.json"] = json.dumps(
        {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}).encode()
    hub.download(NAME)
    assert hub.cached(NAME) is None


def test_a_model_above_the_limit_is_refused_before_a_byte_is_fetched(served, monkeypatch):
    monkeypatch.setattr(hub, "MAX_BYTES", 2**20)
    served["model.safetensors"] = bytes(3 * 2**20)
    said = []
    for ask in (hub.size, lambda name: hub.download(name, lambda done, total: said.append(done))):
        with pytest.raises(LoadError, match="it has 3 MiB, and at most 1 MiB are fetched"):
            ask(NAME)
    assert said == []


def test_a_server_that_sends_more_than_it_said_is_stopped(served, monkeypatch):
    monkeypatch.setattr(hub, "MAX_BYTES", sum(map(len, served.values())))
    wanted = hub._wanted(NAME)
    served["model.safetensors"] = bytes(2 * hub.MAX_BYTES)
    monkeypatch.setattr(hub, "_wanted", lambda name: wanted)
    with pytest.raises(LoadError, match="at most"):
        hub.download(NAME)


def test_a_model_with_pickled_weights_alone_is_refused_at_once(served):
    del served["model.safetensors"]
    with pytest.raises(LoadError, match="no safetensors"):
        hub.size(NAME)


@pytest.mark.parametrize(("count", "said"), [(438 * 2**20, "438 MiB"), (2**30 - 1, "1,024 MiB"), (2**31, "2.0 GiB")])
def test_bytes_in_words(count, said):
    assert hub.in_words(count) == said


def test_a_closed_room_downloads_nothing(monkeypatch):
    monkeypatch.setenv("BOTH_WAYS_HUB", "off")
    with pytest.raises(LoadError, match="switched off"):
        hub.download(NAME)

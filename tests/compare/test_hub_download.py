"""Downloading from a hub: a small server on this machine that speaks its protocol."""

from __future__ import annotations

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bert_core import LoadError, hub

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


def test_no_network_is_said(served, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", "http://127.0.0.1:9/{repo_id}/{revision}/{filename}")
    with pytest.raises(LoadError, match="can't be reached.*shipped models work"):
        hub.download(NAME, lambda done, total: None)


def test_a_closed_room_downloads_nothing(monkeypatch):
    monkeypatch.setenv("BOTH_WAYS_HUB", "off")
    with pytest.raises(LoadError, match="switched off"):
        hub.download(NAME)

"""However many files a visitor puts on the server, it keeps a few; and all visitors' together have a ceiling."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.web.server.starlette import starlette_routes

from tests.payloads import said, visit
from ui import uploads

MB = 2**20


@pytest.fixture
def store(monkeypatch) -> MemoryUploadedFileManager:
    monkeypatch.setattr(MemoryUploadedFileManager, "add_file", MemoryUploadedFileManager.add_file)  # it comes back
    for _ in range(2):
        uploads.bound()
    return MemoryUploadedFileManager("/_stcore/upload_file")


@pytest.fixture
def put(store, monkeypatch):
    """put(session, file, size): one upload by Streamlit's own route, without a Content-Length."""
    monkeypatch.setattr(starlette_routes, "is_xsrf_enabled", lambda: False)
    runtime = SimpleNamespace(is_active_session=lambda session: True)
    client = TestClient(Starlette(routes=starlette_routes.create_upload_routes(runtime, store, None)))

    def send(session: str, file: str, size: int, name: str = "a.csv"):
        head = f'--B\r\nContent-Disposition: form-data; name="f"; filename="{name}"\r\nContent-Type: text/csv\r\n\r\n'
        return client.put(f"/_stcore/upload_file/{session}/{file}", content=iter([head.encode(), b"y" * size,
                          b"\r\n--B--\r\n"]), headers={"Content-Type": "multipart/form-data; boundary=B"})

    return send


def kept(store, session: str) -> list[str]:
    return list(store.file_storage.get(session, ()))


def size(store) -> int:
    return sum(uploads._bytes(*files.values()) for files in store.file_storage.values())


def test_a_session_has_its_newest_files(store, put):
    for n in range(10):
        assert put("one", f"f{n}", 10).status_code == 204
    assert put("two", "g", 10).status_code == 204
    assert kept(store, "one") == ["f6", "f7", "f8", "f9"]
    assert put("one", "f6", 20).status_code == 204
    assert kept(store, "one") == ["f7", "f8", "f9", "f6"]
    assert kept(store, "two") == ["g"]


def test_large_ones_are_fewer(store, put):
    for n in range(6):
        assert put("one", f"f{n}", 5 * MB - 2000).status_code == 204
        assert size(store) <= uploads.BYTES
    assert kept(store, "one") == ["f4", "f5"]


def test_a_name_counts_as_well(store, put):
    for n in range(4):
        put("one", f"f{n}", 1, name="n" * 4 * MB)
    assert size(store) <= uploads.BYTES


def test_all_together_have_a_ceiling_until_files_or_sessions_go(store, put, monkeypatch):
    monkeypatch.setattr(uploads, "MOST", 3 * MB)
    assert [put(f"tab {n}", "f", MB - 2000).status_code for n in range(3)] == [204] * 3
    refused = put("tab 3", "f", MB - 2000)
    assert (refused.status_code, "\n" in refused.text) == (413, False)
    assert "try again" in refused.text
    assert put("tab 0", "f", MB - 2000).status_code == 204, "its own place may be used again"
    store.remove_file("tab 0", "f")
    assert put("tab 3", "f", MB - 2000).status_code == 204
    store.remove_session_files("tab 1")
    assert put("tab 4", "f", MB - 2000).status_code == 204
    assert size(store) <= uploads.MOST


def test_a_file_that_comes_after_its_tab_has_gone_is_not_kept(store, put, monkeypatch):
    monkeypatch.setattr(uploads.visitors, "is_connected", lambda session: False)
    assert put("one", "f", 10).status_code == 400
    assert not store.file_storage


@pytest.mark.parametrize(("headers", "cookies", "protected", "refused"), [
    ({"Host": "a"}, {"both_ways": "1"}, True, True), ({"Host": "a"}, {uploads.XSRF_COOKIE: "2|a"}, True, False),
    ({"Host": "a"}, {}, False, False), ({}, {}, True, False),
])
@pytest.mark.parametrize(("page", "parameters"), [("finetune", {"task": "Your own table"}), ("pretrain", {})])
def test_a_browser_without_cookies_is_told_why_its_files_are_refused(
        monkeypatch, headers, cookies, protected, refused, page, parameters):
    """Streamlit itself would say "AxiosError: Request failed with status code 403"."""
    context = SimpleNamespace(headers=headers, cookies=cookies)
    monkeypatch.setattr(uploads, "st", SimpleNamespace(context=context, get_option=lambda _: protected))
    at = visit(page, **parameters)
    assert ("keeps no cookies" in said(at)) == refused
    (uploader,) = at.get("file_uploader")
    assert uploader.proto.disabled == refused

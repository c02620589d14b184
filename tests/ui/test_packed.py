"""Scripts and styles go out compressed, each compressed once; nothing else is touched."""

import asyncio
import gzip
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.responses import FileResponse

from ui import packed
from ui.packed import SendPacked

SCRIPT = b"let answer = 42; " * 400
FOR_EVER = [(b"cache-control", b"public, immutable, max-age=31536000"), (b"content-type", b"text/javascript")]


class Inner:
    """An application that gives the same script at every address, in two parts."""

    def __init__(self, headers=None, status: int = 200, script: bytes = SCRIPT) -> None:
        self.asked: list[str] = []
        self.headers, self.status, self.script = FOR_EVER if headers is None else headers, status, script

    async def __call__(self, scope, receive, send) -> None:
        self.asked.append(scope["path"])
        await asyncio.sleep(0.01)  # others come meanwhile
        half = len(self.script) // 2
        length = (b"content-length", str(len(self.script)).encode())
        await send({"type": "http.response.start", "status": self.status, "headers": [*self.headers, length]})
        await send({"type": "http.response.body", "body": self.script[:half], "more_body": True})
        await send({"type": "http.response.body", "body": self.script[half:]})


async def gone() -> dict[str, str]:
    """What a visitor says who has closed the page."""
    return {"type": "http.disconnect"}


def ask(app, *paths: str, method: str = "GET", **headers: str) -> list[tuple[int, dict[str, str], bytes]]:
    """Status, headers and body of the answers to requests that all come at once."""

    async def one(path: str):
        sent: list[dict] = []

        async def send(message):
            sent.append(message)

        said = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        await app({"type": "http", "method": method, "path": path, "headers": said}, gone, send)
        named = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return sent[0]["status"], named, b"".join(message.get("body", b"") for message in sent[1:])

    async def all_of_them():
        return await asyncio.gather(*(one(path) for path in paths))

    with ThreadPoolExecutor(1) as own:  # Playwright's loop may be running in this thread
        return own.submit(asyncio.run, all_of_them()).result()


def test_a_class_that_comes_at_once_gets_what_was_compressed_once():
    inner = Inner()
    answers = ask(SendPacked(inner), *["/static/js/a.js"] * 30, accept_encoding="gzip, br")
    assert inner.asked == ["/static/js/a.js"]
    for status, headers, body in answers:
        assert (status, headers["content-encoding"], headers["vary"]) == (200, "gzip", "Accept-Encoding")
        assert len(body) == int(headers["content-length"]) < len(SCRIPT) / 10
        assert gzip.decompress(body) == SCRIPT


def test_who_leaves_while_a_script_is_compressed_cuts_it_short_for_nobody(tmp_path):
    """Starlette's own answer with a file, which ends when its visitor does."""
    file = tmp_path / "a.js"
    file.write_bytes(SCRIPT * 100)  # ten pieces

    async def give_file(scope, receive, send):
        await FileResponse(file, headers={"cache-control": "immutable"})(scope, receive, send)

    app = SendPacked(give_file)
    for _ in range(2):
        ((status, _, body),) = ask(app, "/static/js/a.js", accept_encoding="gzip")
        assert status == 200
        assert gzip.decompress(body) == SCRIPT * 100


def test_what_was_cut_short_all_the_same_is_neither_sent_nor_kept():
    async def stop_halfway(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [*FOR_EVER]})
        await send({"type": "http.response.body", "body": SCRIPT, "more_body": True})

    app = SendPacked(stop_halfway)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="cut short"):
            ask(app, "/static/js/a.js", accept_encoding="gzip")


@pytest.mark.parametrize("request_", [
    {"path": "/static/media/a.woff2"}, {"path": "/static/./js/a.js"}, {"path": "/static//a.js"}, {"method": "HEAD"},
    {"accept_encoding": "br"}, {"range": "bytes=0-9"}, {"if_none_match": '"a"'}, {"if_modified_since": "yesterday"}],
    ids=str)
def test_any_other_request_goes_through_as_it_is(request_):
    inner = Inner()
    asked = {"accept_encoding": "gzip", "path": "/static/js/a.js", **request_}
    app = SendPacked(inner)
    for _ in range(2):
        ((_, headers, body),) = ask(app, asked.pop("path", request_.get("path", "/static/js/a.js")), **asked)
        assert "content-encoding" not in headers
        assert body == SCRIPT
    assert len(inner.asked) == 2


@pytest.mark.parametrize("inner", [Inner(headers=[(b"cache-control", b"no-cache")]), Inner(status=404)],
                         ids=["may change", "not found"])
def test_what_may_change_is_not_kept(inner):
    app = SendPacked(inner)
    for _ in range(2):
        ((status, _, body),) = ask(app, "/a.js", accept_encoding="gzip")
        assert status == inner.status
        assert gzip.decompress(body) == SCRIPT
    assert len(inner.asked) == 2


def test_what_is_kept_is_bounded(monkeypatch):
    monkeypatch.setattr(packed, "MOST", 300)
    inner = Inner()
    app = SendPacked(inner)
    addresses = [f"/{number}.js" for number in range(6)]
    for _, _, body in ask(app, *addresses, *addresses, accept_encoding="gzip"):
        assert gzip.decompress(body) == SCRIPT
    size = len(body)
    assert len(inner.asked) == 6 + 6 - 300 // size


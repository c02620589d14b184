"""What a browser fetches once: every component has an address by its content, and the head names the small fonts."""

import gzip
import re

import pytest
from streamlit import config

from tests.ui.test_packed import Inner, ask
from ui import look, served
from ui.look import AddLook

PAGE = (b'<html><head><link\n rel="preload"\n href="./static/media/SourceSansVF-Upright.ttf.B.woff2"\n as="font"\n'
        b'/><script type="module" src="./static/js/index.js"></script></head><body></body></html>' + b" " * 1000)
HTML = [(b"content-type", b"text/html; charset=utf-8"), (b"cache-control", b"no-cache")]


def test_every_component_has_its_address_and_names_its_content():
    shown = {path.stem for path in served.COMPONENTS.glob("*.js") if "." not in path.stem and path.stem[0] != "_"}
    for name in shown:
        address = served.address(name, "js")
        assert re.fullmatch(rf"bothways/{name}\.[0-9a-f]{{16}}\.js", address)
        body, kind = served.files()[address.removeprefix("bothways/")]
        assert kind == "text/javascript"
        assert body.count(b"\nexport default function") == 1
        assert address in served.loader(name)
    assert len({served.address(name, "js") for name in shown}) == len(shown)


def test_what_streamlit_is_given_for_a_component_is_small():
    assert max(len(served.loader(name)) for name in ("attention", "ready")) < 600


@pytest.mark.parametrize(("base", "path"), [("", "/bothways/{file}"), ("/bert/", "/bert/bothways/{file}")])
def test_the_address_stands_below_the_explorers_own(monkeypatch, base, path):
    monkeypatch.setattr(config, "get_option", {"server.baseUrlPath": base}.get)
    assert [route.path for route in served.routes()] == [path]


def test_a_page_names_its_style_and_the_small_fonts_and_streamlits_is_not_asked_for():
    ((_, headers, body),) = ask(AddLook(Inner(HTML, script=PAGE)), "/masking", accept="text/html", range="bytes=0-9")
    assert int(headers["content-length"]) == len(body)
    text = body.decode()
    assert "SourceSansVF" not in text
    assert text.index("@font-face") < text.index("</head>") < text.index(served.address("app", "css"))
    for name in look.FACES:
        assert served.address(name, "woff2") in text
        assert served.files()[served.address(name, "woff2").removeprefix("bothways/")][0][:4] == b"wOF2"


def test_a_page_is_still_compressed():
    ((_, headers, body),) = ask(AddLook(Inner(HTML, script=PAGE)), "/masking", accept="text/html",
                                accept_encoding="gzip")
    assert headers["content-encoding"] == "gzip"
    assert "@font-face" in gzip.decompress(body).decode()


@pytest.mark.parametrize("inner", [Inner(HTML, script=b"<p>no head</p>"), Inner(HTML, status=404, script=PAGE),
                                   Inner(script=PAGE)], ids=["no head", "not found", "a script"])
def test_what_is_no_page_is_left_as_it_is(inner):
    ((_, _, body),) = ask(AddLook(inner), "/x", accept="text/html")
    assert body == inner.script


def test_nobody_who_wants_no_page_gets_one_changed():
    ((_, _, body),) = ask(AddLook(Inner(HTML, script=PAGE)), "/masking", accept="*/*")
    assert body == PAGE

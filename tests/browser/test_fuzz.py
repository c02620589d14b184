"""Random texts, links, uploads and component messages: no traceback, no stuck session."""

from __future__ import annotations

import random
import urllib.parse
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Route, expect

from bert_core.load import shipped_names
from tests.browser.waiting import PATIENCE
from ui import shell

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

PAGES = [name for pages in shell.PAGES.values() for name, _ in pages]
#: Pieces of what somebody might type.
PIECES = ("the dog", "[MASK]", "[CLS]", "🙂👩‍👩‍👧‍👦", "שלום مرحبا", "漢字かな", "<script>window.hacked=1</script>",
          "<img src=x onerror=window.hacked=1>", "\u0007\u001b[31m", "\u202e\u200b\ufeff", "e\u0301\u0301\u0301",
          "%s{x}$x$", "'; DROP TABLE", "../../etc/passwd", "\\x00\\ud800", "-1e999", "&amp;&#0;", "𝔘𝔫𝔦", "a" * 300, " ")
#: Parameters that a page, or the frame of all, reads from the address.
KEYS = ("text", "pair", "model", "view", "layer", "head", "token", "mask", "at", "look", "off", "cut", "step", "cell",
        "word", "own", "lines", "size", "layers", "hidden", "heads", "stage", "line", "task", "way", "run", "over",
        "film", "frame", "experiment", "lesson", "room", "present", "changed", "explain", "nsp", "bertviz", "cost",
        "shown", "seed", "rate", "write", "behind", "other", "start", "segments", "tune", "look", "length", "tour",
        "fed", "opened", "edge", "guess", "pick", "temperature", "class",
        "elsewhere", "count", "give", "also", "shares",
        "follow")
#: Longest query string that is asked for, in characters.
LONGEST_LINK = 6000
#: Page, parameters that open its uploader, and name of the file.
UPLOADS = (("finetune", {"task": "Your own table"}, "own.csv"), ("pretrain", {}, "own.txt"))
#: Where a component's code begins to draw.
HEAD = "export default function (component) {"
#: Sends the messages from each component that stands on the page; gives how many there are.
SEND = """messages => {
  const there = [...(window.mounted ?? [])].filter((one) => (one.parentElement.host ?? one.parentElement).isConnected);
  there.forEach((one) => messages.forEach((message) => one.setTriggerValue('event', message)));
  return there.length;
}"""
#: Whether the page is drawn for what the input of the sentence holds.
DRAWN = """() => document.querySelector('[data-ready]')?.getAttribute('data-text')
              === document.querySelector('[aria-label=Sentence]').value"""


def some_text(draw: random.Random) -> str:
    """Nothing, a few odd pieces, only masks, any code points, or far too much."""
    kind = draw.randrange(6)
    if kind == 0:
        return "[MASK] " * draw.randint(1, 40)
    if kind == 1:
        points = [*range(1, 0x300), *range(0x590, 0x700), *range(0x1F300, 0x1F700)]
        return "".join(chr(draw.choice(points)) for _ in range(draw.randint(0, 60)))
    if kind == 2:
        return (draw.choice(PIECES) + " ") * draw.randint(200, 3000)
    return draw.choice(("", " ", "\u3000")).join(draw.choices(PIECES, k=draw.randint(0, 9)))


def some_value(draw: random.Random) -> str:
    """What a parameter of the address might hold."""
    return draw.choice((
        lambda: str(draw.randint(-3, 40)), lambda: str(draw.randint(-10**30, 10**30)), lambda: "", lambda: "nan",
        lambda: ",".join(str(draw.randint(-2, 600)) for _ in range(draw.randint(1, 30))),
        lambda: draw.choice(shipped_names()), lambda: some_text(draw)[:400], lambda: "3.h2-5.t99.map", lambda: "true",
        lambda: f"{draw.randint(0, 9)}-{draw.randint(0, 99)}", lambda: '{"a": [1]}'))()


def some_message(draw: random.Random, depth: int = 0) -> Any:
    """Anything that JSON can hold, sometimes near to what a component really sends."""
    kind = draw.randrange(8)
    if kind < 3 and depth < 3:
        names = ("kind", "layer", "head", "token", "look", "selected", "heads", "pairs", "chosen", "key", "frame",
                 "done", "cell", "position", "at", "🙂", "")
        return {name: some_message(draw, depth + 1) for name in draw.sample(names, draw.randint(0, 8))}
    if kind == 3 and depth < 3:
        return [some_message(draw, depth + 1) for _ in range(draw.randint(0, 6))]
    return draw.choice((None, True, False, -1, 0, 3, 10**18, 0.5, -1e300, "view", "off", "next", some_text(draw)[:200],
                        [0] * 5000, list(range(20))))


def some_file(draw: random.Random) -> bytes:
    """Bytes that are no table and no text, or too much of one."""
    return draw.choice((
        lambda: b"", lambda: draw.randbytes(draw.randint(1, 5000)), lambda: b"text,kind\n" * draw.randint(1, 30000),
        lambda: b"text;kind\n" + b"".join(f"{some_text(draw)[:300]};{n % 4}\n".encode() for n in range(60)),
        lambda: b"\xff\xfe" + "text,kind\na,b\n".encode("utf-16-le"), lambda: b"a," * 200_000, lambda: b'"' * 9999,
        lambda: "Satz eins. \n\n漢字 🙂.\n".encode() * 40_000, lambda: b"\0" * 100_000, lambda: b"\n" * 100_000))()


def note_when_drawn(route: Route) -> None:
    """Make a component put itself into window.mounted."""
    code = route.fetch().text()
    assert code.count(HEAD) == 1
    noted = code.replace(HEAD, HEAD + " (window.mounted ??= new Set()).add(component);")
    route.fulfill(body=noted, content_type="text/javascript")


# --- one random input each ---------------------------------------------------------


def type_anything(visitor, draw: random.Random) -> None:
    """Type into one of the shared inputs, and wait until the page has drawn for what the inputs hold."""
    if draw.random() < 0.3:
        visitor.open(draw.choice(PAGES))
    label = draw.choice(("Sentence", "Sentence", "Sentence", "Second sentence"))
    text = some_text(draw).replace("\r", " ").replace("\n", " ")
    visitor.page.get_by_label(label, exact=True).fill(text)
    visitor.page.wait_for_function(DRAWN, timeout=PATIENCE)


def follow_anything(visitor, draw: random.Random) -> None:
    """Open a page with random parameters, some of them no valid UTF-8."""
    pairs = [(draw.choice(KEYS), some_value(draw)) for _ in range(draw.randint(1, 8))]
    query = urllib.parse.urlencode(pairs)[:LONGEST_LINK]
    query += draw.choice(("", "", "&%FF%FE=%C0%80", "&text=%ED%A0%80", "&=&&;", "&mask=%zz"))
    visitor.page.goto(f"{visitor.address}/{draw.choice(PAGES)}?{query}")


def send_anything(visitor, draw: random.Random) -> None:
    """Send random messages from every component of a page."""
    visitor.open(draw.choice(PAGES), text=f"The dog [MASK] {draw.randint(0, 99)} cats.")
    assert visitor.page.evaluate(SEND, [some_message(draw) for _ in range(6)]) > 0


def upload_anything(visitor, draw: random.Random) -> None:
    """Give a page that takes a file some bytes."""
    name, parameters, file = draw.choice(UPLOADS)
    page = visitor.open(name, **parameters)
    if name == "pretrain":
        page.get_by_role("button", name="Own text").click()
    content = {"name": file, "mimeType": "text/plain", "buffer": some_file(draw)}
    page.locator("input[type=file]").set_input_files(content)
    expect(page.get_by_test_id("stFileChip")).to_be_visible()
    page.keyboard.press("Escape")


KINDS = (type_anything, follow_anything, send_anything, upload_anything, type_anything, send_anything)


def check_it_answers(visitor, n: int) -> None:
    """No exception on the page, nothing of the input ran, and a new sentence is drawn."""
    visitor.wait_ready()
    visitor.no_traceback()
    visitor.page.get_by_label("Sentence", exact=True).fill(f"Answer [MASK] {n}.")
    visitor.wait_ready(f"Answer [MASK] {n}.")
    visitor.no_traceback()
    assert visitor.page.evaluate("window.hacked") is None


def give_anything(visitor, count: int, after_each: Callable[[], None] = lambda: None) -> None:
    """Give the explorer so many inputs, the same in each run; it has to answer after each."""
    draw = random.Random(count)
    visitor.page.route("**/bothways/*.js", note_when_drawn)
    visitor.open()
    for n in range(count):
        kind = KINDS[n % len(KINDS)]
        state = draw.getstate()[1][-1]
        try:
            kind(visitor, draw)
            check_it_answers(visitor, n)
        except Exception as error:
            error.add_note(f"input {n}, {kind.__name__}, state {state}, at {visitor.page.url[:2000]}")
            raise
        after_each()


def test_anything_gets_an_answer(visitor):
    give_anything(visitor, 4)

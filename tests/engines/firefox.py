"""Firefox, through WebDriver BiDi (W3C), which it speaks itself.

Selenium takes a driver between them that neither PyPI nor Debian has, and
Playwright a Firefox of its own; of the protocol these tests need six commands.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

from tests.engines.window import PATIENCE, SENTENCE, Window

_CONTROL = "\ue009"
#: Where the middle of an element is, after it was brought into view.
_MIDDLE = """const found = deep(arguments[0]).find((one) => one.innerText.includes(arguments[1]));
found?.scrollIntoView({block: "center", behavior: "instant"});
const box = found?.getBoundingClientRect();
return box ? [Math.round(box.x + box.width / 2), Math.round(box.y + box.height / 2)] : null;"""


class ProtocolError(RuntimeError):
    """What Firefox says it can't do."""


class Firefox(Window):
    """A window of Firefox."""

    def __init__(self, socket: ClientConnection) -> None:
        super().__init__()
        self._socket, self._numbers = socket, itertools.count(1)
        self._command("session.new", capabilities={})
        self._command("session.subscribe", events=["log.entryAdded"])
        (first,) = self._command("browsingContext.getTree")["contexts"]
        self._context = {"context": first["context"]}

    def _command(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; what the console says meanwhile is noted."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=PATIENCE))
            if message["type"] == "event" and message["params"]["level"] == "error":
                self.told.append(message["params"]["text"])
            if message.get("id") == number:
                if message["type"] == "error":
                    raise ProtocolError(f"{method}: {message['error']}: {message['message']}")
                return message["result"]

    def size(self, width: int, height: int) -> None:
        self._command("browsingContext.setViewport", **self._context, viewport={"width": width, "height": height})

    def go(self, url: str) -> None:
        self._command("browsingContext.navigate", **self._context, url=url, wait="none")

    def back(self) -> None:
        self._command("browsingContext.traverseHistory", **self._context, delta=-1)

    def run(self, code: str, *arguments: Any) -> Any:
        call = f"JSON.stringify((function () {{ {code} }})(...{json.dumps(arguments)}) ?? null)"
        try:
            answer = self._command("script.evaluate", expression=call, target=self._context, awaitPromise=True)
        except ProtocolError as gone:
            if "no such frame" in str(gone) or "discarded" in str(gone):
                return None
            raise
        if answer["type"] == "exception":
            raise AssertionError(answer["exceptionDetails"]["text"])
        return json.loads(answer["result"]["value"])

    def click(self, selector: str, text: str = "") -> None:
        x, y = self.wait(_MIDDLE, selector, text)
        self._act("pointer", {"type": "pointerMove", "x": x, "y": y}, {"type": "pointerDown", "button": 0},
                  {"type": "pointerUp", "button": 0})

    def write(self, text: str) -> None:
        self.click(SENTENCE)
        keys = [("keyDown", _CONTROL), ("keyDown", "a"), ("keyUp", "a"), ("keyUp", _CONTROL)]
        keys += [(what, letter) for letter in text for what in ("keyDown", "keyUp")]
        self._act("key", *({"type": what, "value": key} for what, key in keys))

    def _act(self, kind: str, *actions: dict[str, Any]) -> None:
        """What a hand does with one device."""
        self._command("input.performActions", **self._context,
                      actions=[{"type": kind, "id": kind, "actions": list(actions)}])


@contextlib.contextmanager
def firefox() -> Iterator[Firefox]:
    """A window of Firefox with a profile of its own; closed at the end."""
    binary = shutil.which("firefox") or shutil.which("firefox-esr")
    assert binary, "there is no Firefox; sh scripts/firefox.sh installs Debian's"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [binary, "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            with connect(f"{_address(Path(profile), process)}/session", max_size=2**26) as socket:
                yield Firefox(socket)
        finally:
            process.terminate()
            process.wait(30)


def _address(profile: Path, process: subprocess.Popen) -> str:
    """Where it listens, which Firefox writes into its profile as soon as it does."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError, json.JSONDecodeError):  # not there yet, or not to its end
            found = json.loads((profile / "WebDriverBiDiServer.json").read_text(encoding="utf-8"))
            return f"ws://{found['ws_host']}:{found['ws_port']}"
        time.sleep(0.05)
    raise AssertionError(f"Firefox never listened; it {'runs' if process.poll() is None else 'has ended'}")

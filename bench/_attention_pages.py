"""The two sides of `bench attention-view` as pages of a small local server.

Ours is the shipped component with the payload the page would send; the peer is
bertviz's own HTML, with require.js, d3 and jQuery from this server instead of
a content network.
"""

from __future__ import annotations

import http.server
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import bertviz
import numpy as np
import torch

from bert_core.bertviz_offline import SHIM, VENDOR
from bert_core.figures.attention import heads_payload
from bert_core.trace import Trace
from ui import components, served

#: Sets window.painted, in ms since navigation, once what was drawn before it has been painted.
PAINTED = "requestAnimationFrame(() => requestAnimationFrame(() => { window.painted = performance.now(); }));"
THEME = ("--st-font:sans-serif;--st-text-color:#1C1E22;--st-background-color:#FCFBF8;--st-border-color:#D9D5CB;"
         "--st-secondary-background-color:#F2F0EA;--st-primary-color:#0072B2")


class Site:
    """Files by path, the bytes sent for each path, and the address."""

    def __init__(self) -> None:
        self.files: dict[str, tuple[str, bytes]] = {}
        self.sent = 0
        self.address = ""

    def put(self, path: str, body: str | bytes, kind: str = "text/html; charset=utf-8") -> None:
        self.files[path] = (kind, body.encode("utf-8") if isinstance(body, str) else body)


@contextmanager
def serving() -> Iterator[Site]:
    """A site on a free port of this machine until the block ends."""
    site = Site()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            kind, body = site.files.get(self.path, ("text/plain", b""))
            self.send_response(200 if self.path in site.files else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(body)
            site.sent += len(body)

        def log_message(self, format: str, *args: object) -> None:
            """Quiet: standard output is the benchmark's."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    site.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()


# --- ours --------------------------------------------------------------------


def our_page(site: Site, trace: Trace, layer: int) -> str:
    """Build the payload and the page that draws it; gives back its path."""
    js, css = served.source("attention")
    script = js.replace("export default function (component)", "function start(component)")
    site.put("/ours.bin", components.pack(*heads_payload(trace, layer)), "application/octet-stream")
    site.put("/ours.html", f"""<!doctype html><meta charset="utf-8"><body style="margin:16px;{THEME}">
<div id="view"></div><script type="module">{script}
const shadow = document.getElementById("view").attachShadow({{ mode: "open" }});
const style = document.createElement("style");
style.textContent = {css!r};
shadow.append(style);
window.sent = [];
const data = new Uint8Array(await (await fetch("/ours.bin")).arrayBuffer());
start({{ parentElement: shadow, data, setTriggerValue: (name, message) => window.sent.push(message) }});
{PAINTED}
</script></body>""")
    return "/ours.html"


# --- stock bertviz -------------------------------------------------------------


def peer_page(site: Site, trace: Trace, view: str) -> str:
    """bertviz's own view as it comes, its three scripts from this site."""
    attention = [torch.from_numpy(np.array(layer))[None] for layer in trace.attention_probs]
    make = getattr(bertviz, f"{view}_view")
    body = make(attention, [str(token) for token in trace.tokens], html_action="return").data
    body = re.sub(r'src="[^"]*require[^"]*"', 'src="/require.js"', body)
    site.put("/require.js", SHIM, "text/javascript")
    for name in ("jquery-2.2.4.min.js", "d3-5.7.0.min.js"):
        site.put(f"/{name}", (VENDOR / name).read_bytes(), "text/javascript")
    path = f"/{view}.html"
    site.put(path, f"""<!doctype html><meta charset="utf-8"><body><script src="/jquery-2.2.4.min.js"></script>
<script src="/d3-5.7.0.min.js"></script>{body}<script>{PAINTED}</script></body>""")
    return path

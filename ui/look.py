"""What a page of HTML has beside Streamlit's own: the explorer's style, and small fonts.

The style is fetched once. Sent by the script it would go out again with every
heading, and to every student whom a room's bell calls. It stands last, so of
two rules that weigh the same it is the one that counts.

Each font is a part of one of Streamlit's (scripts/make_fonts.py): 90 kB in place
of 1.1 MB on a first visit. The head names them before Streamlit's scripts ask
for the large ones. Of two faces of one name the later counts where it has the
character; for any other character the browser fetches Streamlit's.

And the scripts that every page needs are named ahead (ui/ahead.py), a browser
that is too old for the style says so, what helps its reader leaves tokens and
numbers alone (ui/untouched.py), and a page without its server tells (ui/unreached.py).
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.gzip import GZipMiddleware

from ui import ahead, served, unreached, untouched

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: What the fonts of text have: Latin, and the signs that the pages use.
TEXT = ("U+0020-007E, U+00A0-00FF, U+03A3, U+03C1, U+2000-209F, U+2190-2193, U+2205, U+2212, U+221A, U+2423, "
        "U+25A0-25FF, U+2713, U+2717")
#: File -> what @font-face says of it.
FACES = {
    "sans": f"font-family: 'Source Sans'; font-weight: 100 900; unicode-range: {TEXT}",
    "italic": f"font-family: 'Source Sans'; font-weight: 100 900; font-style: italic; unicode-range: {TEXT}",
    "serif": f"font-family: 'Source Serif'; font-weight: 100 900; unicode-range: {TEXT}",
    "icons": "font-family: 'Material Symbols Rounded'; font-weight: 400; font-display: block",
}
#: Where Streamlit has its large font of text fetched at once.
PRELOAD = re.compile(r"<link\s+rel=\"preload\"\s+href=\"[^\"]*SourceSans[^\"]*\"[^>]*>")
#: Streamlit asks for its whole font of icons before there is one on the page; a page's own icons fetch theirs.
ASK_LATER = """<script>
{ const load = document.fonts.load.bind(document.fonts);
  document.fonts.load = (font, ...text) =>
    font.includes("Material Symbols") ? Promise.resolve([]) : load(font, ...text); }
</script>"""
#: What an older browser says first, in words and a script that it knows; the pages' style needs both that it is asked.
TOO_OLD = """<script>
if (!(window.CSS && CSS.supports("color", "light-dark(red, red)") && CSS.supports("selector(:has(a))"))) {
  var said = document.body.appendChild(document.createElement("p"));
  said.setAttribute("role", "status");
  said.textContent = "This browser is too old for parts of these pages. They are made for Chrome and Edge 123, " +
    "Firefox 121, Safari 17.5 and newer. (A click here takes this line away.)";
  said.style.cssText = "position: fixed; left: 0; right: 0; bottom: 0; z-index: 999999; margin: 0; " +
    "padding: 12px 16px; background: #FFF3CD; color: #1C1E22; font: 16px/1.4 sans-serif";
  said.onclick = function () { said.remove(); };
}
</script>"""
#: What a request for a page must not say: its answer is changed here, and compressed after that.
UNSAID = (b"accept-encoding", b"if-none-match", b"if-modified-since", b"range")


class AddLook:
    """ASGI middleware for pages of HTML; everything else goes through as it is."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._packing = GZipMiddleware(self._add, minimum_size=1000)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_visit = scope["type"] == "http" and scope["method"] == "GET"
        is_visit = is_visit and "text/html" in Headers(scope=scope).get("accept", "")
        await (self._packing if is_visit else self.app)(scope, receive, send)

    async def _add(self, scope: Scope, receive: Receive, send: Send) -> None:
        start: Message | None = None
        body = b""

        async def change(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start" and is_page(message):
                start = message
                return
            if start is None:
                await send(message)
                return
            body += message.get("body", b"")
            if not message.get("more_body", False):
                changed = with_look(body)
                headers = MutableHeaders(raw=list(start["headers"]))
                headers["content-length"] = str(len(changed))
                await send({**start, "headers": headers.raw})
                await send({"type": "http.response.body", "body": changed})

        said = [(name, value) for name, value in scope["headers"] if name.lower() not in UNSAID]
        await self.app({**scope, "headers": said}, receive, change)


def is_page(start: Message) -> bool:
    """Whether an answer that begins so is a page."""
    return start["status"] == 200 and Headers(raw=start["headers"]).get("content-type", "").startswith("text/html")


@functools.lru_cache(maxsize=4)
def with_look(page: bytes) -> bytes:
    """The page of Streamlit with all that; one without head or body is left as it is."""
    rules = "".join(f"@font-face {{ {face}; src: url({served.address(name, 'woff2')}) format('woff2') }}\n"
                    for name, face in FACES.items())
    early = "".join(f'<link rel="preload" href="{served.address(name, "woff2")}" as="font" crossorigin>\n'
                    for name in ("sans", "icons"))
    text = PRELOAD.sub("", page.decode("utf-8", "replace"))
    scripts = [served.address("ready", "js"), *(f"./static/js/{name}" for name in ahead.needed() if name not in text)]
    early += "".join(f'<link rel="modulepreload" crossorigin href="{script}">\n' for script in scripts)
    own = "\n".join((ASK_LATER, untouched.SCRIPT, unreached.SCRIPT))
    text = text.replace("</head>", f"{early}<style>\n{rules}</style>\n{own}\n</head>", 1)
    style = f'<link rel="stylesheet" href="{served.address("app", "css")}">'
    return text.replace("</body>", f"{style}\n{TOO_OLD}\n</body>", 1).encode()

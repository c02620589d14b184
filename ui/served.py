"""What a browser fetches once and keeps: the style of the pages, the components' code and styles, and small fonts.

An address is bothways/NAME.HASH.EXT, below the folder that the pages are in; the
hash is of what is in it, so a browser never asks again. A message of Streamlit
carries all the code of its component, and a new picture is a new message: sent
that way, four fifths of what a key press brings would be code that is there.
"""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from streamlit import config

ASSETS = Path(__file__).resolve().parent.parent / "assets"
COMPONENTS, FONTS = ASSETS / "components", ASSETS / "fonts"
PLACE = "bothways"
KEEP = {"Cache-Control": "public, immutable, max-age=31536000", "X-Content-Type-Options": "nosniff"}
#: What Streamlit is given as a component's code. A network that drops out gets another try: a browser keeps the
#: failure of an address as well as it keeps what is there. The module itself waits for nothing: two of a component on
#: one page import it at once, and WebKit (Safari) hands one that waits to the second before it is ready.
LOADER = """
const load = async (address) => {
  for (let tries = 0; ; tries++) try {
    return await import(new URL(tries ? `${address}?${tries}` : address, document.baseURI).href);
  } catch (problem) {
    console.warn(problem);
    await new Promise((next) => setTimeout(next, Math.min(1000 * (tries + 1), 5000)));
  }
};
let code;
export default async (component) => (await (code ??= load("%s"))).default(component);
"""
#: After a component's code: what draws, within its style.
WITHIN_STYLE = """
const SHEET = new CSSStyleSheet();
SHEET.replaceSync(%s);
export default function (component) {
  const root = component.parentElement;
  if (root instanceof ShadowRoot && !root.adoptedStyleSheets.includes(SHEET)) root.adoptedStyleSheets.push(SHEET);
  return drawComponent(component);
}
"""


def routes() -> list[Route]:
    """Everything of `bothways/`."""
    base = str(config.get_option("server.baseUrlPath") or "").strip("/")
    return [Route(f"{'/' if base else ''}{base}/{PLACE}/{{file}}", _answer, methods=["GET", "HEAD"])]


async def _answer(request: Request) -> Response:
    found = files().get(request.path_params["file"])
    if found is None:
        return PlainTextResponse("no such file\n", status_code=404)
    body, kind = found
    return Response(body, media_type=kind, headers=KEEP)


@functools.cache
def files() -> dict[str, tuple[bytes, str]]:
    """Name with its hash -> content and media type, of everything there is."""
    modules = sorted({path.stem for path in COMPONENTS.glob("*.js") if "." not in path.stem} - {"_base"})
    fonts = sorted(path.stem for path in FONTS.glob("*.woff2"))
    return {_named("app", "css"): (content("app", "css"), "text/css"),
            **{_named(name, "js"): (content(name, "js"), "text/javascript") for name in modules},
            **{_named(name, "woff2"): (content(name, "woff2"), "font/woff2") for name in fonts}}


def address(name: str, kind: str) -> str:
    """Of a component ('js'), a font ('woff2') or the style ('app', 'css'), from the folder that the pages are in."""
    return f"{PLACE}/{_named(name, kind)}"


@functools.cache
def content(name: str, kind: str) -> bytes:
    """A font, the style of the pages, or a component as one module with its style."""
    if kind == "woff2":
        return (FONTS / f"{name}.woff2").read_bytes()
    if kind == "css":
        pages_own = COMPONENTS.glob("*.page.css")  # of lines beside a component
        return b"".join(path.read_bytes() for path in (*sorted(ASSETS.glob(f"{name}*.css")), *sorted(pages_own)))
    js, css = source(name)
    return (js.replace("export default function", "function drawComponent") + WITHIN_STYLE % json.dumps(css)).encode()


@functools.cache
def _named(name: str, kind: str) -> str:
    return f"{name}.{hashlib.sha256(content(name, kind)).hexdigest()[:16]}.{kind}"


@functools.cache
def source(name: str) -> tuple[str, str]:
    """JS and CSS of a component."""
    shared = [COMPONENTS / "_base.js", *sorted(COMPONENTS.glob("_base.*.js"))]
    own = [*sorted(COMPONENTS.glob(f"{name}.*.js")), COMPONENTS / f"{name}.js"]
    code = "\n".join(file.read_text(encoding="utf-8") for file in (*shared, *own))
    css = (COMPONENTS / "tokens.css").read_text(encoding="utf-8")
    extra = COMPONENTS / f"{name}.css"
    if extra.exists():
        css += extra.read_text(encoding="utf-8")
    return f"\n{code}\n", f"\n{css}\n"


def loader(name: str) -> str:
    """What fetches a component; the newline in front keeps Streamlit from taking it for a path."""
    return LOADER % address(name, "js")

"""The Attention page's export view: numbers as CSV and npz, the interactive view as one HTML file."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Callable
from typing import Any

import numpy as np
import streamlit as st

from bert_core.figures.attention import heads_payload, map_csv
from bert_core.measures.attention import shown_map
from bert_core.trace import Trace, TraceRequest
from ui import chips, components, served, state
from ui.state import Here
from ui.views import attention

#: Bytes of exact weights that a file may hold; beyond, only the open layer is exact in it.
FILE_BYTES = 8 * 2**20


def draw(here: Here) -> None:
    """What can be taken away, and what each file holds."""
    layer, head = attention.opened(here)
    asked = attention.request(here)
    state.trace(asked)  # what can't be run is said here, not at the click
    look = state.param("look", attention.parse_look, "")
    token = state.param("token", chips.place(len(here.encoding)), None)
    name, place = "attention", f"layer {layer + 1}, head {head + 1}"
    rows = (
        ("CSV", f"The map of {place}, as it is shown under All heads (hidden tokens, words, threshold).",
         later(asked, shown_csv, layer, head, look), f"{name}-layer{layer + 1}-head{head + 1}.csv", "text/csv"),
        ("npz", "Every weight of every layer and head, as the model computed them, with the tokens: a NumPy archive.",
         later(asked, archive), f"{name}.npz", "application/octet-stream"),
        ("HTML", "The interactive grid and head in one file that opens from disk with no network.",
         later(asked, standalone, layer, head, look, token), f"{name}.html", "text/html"),
    )
    for kind, what, make, file, mime in rows:
        left, right = st.columns([1, 4], vertical_alignment="center")
        left.download_button(f"Save {kind}", make, file, mime, key=f"save_{kind}", on_click="ignore", width="stretch")
        right.markdown(what)
    st.markdown("**PNG and SVG** of the picture: the buttons below it, under All heads.")


def later(asked: TraceRequest, make: Callable[..., str | bytes], *rest: Any) -> Callable[[], str | bytes]:
    """What makes a file at the click, of the Trace as the engine has it then.

    Streamlit keeps it for as long as the page is open; with a Trace of a long text in it, a class would take gigabytes.
    """
    engine = state.engine()
    return lambda: make(engine.run(asked), *rest)


def shown_csv(trace: Trace, layer: int, head: int, look: str) -> str:
    """The map of one head as the picture shows it."""
    labels, weights = shown_map(trace, trace.attention_probs[layer, head], attention.options_of(look))
    return map_csv(labels, weights)


def archive(trace: Trace) -> bytes:
    """The Trace's arrays as .npz, no pickled objects."""
    out = io.BytesIO()
    np.savez_compressed(out, **trace.arrays, attention_kind=np.array(trace.attention_kind), model=np.array(trace.model))
    return out.getvalue()


def standalone(trace: Trace, layer: int, head: int, look: str = "", token: int | None = None) -> str:
    """The component, its style and its numbers as one page that fetches nothing.

    Args:
        look: how the head is drawn, as the address says it.
        token: position of the token that is pinned.
    """
    small = 2 * trace.attention_probs.size <= FILE_BYTES
    header, arrays = heads_payload(trace, layer, head, every_layer=small)
    header |= {"look": look, "token": token, "standalone": True}
    data = base64.b64encode(components.pack(header, arrays)).decode("ascii")
    js, css = served.source("attention")
    script = js.replace("export default function (component)", "function start(component)").replace("</", "<\\/")
    sentence = html.escape(" / ".join(filter(None, (trace.encoding.text, trace.encoding.pair))))
    return PAGE.format(model=html.escape(trace.model), sentence=sentence, css=css, script=script, data=data)


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Attention of {model}</title>
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:">
<style>
:root {{ color-scheme: light dark; --st-font: system-ui, sans-serif; --st-text-color: #1C1E22;
  --st-background-color: #FCFBF8; --st-secondary-background-color: #F2F0EA; --st-border-color: #D9D5CB;
  --st-primary-color: #0072B2; }}
@media (prefers-color-scheme: dark) {{ :root {{ --st-text-color: #ECEAE4; --st-background-color: #16181C;
  --st-secondary-background-color: #22252B; --st-border-color: #3A3E46; --st-primary-color: #56B4E9; }} }}
body {{ margin: 1.5rem auto; padding: 0 1rem; max-width: 1400px; font-family: var(--st-font);
  background: var(--st-background-color); color: var(--st-text-color); }}
</style></head>
<body><h1>Who looks at whom?</h1><p>“{sentence}” · {model}</p><div id="view"></div>
<template id="style"><style>{css}</style></template>
<script type="module">
{script}
const host = document.getElementById("view"), shadow = host.attachShadow({{ mode: "open" }});
shadow.append(document.getElementById("style").content.cloneNode(true));
const data = Uint8Array.from(atob("{data}"), (letter) => letter.charCodeAt(0));
start({{ parentElement: shadow, data, setTriggerValue() {{}} }});
</script></body></html>
"""

"""bertviz 1.4.1's three views of a Trace as one page each that needs no network (Vig 2019, arXiv 1906.05714).

Stock bertviz loads require.js, d3 and jQuery from a content network, runs its
own forked models for the neuron view, and embeds its numbers twice. Here the
libraries stand in the page, the Trace is offered as its model, and the numbers
stand there once, rounded to three digits.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from bert_core.trace import Array, Trace

VENDOR = Path(__file__).resolve().parent.parent / "assets" / "vendor"
#: Tokens that a view can bear in a browser.
LIMITS = {"Head view": 64, "Model view": 32, "Neuron view": 64}
#: Trace arrays that the views need.
PARTS = {"Head view": ("attention_probs",), "Model view": ("attention_probs",),
         "Neuron view": ("attention_probs", "query", "key")}
#: The page may run what stands in it and fetch nothing.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
#: All that the views use of require.js.
SHIM = "window.require={config(){}};window.requirejs=(names,run)=>run(window.jQuery,window.d3);"


class TooLong(ValueError):
    """The input has more tokens than the view can bear."""


def page(trace: Trace, view: str, layer: int = 0, head: int = 0, scale: float = 1.0) -> str:
    """One of bertviz's views as a whole HTML page, on a light background.

    Args:
        trace: with PARTS[view].
        view: of LIMITS.
        layer, head: opened first, 0-based.
        scale: how many times as large as bertviz draws it.

    Raises:
        TooLong: more tokens than LIMITS[view].
        ValueError: no such view.
    """
    if view not in LIMITS:
        raise ValueError(f"view {view!r}: choose one of {', '.join(LIMITS)}")
    if len(trace) > LIMITS[view]:
        raise TooLong(f"bertviz's {view.lower()} bears {LIMITS[view]} tokens; this input has {len(trace)}. "
                      "The other views of this page take any length.")
    body = _MAKERS[view](trace, layer, head)
    return _frame(_clean(body), scale)


def height(trace: Trace, view: str) -> int:
    """Pixels that the view takes; a model view of many layers or tokens is scrolled in its frame."""
    layers = trace.config.num_hidden_layers
    return {"Head view": 110 + 23 * len(trace), "Model view": min(1400, max(240, 120 + 7 * layers * len(trace))),
            "Neuron view": 160 + 26 * len(trace)}[view]


def rounded(array: Array) -> torch.Tensor:
    """Three digits, rounded in double precision, so that the text stays short."""
    return torch.from_numpy(np.round(array.astype(np.float64), 3))


def second_sentence(trace: Trace) -> int | None:
    """Where the second sentence starts, None if there is none."""
    segments = trace.encoding.sequence_ids
    return segments.index(1) if 1 in segments else None


def _attention(trace: Trace) -> list[torch.Tensor]:
    """(1, H, Tq, Tk) a layer, as transformers gives them."""
    return [layer[None] for layer in rounded(trace.attention_probs)]


def _head_view(trace: Trace, layer: int, head: int) -> str:
    from bertviz import head_view

    return head_view(_attention(trace), list(trace.encoding.tokens), second_sentence(trace), layer=layer,
                     html_action="return").data


def _model_view(trace: Trace, layer: int, head: int) -> str:
    from bertviz import model_view

    return model_view(_attention(trace), list(trace.encoding.tokens), second_sentence(trace), display_mode="light",
                      html_action="return").data


def _neuron_view(trace: Trace, layer: int, head: int) -> str:
    from bertviz.neuron_view import show

    sentences = [trace.encoding.text or " ", trace.encoding.pair if second_sentence(trace) else None]
    return show(_TraceModel(trace), "bert", _TraceTokenizer(trace, *sentences), *sentences, display_mode="light",
                layer=layer, head=head, html_action="return").data


_MAKERS: dict[str, Callable[[Trace, int, int], str]] = {
    "Head view": _head_view, "Model view": _model_view, "Neuron view": _neuron_view,
}


class _TraceModel:
    """A Trace that answers as bertviz's own forked model does."""

    def __init__(self, trace: Trace):
        self.trace = trace

    def eval(self) -> _TraceModel:
        return self

    def __call__(self, ids: torch.Tensor, token_type_ids: torch.Tensor | None = None) -> tuple:
        parts = zip(*(rounded(a) for a in (self.trace.attention_probs, self.trace.query, self.trace.key)), strict=True)
        return ([{"attn": a[None], "queries": q[None], "keys": k[None]} for a, q, k in parts],)


class _TraceTokenizer:
    """The Trace's tokens, given back sentence by sentence."""

    def __init__(self, trace: Trace, text: str, pair: str | None):
        tokens, start = list(trace.encoding.tokens), second_sentence(trace)
        self.cls_token, self.sep_token = tokens[0], tokens[-1]
        self.pieces = {pair: tokens[start:-1]} if start else {}
        self.pieces[text] = tokens[1:start - 1] if start else tokens[1:-1]

    def tokenize(self, sentence: str) -> list[str]:
        return self.pieces[sentence]

    def convert_tokens_to_ids(self, tokens: list[str]) -> list[int]:
        return [0] * len(tokens)  # the Trace is there already; nothing is looked up


# --- the page --------------------------------------------------------------------


def _clean(body: str) -> str:
    """bertviz's HTML without the network, with its numbers once and a lasting name."""
    body = re.sub(r'<script src="[^"]*"></script>', "", body)
    body = re.sub(r"require\.config\(\{.*?\}\s*\}\);", "", body, flags=re.DOTALL)
    body = re.sub(r"// HACK: [^\n]*", "", body)
    body = re.sub(r"bertviz-[0-9a-f]{32}", "bertviz-view", body)
    return re.sub(r"<script[^>]*>(.*?)\n</script>", _escape_script, body, flags=re.DOTALL)


def _escape_script(match: re.Match[str]) -> str:
    """No text of the visitor's can end the script it stands in."""
    return "<script>" + match[1].replace("</", "<\\/") + "\n</script>"


@functools.cache
def _libraries() -> str:
    names = ("jquery-2.2.4.min.js", "d3-5.7.0.min.js")
    texts = [(VENDOR / name).read_text(encoding="utf-8").replace("</script", "<\\/script") for name in names]
    return "".join(f"<script>{text}\n</script>" for text in (*texts, SHIM))


def _frame(body: str, scale: float) -> str:
    return (f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>bertviz</title>'
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
            "<style>html{background:#fff;color:#111;color-scheme:light;forced-color-adjust:none}"
            f"body{{margin:8px;zoom:{scale:g}}}</style>"
            f"{_libraries()}</head><body>{body}</body></html>")

"""Pictures of what an encoder costs: by formula, and measured on this machine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from bert_core.config import BertConfig
from bert_core.counting import counted
from bert_core.figures import theme
from bert_core.measures.cost import Fit, Memory, Timing, Work, activation_memory, crossover, forward_work

#: Lengths of the curves, in tokens.
LENGTHS = tuple(int(n) for n in np.unique(np.geomspace(16, 4096, 40).round()))
_SQUARE, _ATTENTION, _FEED_FORWARD = theme.MASK, theme.ATTENTION, theme.FEED_FORWARD
_PARTS = {
    "scores": ("attention, the n² part", _SQUARE), "projections": ("attention, its projections", _ATTENTION),
    "feed_forward": ("feed-forward", _FEED_FORWARD), "attention": ("attention maps, n²", _SQUARE),
    "hidden": ("hidden states", theme.NEUTRAL), "embeddings": ("embeddings", theme.TOKEN),
}


def work_info(config: BertConfig) -> list[Work]:
    """Operations of the layers at each of LENGTHS."""
    return [forward_work(config, n) for n in LENGTHS]


def work_figure(config: BertConfig) -> go.Figure:
    """GFLOP of the layers in one forward pass against length, by part, with the crossovers."""
    works, figure = work_info(config), go.Figure()
    for part in ("feed_forward", "projections", "scores"):
        name, colour = _PARTS[part]
        figure.add_scatter(x=LENGTHS, y=[getattr(w, part) / 1e9 for w in works], name=name, mode="lines",
                           line={"color": colour, "width": 3},
                           hovertemplate="%{x} tokens: %{y:.3g} GFLOP<extra>" + name + "</extra>")
    theme.style(figure, x="length, tokens", y="operations of the layers, GFLOP", height=440)
    _log_axes(figure, config)
    for at, label, side in zip(crossover(config), (" n = I", "n = I − 2D "), ("left", "right")):
        if LENGTHS[0] < at < LENGTHS[-1]:
            theme.mark(figure, "x", at, line={"dash": "dot", "width": 1.5, "color": theme.NEUTRAL})
            figure.add_annotation(x=np.log10(at), y=0.02, yref="paper", text=label, showarrow=False, xanchor=side,
                                  yanchor="bottom", font={"size": 15})
    return figure


def memory_info(config: BertConfig) -> list[Memory]:
    """Bytes of all activations at each of LENGTHS, fp32."""
    return [activation_memory(config, n) for n in LENGTHS]


def memory_figure(config: BertConfig) -> go.Figure:
    """MiB of all kept activations against length, by part, fp32, one sentence."""
    memories, figure = memory_info(config), go.Figure()
    for part in ("embeddings", "hidden", "projections", "feed_forward", "attention"):
        name, colour = _PARTS[part]
        figure.add_scatter(x=LENGTHS, y=[getattr(m, part) / 2**20 for m in memories], name=name, mode="lines",
                           line={"color": colour, "width": 3},
                           hovertemplate="%{x} tokens: %{y:.3g} MiB<extra>" + name + "</extra>")
    theme.style(figure, x="length, tokens", y="activations of one sentence, MiB", height=440)
    return _log_axes(figure, config)


def _log_axes(figure: go.Figure, config: BertConfig) -> go.Figure:
    """Log-log, with the end of the position table marked."""
    theme.put(figure, xaxis={"type": "log", "tickvals": [16, 32, 64, 128, 256, 512, 1024, 2048, 4096]},
              yaxis={"type": "log", "dtick": 1, "tickformat": ","})
    end = config.max_tokens
    if LENGTHS[0] < end < LENGTHS[-1]:
        theme.mark(figure, "x", end, LENGTHS[-1], fillcolor=theme.NEUTRAL, opacity=0.12, line={"width": 0})
        figure.add_annotation(x=np.log10(end), y=0.98, yref="paper", text=f"positions end at {end} ",
                              showarrow=False, xanchor="right", yanchor="top", font={"size": 15})
    return figure


def time_figure(measured: Sequence[Timing], fit: Fit) -> go.Figure:
    """Measured milliseconds against length with the fitted a n + b n²."""
    lengths, times, runs = zip(*measured, strict=True)
    curve = np.linspace(lengths[0], lengths[-1], 80)
    figure = go.Figure()
    figure.add_scatter(x=curve, y=fit.a * curve, name="a n", mode="lines",
                       line={"color": _FEED_FORWARD, "width": 2, "dash": "dash"})
    figure.add_scatter(x=curve, y=fit.b * curve**2, name="b n²", mode="lines",
                       line={"color": _SQUARE, "width": 2, "dash": "dash"})
    figure.add_scatter(x=curve, y=fit.at(curve), name="a n + b n²", mode="lines",
                       line={"color": theme.BOTH_WAYS, "width": 3})
    figure.add_scatter(x=lengths, y=times, name="measured", mode="markers",
                       marker={"color": theme.BOTH_WAYS, "size": 11, "symbol": "circle-open", "line": {"width": 3}},
                       customdata=[counted(count, "run") for count in runs],
                       hovertemplate="%{x} tokens: %{y:.1f} ms, %{customdata}<extra></extra>")
    return theme.style(figure, x="length, tokens", y="one forward pass, ms", height=420)


def batch_figure(measured: Sequence[Timing]) -> go.Figure:
    """Milliseconds a sentence against sentences in one batch."""
    figure = go.Figure(go.Bar(
        x=[str(one.size) for one in measured], y=[one.ms / one.size for one in measured],
        customdata=[(one.ms, counted(one.runs, "run")) for one in measured], marker={"color": theme.BOTH_WAYS},
        hovertemplate="%{x} together: %{y:.1f} ms each, %{customdata[0]:.1f} ms in all, %{customdata[1]}"
                      "<extra></extra>",
    ))
    theme.style(figure, x="sentences in one batch", y="time per sentence, ms", height=320)
    return theme.put(figure, xaxis={"type": "category"})  # plotly takes the words for numbers otherwise

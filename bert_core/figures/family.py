"""Pictures of the Family page: where the parameters sit."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import plotly.graph_objects as go

from bert_core.config import BertConfig
from bert_core.figures import theme
from bert_core.figures.theme import escape
from bert_core.sizes import Part, parameter_table
from bert_core.trace import Trace

#: Kind and colour of a part by the words its name contains; the first that fits. A layer's last LayerNorm closes
#: its feed-forward part, as in the paper's block.
_KINDS = (
    ("word embeddings", "word embeddings", theme.TOKEN), ("segment", "segment embeddings", theme.SEGMENT),
    ("position", "position embeddings", theme.POSITION), ("attention", "attention", theme.ATTENTION),
    ("feed-forward", "feed-forward", theme.FEED_FORWARD),
    ("output LayerNorm", "feed-forward", theme.FEED_FORWARD),
    ("decoder", "decoder", theme.TOKEN),
)
_REST = ("the rest", theme.NEUTRAL)
#: Tokens that have room for their names along a map.
MOST_NAMED = 24
#: Frame of a group: opaque, because Plotly chooses the ink of its name by this colour alone.
_GROUP = "#5F6570"


class Node(NamedTuple):
    """One rectangle of the treemap."""

    key: str
    parent: str
    label: str
    formula: str
    count: int


def edited_config(layers: int, hidden: int, heads: int, vocabulary: int) -> BertConfig:
    """A BERT of these sizes; the feed-forward part is four times as wide as D, as in the paper.

    Raises:
        ValueError: D is not a multiple of H.
    """
    return replace(BertConfig(), num_hidden_layers=layers, hidden_size=hidden, num_attention_heads=heads,
                   vocab_size=vocabulary, intermediate_size=4 * hidden)


def anatomy_info(config: BertConfig, heads: tuple[str, ...] | None = None) -> tuple[Node, ...]:
    """Root, groups and parts; each node is the exact sum of those below it."""
    parts = parameter_table(config, heads)
    groups: dict[str, list[Part]] = {}
    for part in parts:
        groups.setdefault(part.group, []).append(part)
    nodes = [Node("all", "", "all parameters", "", sum(part.count for part in parts))]
    for group, own in groups.items():
        nodes.append(Node(group, "all", group, "", sum(part.count for part in own)))
        nodes += [Node(f"{group}/{part.name}", group, part.name, part.formula, part.count) for part in own]
    return tuple(nodes)


def anatomy_figure(nodes: tuple[Node, ...]) -> go.Figure:
    """A treemap whose rectangles add up exactly: area is the number of parameters."""
    total = nodes[0].count
    figure = go.Figure(go.Treemap(
        ids=[n.key for n in nodes], parents=[n.parent for n in nodes], labels=[n.label for n in nodes],
        values=[n.count for n in nodes], branchvalues="total", sort=False,
        customdata=[(n.formula, 100.0 * n.count / total) for n in nodes],
        texttemplate="<b>%{label}</b><br>%{value:,}",
        hovertemplate="<b>%{label}</b><br>%{value:,} parameters, %{customdata[1]:.2f} %<br>%{customdata[0]}"
                      "<extra></extra>",
        marker={"colors": [_colour(n) for n in nodes], "line": {"width": 1, "color": "rgba(255,255,255,0.5)"}},
        tiling={"packing": "squarify", "pad": 2}, pathbar={"visible": True, "thickness": 28},
        outsidetextfont={"color": "#FFFFFF"},  # of the outermost, which plotly takes for text on the page
    ))
    theme.style(figure, height=540)
    return theme.put(figure, margin={"l": 0, "r": 0, "t": 30, "b": 0}, uniformtext={"minsize": 11, "mode": "hide"})


def _colour(node: Node) -> str:
    if node.parent in ("", "all"):
        return _GROUP
    return _kind(node)[1]


def _kind(node: Node) -> tuple[str, str]:
    """Name and colour of the kind that a part belongs to."""
    return next(((kind, colour) for words, kind, colour in _KINDS if words in node.label), _REST)


class Kind(NamedTuple):
    """All parts of one kind together: what a colour of the treemap means."""

    name: str
    colour: str
    count: int


def anatomy_kinds(nodes: tuple[Node, ...]) -> tuple[Kind, ...]:
    """The kinds of parts, largest first; they add up to all parameters."""
    counts: dict[tuple[str, str], int] = {}
    for node in nodes:
        if node.parent not in ("", "all"):
            counts[_kind(node)] = counts.get(_kind(node), 0) + node.count
    return tuple(Kind(*kind, count) for kind, count in sorted(counts.items(), key=lambda item: -item[1]))


class Summary(NamedTuple):
    """A row of the parts' table, equal layers taken together."""

    part: str
    formula: str
    each: int
    times: int

    @property
    def total(self) -> int:
        return self.each * self.times


def anatomy_table(config: BertConfig, heads: tuple[str, ...] | None = None) -> tuple[Summary, ...]:
    """The parts with their formulas; the layers, all alike, in one row a part."""
    rows: list[Summary] = []
    for part in parameter_table(config, heads):
        in_layer = part.group.startswith("layer ")
        if in_layer and part.group != "layer 1":
            continue
        times = config.num_hidden_layers if in_layer else 1
        where = "each layer" if in_layer else part.group
        rows.append(Summary(f"{where}: {part.name}", part.formula, part.count, times))
    return tuple(rows)


def attention_figure(trace: Trace) -> go.Figure:
    """Attention of the last layer, mean over its heads; rows look at columns."""
    probs = trace.attention_probs[-1].mean(axis=0)  # (Tq, Tk)
    names = [f"{n} {token}" for n, token in enumerate(map(escape, trace.tokens))]
    figure = go.Figure(go.Heatmap(
        z=probs, x=names, y=names, zmin=0, zmax=1, colorscale=theme.PROBABILITY,
        colorbar={"orientation": "h", "thickness": 10, "len": 0.6, "y": 1.01, "yanchor": "bottom",
                  "tickvals": [0, 0.5, 1], "ticktext": ["weight 0", "0.5", "1"]},
        hovertemplate="%{y} looks at %{x}: %{z:.3f}<extra></extra>",
    ))
    theme.style(figure, x="to (last layer, mean of heads)", y="from", height=540)
    every = {"type": "category", "constrain": "domain", "dtick": math.ceil(len(names) / MOST_NAMED)}
    every["tickfont"] = {"size": 15 if len(names) <= 16 else 12}
    square = {"autorange": "reversed", "showgrid": False, "scaleanchor": "x",  # as every such map
              "constraintoward": "top"}  # what a phone's width leaves of the height lies below it
    return theme.put(figure, yaxis=square | every, xaxis={"tickangle": -60, "title": {"standoff": 12}, **every})

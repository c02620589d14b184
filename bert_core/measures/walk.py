"""A sentence's way through the code: which line made which tensor, of which shape.

Nothing is written down twice: the lines come from the installed source, and the
shapes from watching a real forward pass line by line.
"""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bert_core import model as bert
from bert_core.load import Loaded
from bert_core.measures.parity import to_inputs, unpacked
from bert_core.request import reading_order
from bert_core.tasks.vocabulary import last_place
from bert_core.tokenizer import Encoding
from bert_core.trace import check_finite
from bert_core.training import objectives

ROOT = Path(__file__).resolve().parent.parent.parent
_ATTENTION_NAMES = ("query", "key", "value", "scores", "probs", "mixed", "context")
_OUTPUT_NAMES = ("projected", "attended")
_FEED_FORWARD_NAMES = ("wide", "narrow", "out")


class Excerpt(NamedTuple):
    """Lines of a source file.

    Attributes:
        place: file and line, such as 'bert_core/model.py:171'.
        text: the lines, not indented.
    """

    place: str
    text: str


#: stage -> the functions that do it, with the assignments meant (None: the whole function).
_STAGE_CODE: Mapping[str, tuple[tuple[Callable[..., Any], tuple[str, ...] | None], ...]] = {
    "embeddings": ((bert.embed, None),),
    "attention": ((bert.layer, _ATTENTION_NAMES), (bert.attention_weights, None), (bert.attention_probs, None),
                  (bert.split_heads, None), (bert.join_heads, None), (bert.after_context, _OUTPUT_NAMES)),
    "feed_forward": ((bert.after_context, _FEED_FORWARD_NAMES), (bert.activate, None)),
    "layer_norm": ((bert.layer_norm, None),),
    "pooler": ((bert.pooled_output, None), (bert.linear, None)),
    "mlm": ((bert.mlm_transform, None), (bert.mlm_logits, None), (bert.decoder_weight, None)),
    "nsp": ((bert.nsp_logits, None),),
    "losses": ((objectives.losses, None), (objectives.SummedLoss.forward, None)),
}


def stage_source(stage: str) -> tuple[Excerpt, ...]:
    """The project's own lines of a stage, read from the source that runs.

    Raises:
        ValueError: there is no such stage.
    """
    if stage not in _STAGE_CODE:
        raise ValueError(f"no stage {stage!r}; there are {', '.join(_STAGE_CODE)}")
    return tuple(_excerpt(function, names) for function, names in _STAGE_CODE[stage])


def _excerpt(function: Callable[..., Any], names: tuple[str, ...] | None) -> Excerpt:
    """The whole function, or from its first to its last assignment to one of `names`."""
    lines, first = inspect.getsourcelines(function)
    if names is not None:
        meant = [s for s in _statements(function) if set(s.names) & set(names)]
        start, end = min(s.first for s in meant), max(s.last for s in meant)
        lines, first = lines[start - first:end - first + 1], start
    file = Path(inspect.getsourcefile(function)).resolve().relative_to(ROOT)
    return Excerpt(f"{file.as_posix()}:{first}", textwrap.dedent("".join(lines)).rstrip())


class _Statement(NamedTuple):
    first: int  # line in the file
    last: int
    names: tuple[str, ...]  # what it assigns


@functools.cache
def _statements(function: Callable[..., Any]) -> tuple[_Statement, ...]:
    """The assignments and returns of a function, by line."""
    lines, offset = inspect.getsourcelines(function)
    tree = ast.parse(textwrap.dedent("".join(lines)))
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.Return):
            targets = node.targets if isinstance(node, ast.Assign) else []
            names = [n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)]
            found.append(_Statement(node.lineno + offset - 1, node.end_lineno + offset - 1, tuple(names)))
    return tuple(sorted(found))


# --- the walk ----------------------------------------------------------------

#: What a function of the walk belongs to; `after_context` holds the end of one part and three more.
_PART_OF = {"embed": "Embeddings",
            **dict.fromkeys(("layer", "attention_weights", "attention_probs"), "Attention"),
            "pooled_output": "Pooler", "nsp_logits": "Next sentence",
            **dict.fromkeys(("mlm_transform", "mlm_logits"), "Vocabulary")}
_PART_AFTER_CONTEXT = {"projected": "Attention", "attended": "Add and norm", "wide": "Feed-forward",
                       "narrow": "Feed-forward", "out": "Add and norm"}


@dataclass(frozen=True)
class Step:
    """One line that has run and what it made.

    Attributes:
        function: name of the function.
        place: file and line.
        source: the statement.
        name: the tensor's name there; 'return' for what the function gives back.
        shape: its shape, batch axis first.
        first: its first numbers.
        low, high: smallest and largest number.
    """

    function: str
    place: str
    source: str
    name: str
    shape: tuple[int, ...]
    first: tuple[float, ...]
    low: float
    high: float

    @property
    def part(self) -> str:
        """The part of the network that the line belongs to, by its name in figure 1 of Vaswani et al. 2017."""
        return _PART_OF.get(self.function) or _PART_AFTER_CONTEXT[self.name]


class Part(NamedTuple):
    """Lines one after the other that belong together.

    Attributes:
        name: as in `Step.part`; a layer adds and normalises twice.
        first, last: its lines, counted from 1.
    """

    name: str
    first: int
    last: int


def parts(steps: Sequence[Step]) -> tuple[Part, ...]:
    """The parts of a walk in their order."""
    found: list[Part] = []
    for n, step in enumerate(steps, 1):
        if found and found[-1].name == step.part:
            found[-1] = found[-1]._replace(last=n)
        else:
            found.append(Part(step.part, n, n))
    return tuple(found)


@torch.no_grad()
def walk(loaded: Loaded, encoding: Encoding, index: int = 0) -> tuple[Step, ...]:
    """Walk a sentence through embeddings, one layer and the heads, line by line.

    Args:
        loaded: a model whose block is BERT's.
        encoding: the sentence.
        index: the layer to watch, 0-based.

    Raises:
        ValueError: there is no such layer, or no vector for an id.
        Overflow: what the model computes is no number.
    """
    if not 0 <= index < loaded.config.num_hidden_layers:
        raise ValueError(f"layer {index + 1} of {loaded.name}: it has {loaded.config.num_hidden_layers}")
    model, inputs, states = unpacked(loaded).model, to_inputs(loaded, encoding), []
    embeddings, hidden = bert.encode(model, inputs, lambda _, out: states.append(out.hidden))
    check_finite(loaded.name, {"hidden_states": hidden.cpu().numpy()})
    before = embeddings.output if index == 0 else states[index - 1]
    allowed = bert.allowed_pairs(inputs) if bert.needs_mask(inputs) else None
    steps = _watch((bert.embed,), model, inputs)
    in_layer = (bert.layer, bert.attention_weights, bert.attention_probs, bert.after_context)
    steps += _watch(in_layer, model, index, before, allowed)
    if "pooler" in model.heads:
        steps += _watch((bert.pooled_output,), model, hidden)
        if "nsp" in model.heads:
            steps += _watch((bert.nsp_logits,), model, bert.pooled_output(model, hidden))
    if model.heads & {"mlm", "lm"}:
        steps += _watch((bert.mlm_logits, bert.mlm_transform), model, hidden[:, _scored_rows(loaded, encoding)])
    return tuple(steps)


def _scored_rows(loaded: Loaded, encoding: Encoding) -> list[int]:
    """Rows, in the model's order, whose vocabulary logits the walk shows.

    Those of the gaps, or the last token's; of a causal model the row of what it reads last, which says what follows.
    """
    if "lm" in loaded.model.heads:
        places = [last_place(encoding, loaded.config)]
    else:
        places = list(encoding.mask_positions) or [len(encoding) - 1]
    order = reading_order(loaded.config, len(encoding))
    return places if order is None else order[places].tolist()


def _watch(functions: tuple[Callable[..., Any], ...], *args: Any) -> list[Step]:
    """Call the first function and note every tensor that the lines of any of them assign or return."""
    steps: list[Step] = []
    listed = {function.__code__: function for function in functions}
    before = sys.gettrace()
    sys.settrace(lambda frame, event, _: _note_lines(listed[frame.f_code], steps) if frame.f_code in listed else None)
    try:
        functions[0](*args)
    finally:
        sys.settrace(before)
    return steps


def _note_lines(function: Callable[..., Any], steps: list[Step]) -> Callable[..., Any]:
    """A tracer for one call of a function, which adds what each line of it made to `steps`."""
    statements = {s.first: s for s in _statements(function)}
    file = Path(inspect.getsourcefile(function)).resolve().relative_to(ROOT).as_posix()
    lines, offset = inspect.getsourcelines(function)
    running: list[_Statement] = []

    def note(statement: _Statement, values: Mapping[str, Any]) -> None:
        text = textwrap.dedent("".join(lines[statement.first - offset:statement.last - offset + 1])).strip()
        for name, value in values.items():
            if isinstance(value, Tensor):
                steps.append(_step(function.__name__, f"{file}:{statement.first}", text, name, value))

    def local(frame: FrameType, event: str, result: Any) -> Any:
        if running and event in ("line", "return") and running[0].names:
            done = running.pop()
            note(done, {name: frame.f_locals.get(name) for name in done.names})
        if event == "return" and running and isinstance(result, Tensor):
            note(running.pop(), {"return": result})
        if event == "line" and frame.f_lineno in statements:
            running[:] = [statements[frame.f_lineno]]
        return local

    return local


def _step(function: str, place: str, source: str, name: str, value: Tensor) -> Step:
    numbers = value.float().flatten()
    return Step(function, place, source, name, tuple(value.shape), tuple(numbers[:3].tolist()),
                float(numbers.min()), float(numbers.max()))

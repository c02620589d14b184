"""Claims that circulate and are wrong, each with a line computed here and now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from bert_core.facts import known_sizes, read_facts
from bert_core.load import Loaded
from bert_core.measures.cost import activation_memory, forward_work, generation_work, head_work
from bert_core.model import Model
from bert_core.sizes import is_counted

#: Names of a GELU in a config -> the form that PyTorch's libraries and this explorer compute by it.
GELU_FORMS = {"gelu": "the form with erf", "gelu_new": "the tanh approximation",
              "gelu_pytorch_tanh": "the tanh approximation"}


@dataclass(frozen=True)
class Claim:
    """A wrong claim, what is right, and a number that shows it.

    Attributes:
        key: its name in the facts.
        wrong, right: the claim and its correction.
        evidence: one line computed from the model on screen; '' where the page
            named is the evidence, or the model gives none.
        page: where one can try it; '' if nowhere.
    """

    key: str
    wrong: str
    right: str
    evidence: str
    page: str


def claims(loaded: Loaded, text: str) -> tuple[Claim, ...]:
    """Every claim of `claims.toml` with its evidence on this model and sentence."""
    return tuple(
        Claim(row["key"], row["wrong"], row["right"], evidence(row["evidence"], loaded, text), row["page"])
        for row in read_facts("claims")["claim"]
    )


def evidence(name: str, loaded: Loaded, text: str) -> str:
    """The computed line of a claim; '' for none.

    Raises:
        ValueError: no computation has this name.
    """
    if name and name not in _EVIDENCE:
        raise ValueError(f"no evidence called {name!r}; there are {', '.join(_EVIDENCE)}")
    return _EVIDENCE[name](loaded, text) if name else ""


def sinusoid_table(rows: int, width: int) -> np.ndarray:
    """The fixed positions of Vaswani et al. 2017, section 3.5, (rows, width)."""
    place, pair = np.arange(rows)[:, None], np.arange(0, width, 2)[None, :]
    angle = place / 10000.0 ** (pair / width)  # (rows, width / 2)
    return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(rows, -1)[:, :width]


def _sinusoid(loaded: Loaded, _: str) -> str:
    if not isinstance(loaded.model, Model):
        return ""  # its position table, if it has one, has another name
    name = f"{loaded.model.names.position}.weight"
    learned = loaded.model.weights[name].float().cpu().numpy()
    held = f"{Path(loaded.name).name} holds {name}, {learned.shape[0]} × {learned.shape[1]} numbers"
    if not np.ptp(learned):  # what never changes goes along with nothing
        return f"{held}, all the same."
    match = float(np.corrcoef(learned.ravel(), sinusoid_table(*learned.shape).ravel())[0, 1])
    return f"{held}; their correlation with the sinusoids is {'−' if match < 0 else ''}{abs(match):.3f}."


def _prefix(loaded: Loaded, _: str) -> str:
    if not is_counted(loaded.config):
        return ""
    layers = forward_work(loaded.config, 64).total
    if not loaded.model.heads & {"mlm", "lm"}:  # it writes nothing
        return f"The layers over 64 tokens: {layers / 1e9:.2f} GFLOP both ways, and as many one way."
    again, kept = generation_work(loaded.config, 64)
    one = layers + head_work(loaded.config, 64)
    return (f"One pass over 64 tokens, with a guess at each: {one / 1e9:.2f} GFLOP both ways, and as many one way. "
            f"To write 64 tokens one by one: {again / 1e9:.1f} GFLOP anew each time, {kept / 1e9:.2f} with a KV cache.")


def _chosen(_: Loaded, __: str) -> str:
    return ("Of 1,000 tokens 150 are chosen; of these, on average, 120 become [MASK], 15 a random word, 15 stay. "
            "All 150 count.")


def _gelu(loaded: Loaded, _: str) -> str:
    x = torch.linspace(-6, 6, 24001, dtype=torch.float64)
    gap = float((F.gelu(x) - F.gelu(x, approximate="tanh")).abs().max())
    name = loaded.config.hidden_act
    form = f", here {GELU_FORMS[name]}" if name in GELU_FORMS else ""
    return f"This model's config says {name!r}{form}. The two forms differ by up to {gap:.5f}."


def _pieces(loaded: Loaded, text: str) -> str:
    encoding = loaded.tokenizer.encode(text)
    words = {(s, w) for s, w in zip(encoding.sequence_ids, encoding.word_ids, strict=True) if w is not None}
    return f"In the sentence above, words and signs: {len(words)}; pieces: {len(encoding.content)}."


def _parallel(loaded: Loaded, text: str) -> str:
    config, tokens = loaded.config, len(loaded.tokenizer.encode(text))
    return (f"The sentence above went through as one ({tokens} × {config.hidden_size}) matrix: "
            f"{config.num_hidden_layers} layers one after another, {tokens} tokens at once.")


def _memory(loaded: Loaded, _: str) -> str:
    if not is_counted(loaded.config):
        return ""
    sizes = (256, 512, 1024)
    parts = (f"{activation_memory(loaded.config, n).total / 2**20:,.0f} MiB at {n}" for n in sizes)
    rows = f" Its position table has {loaded.config.max_position_embeddings} rows."
    return f"All activations of this model: {', '.join(parts)} tokens." + (
        rows if isinstance(loaded.model, Model) else "")


def _distil(_: Loaded, __: str) -> str:
    count = {size.name: size.parameters for size in reversed(known_sizes())}
    small, large = count["distilbert-base-uncased"], count["bert-base-uncased"]
    return f"Counted: {small:,} of {large:,} parameters, {100 * (1 - small / large):.1f} % fewer."


_EVIDENCE: dict[str, Callable[[Loaded, str], str]] = {
    "sinusoid": _sinusoid, "prefix": _prefix, "chosen": _chosen, "gelu": _gelu, "pieces": _pieces,
    "parallel": _parallel, "memory": _memory, "distil": _distil,
}

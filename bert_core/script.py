"""What is on screen as a Python file that reproduces its numbers.

Two forms: line by line in plain PyTorch, which needs bert_core only to read the
weights and the vocabulary, and short, through the engine. Both print
`screen_numbers`, a line each.
"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import numpy as np

from bert_core.load import Loaded
from bert_core.measures.predictions import piece
from bert_core.tasks.support import softmax
from bert_core.tasks.vocabulary import last_place, last_read
from bert_core.trace import Trace, TraceRequest

#: Guesses shown for each gap, and decimals of every number.
TOP, DECIMALS = 5, 4
#: Parts of a Trace that `screen_numbers` reads.
PARTS = ("embedding_output", "hidden_states", "mlm_positions", "mlm_logits", "nsp_logits", "lm_logits")


def screen_numbers(trace: Trace, loaded: Loaded) -> dict[str, Any]:
    """The numbers that page and script show of one run.

    Returns:
        'tokens'; 'embeddings' and 'layer 1' to 'layer L', the first three
        numbers of [CLS] there; 'position N' for each gap, word -> probability;
        'next' for a causal model; 'is next' for a pair where the head exists.
    """
    numbers: dict[str, Any] = {"tokens": [str(token) for token in trace.tokens]}
    for index, hidden in enumerate(trace.hidden_states):
        numbers["embeddings" if index == 0 else f"layer {index}"] = _rounded(hidden[0, :3])
    if trace.has("mlm_logits"):
        for position, logits in zip(trace.mlm_positions, trace.mlm_logits, strict=True):
            numbers[f"position {position}"] = _best(logits, loaded)
    if trace.has("lm_logits"):
        numbers["next"] = _best(trace.lm_row(last_read(trace)), loaded)
    if trace.has("nsp_logits") and trace.request.pair is not None:
        numbers["is next"] = _rounded(softmax(trace.nsp_logits)[:1])[0]
    return numbers


def screen_text(numbers: dict[str, Any]) -> str:
    """One line a number, as page and script print them."""
    return "\n".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in numbers.items())


def _best(logits: np.ndarray, loaded: Loaded) -> dict[str, float]:
    probabilities = softmax(logits)
    best = np.argsort(-probabilities, kind="stable")[:TOP]
    return {piece(loaded.tokenizer, i): p for i, p in zip(best, _rounded(probabilities[best]), strict=True)}


def _rounded(values: np.ndarray) -> list[float]:
    return [round(float(v), DECIMALS) for v in values]


def write_script(request: TraceRequest, loaded: Loaded, line_by_line: bool = True) -> str:
    """A Python file that prints `screen_numbers` for this request.

    Args:
        request: text, pair, attention and masked positions are carried over in
            both forms, everything else in the short one only.
        loaded: the model that made the picture.
        line_by_line: every step in plain PyTorch; otherwise through the engine.

    Raises:
        ValueError: a line-by-line script was asked for something only the
            engine does (heads switched off, say), or for another block.
    """
    if not line_by_line:
        return _SHORT.format(model=loaded.name, request=_constructor(request))
    plain = TraceRequest(request.text, request.pair, request.attention, request.model, request.masked,
                         parts=request.parts)
    if request != plain:
        raise ValueError("the line-by-line script covers text, pair, direction and masks; take the short one")
    if loaded.config.model_type != "bert" or loaded.config.reading_order != "left-to-right":
        raise ValueError(f"{loaded.name} is no plain BERT block read from left to right; take the short script")
    causal = (request.attention or loaded.config.attention_kind) == "causal"
    return _LONG.format(model=loaded.name, text=request.text, pair=request.pair, masked=request.masked, causal=causal,
                        act=_ACTIVATIONS[loaded.config.hidden_act], top=TOP, decimals=DECIMALS,
                        last=last_place(loaded.tokenizer.encode(request.text, request.pair), loaded.config))


def _constructor(request: TraceRequest) -> str:
    """The request as Python, without what it leaves at its default."""
    asked = ((f.name, getattr(request, f.name), f.default) for f in fields(request) if f.name not in ("model", "parts"))
    return f"TraceRequest({', '.join(f'{name}={value!r}' for name, value, default in asked if value != default)})"


_ACTIVATIONS = {
    "gelu": "F.gelu(x)", "gelu_new": 'F.gelu(x, approximate="tanh")', "relu": "F.relu(x)",
    "gelu_pytorch_tanh": 'F.gelu(x, approximate="tanh")', "tanh": "torch.tanh(x)", "silu": "F.silu(x)",
}

_SHORT = '''"""One run of Both Ways, reproduced through its engine. Run it in the project's folder."""

from bert_core import TraceRequest, load_engine
from bert_core.script import screen_numbers, screen_text

engine = load_engine({model!r})
trace = engine.run({request})
print(screen_text(screen_numbers(trace, engine.loaded())))
'''

_LONG = '''"""BERT on one sentence, line by line. Run it in the project's folder (or with it on PYTHONPATH)."""

import json

import torch
import torch.nn.functional as F

from bert_core import load_model

TEXT, PAIR, MASKED, CAUSAL = {text!r}, {pair!r}, {masked!r}, {causal!r}

loaded = load_model({model!r})  # only this line is not plain PyTorch: it reads the files
config, w = loaded.config, loaded.model.weights
encoding = loaded.tokenizer.encode(TEXT, PAIR)
ids = torch.tensor(encoding.input_ids)  # (T,)
ids[list(MASKED)] = loaded.tokenizer.mask_id or 0
segments, T = torch.tensor(encoding.token_type_ids), len(ids)
H, Dh = config.num_attention_heads, config.head_size


def linear(x, name):
    return F.linear(x, w[name + ".weight"], w[name + ".bias"])


def norm(x, name):
    return F.layer_norm(x, (x.shape[-1],), w[name + ".weight"], w[name + ".bias"], config.layer_norm_eps)


def act(x):
    return {act}


def heads(x):  # (T, D) -> (H, T, Dh)
    return x.view(T, H, Dh).transpose(0, 1)


def name(index):  # tables may have more rows than there are pieces
    return loaded.tokenizer.token_of(index) if loaded.tokenizer.knows(index) else f"[id {{index}}]"


def best(logits):
    p, index = logits.softmax(-1).topk({top})
    return {{name(i): round(v, {decimals}) for i, v in zip(index.tolist(), p.tolist())}}


def start(hidden):
    return [round(v, {decimals}) for v in hidden[0, :3].tolist()]


@torch.no_grad()
def main():
    # Token + segment + position, then LayerNorm.
    x = w["bert.embeddings.word_embeddings.weight"][ids] + w["bert.embeddings.token_type_embeddings.weight"][segments]
    x = norm(x + w["bert.embeddings.position_embeddings.weight"][:T], "bert.embeddings.LayerNorm")  # (T, D)
    shown = {{"tokens": [loaded.tokenizer.token_of(i) for i in ids.tolist()], "embeddings": start(x)}}

    for i in range(config.num_hidden_layers):
        p = f"bert.encoder.layer.{{i}}."
        q, k, v = (heads(linear(x, p + "attention.self." + name)) for name in ("query", "key", "value"))
        scores = q @ k.transpose(-1, -2) / Dh**0.5  # (H, Tq, Tk)
        if CAUSAL:
            scores = scores.masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), float("-inf"))
        context = (scores.softmax(-1) @ v).transpose(0, 1).reshape(T, -1)  # (T, D)
        x = norm(linear(context, p + "attention.output.dense") + x, p + "attention.output.LayerNorm")
        wide = act(linear(x, p + "intermediate.dense"))  # (T, I)
        x = norm(linear(wide, p + "output.dense") + x, p + "output.LayerNorm")
        shown[f"layer {{i + 1}}"] = start(x)

    if loaded.model.heads & {{"mlm", "lm"}}:
        y = norm(act(linear(x, "cls.predictions.transform.dense")), "cls.predictions.transform.LayerNorm")
        words = w["bert.embeddings.word_embeddings.weight"]  # (V, D), the decoder too unless it has its own
        logits = y @ w.get("cls.predictions.decoder.weight", words).T + w["cls.predictions.bias"]  # (T, V)
        if "lm" in loaded.model.heads:
            shown["next"] = best(logits[{last}])  # what would follow the last piece
        else:
            for place in (ids == loaded.tokenizer.mask_id).nonzero().flatten().tolist():
                shown[f"position {{place}}"] = best(logits[place])
    if "nsp" in loaded.model.heads and PAIR is not None:
        pooled = torch.tanh(linear(x[0], "bert.pooler.dense"))
        shown["is next"] = round(linear(pooled, "cls.seq_relationship").softmax(-1)[0].item(), {decimals})
    for name, value in shown.items():
        print(f"{{name}}: {{json.dumps(value, ensure_ascii=False)}}")


main()
'''

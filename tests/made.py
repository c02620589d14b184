"""A Trace made by hand: tokens and arrays that a test chooses, without a model."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

import numpy as np

from bert_core.config import BertConfig
from bert_core.tokenizer import Encoding
from bert_core.trace import Trace, TraceRequest


def made_encoding(tokens: Sequence[str]) -> Encoding:
    """Each token a word of its own, a [SEP] after the first sentence, brackets special but for [MASK]."""
    special = tuple(token in ("[CLS]", "[SEP]") for token in tokens)
    first = tokens.index("[SEP]") if "[SEP]" in tokens else len(tokens)
    sentence = tuple(0 if n <= first else 1 for n in range(len(tokens)))
    text = " ".join(tokens)
    starts = np.cumsum([0, *(len(token) + 1 for token in tokens)])
    return Encoding(
        text, None, tuple(tokens), tuple(range(10, 10 + len(tokens))), sentence, special,
        tuple(None if is_special else n for n, is_special in enumerate(special)),
        tuple(None if is_special else side for is_special, side in zip(special, sentence, strict=True)),
        tuple((0, 0) if is_special else (int(starts[n]), int(starts[n]) + len(tokens[n]))
              for n, is_special in enumerate(special)),
        tuple(n for n, token in enumerate(tokens) if token == "[MASK]"))


def made_trace(tokens: Sequence[str], attention: str = "bidirectional", config: BertConfig | None = None,
               **arrays: np.ndarray) -> Trace:
    """A Trace of these tokens with these arrays; its config has the sizes of its attention where it has some."""
    encoding = made_encoding(tokens)
    if config is None:
        layers, heads = arrays["attention_probs"].shape[:2] if "attention_probs" in arrays else (2, 3)
        config = BertConfig(num_hidden_layers=layers, num_attention_heads=heads, hidden_size=5 * heads)
    held = {"tokens": np.array(tokens), "input_ids": np.array(encoding.input_ids)} | arrays
    return Trace(MappingProxyType(held), TraceRequest(encoding.text), encoding, config, "made", attention)

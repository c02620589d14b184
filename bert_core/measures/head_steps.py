"""One query token through one head, step by step (Vaswani et al. 2017, section 3.2).

Dimensions: T tokens, D hidden size, H heads, Dh head size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bert_core.load import Loaded
from bert_core.trace import Array, Trace, check_range

#: Trace arrays that the steps need.
PARTS = ("query", "key", "value", "attention_scores", "attention_probs", "context", "attention_output", "hidden_states")


class HeadSteps(NamedTuple):
    """Operands and results; what the Trace has is the Trace's own.

    Attributes:
        query: (Dh,), the Trace's.
        keys, values: (T, Dh), the Trace's.
        dots: (T,), q.k summed here from the Trace's operands.
        scores: (T,), the Trace's; dots / sqrt(Dh).
        blocked: (T,) bool, keys that this query may not see.
        weights: (T,), the Trace's attention_probs.
        context: (Dh,), the Trace's; the weighted sum of values.
        contribution: (D,), the context through this head's columns of the output projection.
        contribution_norms: (H,), length of every head's contribution.
        projected: (D,), all heads and the bias.
        residual: (D,), the layer's input, added next.
        output: (D,), the Trace's attention_output, after LayerNorm.
    """

    query: Array
    keys: Array
    values: Array
    dots: Array
    scores: Array
    blocked: Array
    weights: Array
    context: Array
    contribution: Array
    contribution_norms: Array
    projected: Array
    residual: Array
    output: Array


def head_steps(trace: Trace, loaded: Loaded, layer: int, head: int, query: int) -> HeadSteps:
    """Follow one query token through one head.

    Args:
        trace: with PARTS, made by `loaded`.
        layer, head, query: 0-based.

    Raises:
        ValueError: one of them isn't there.
    """
    config = trace.config
    check_range("layer", [layer], config.num_hidden_layers)
    check_range("head", [head], config.num_attention_heads)
    check_range("position", [query], len(trace))
    q, keys = trace.query[layer, head, query], trace.key[layer, head]
    contexts = trace.context[layer, query].reshape(config.num_attention_heads, config.head_size)  # (H, Dh)
    name = loaded.model.names.of_layer(layer, "attention_dense")
    weight = loaded.model.weights[f"{name}.weight"].float().cpu().numpy()  # (D, D)
    bias = loaded.model.weights[f"{name}.bias"].float().cpu().numpy()
    by_head = weight.reshape(len(weight), config.num_attention_heads, config.head_size)  # (D, H, Dh)
    parts = np.einsum("dhe,he->hd", by_head, contexts)  # (H, D)
    return HeadSteps(
        q, keys, trace.value[layer, head], keys @ q, trace.attention_scores[layer, head, query],
        (trace.attention_probs[layer, :, query] == 0).all(axis=0), trace.attention_probs[layer, head, query],
        contexts[head], parts[head], np.linalg.norm(parts, axis=-1), parts.sum(axis=0) + bias,
        trace.hidden_states[layer, query], trace.attention_output[layer, query])

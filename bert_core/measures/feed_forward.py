"""One token through a layer's feed-forward part, neuron by neuron (Vaswani et al. 2017, section 3.3).

Dimensions: T tokens, D hidden size, I intermediate size, N neurons that are looked at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from bert_core.load import Loaded
from bert_core.trace import Array, Trace, check_range

#: Trace arrays that the neurons need.
PARTS = ("attention_output", "intermediate", "hidden_states")
#: How many neurons are looked at one by one.
STRONGEST = 12


class FeedForward(NamedTuple):
    """Operands and results; what the Trace has is the Trace's own.

    Attributes:
        attended: (D,), the Trace's attention_output: what goes in.
        intermediate: (I,), the Trace's: what every neuron gives for this token.
        neurons: (N,), those with the longest addends, longest first.
        weights_in: (N, D), what each multiplies the token's numbers by.
        biases: (N,), added to that.
        sums: (N,), before the activation, summed here from the operands.
        activations: (N, T), the Trace's intermediate of these neurons on every token.
        weights_out: (N, D); times its activation it is a neuron's addend.
        lengths: (N,), of these addends.
        projected: (D,), the addends of all I neurons and the bias.
        output: (D,), the Trace's hidden state after the layer: attended added, LayerNorm.
    """

    attended: Array
    intermediate: Array
    neurons: Array
    weights_in: Array
    biases: Array
    sums: Array
    activations: Array
    weights_out: Array
    lengths: Array
    projected: Array
    output: Array


def feed_forward(trace: Trace, loaded: Loaded, layer: int, token: int, count: int = STRONGEST) -> FeedForward:
    """Follow one token through the feed-forward part of one layer.

    Args:
        trace: with PARTS, made by `loaded`.
        layer, token: 0-based.
        count: how many neurons to look at one by one, at most; N of them are there.

    Raises:
        ValueError: layer or token isn't there.
    """
    check_range("layer", [layer], trace.config.num_hidden_layers)
    check_range("position", [token], len(trace))
    attended, inner = trace.attention_output[layer, token], trace.intermediate[layer]  # (D,), (T, I)
    weight_in, bias_in = _linear(loaded, layer, "intermediate")  # (I, D), (I,)
    weight_out, bias_out = _linear(loaded, layer, "output_dense")  # (D, I), (D,)
    lengths = np.abs(inner[token]) * np.linalg.norm(weight_out, axis=0)  # (I,)
    neurons = np.argsort(-lengths, kind="stable")[:count]
    return FeedForward(
        attended, inner[token], neurons, weight_in[neurons], bias_in[neurons],
        weight_in[neurons] @ attended + bias_in[neurons], inner[:, neurons].T, weight_out[:, neurons].T,
        lengths[neurons], weight_out @ inner[token] + bias_out, trace.hidden_states[layer + 1, token])


def _linear(loaded: Loaded, layer: int, role: str) -> tuple[Array, Array]:
    """Weight (out, in) and bias (out,) of one of a layer's linears."""
    name = loaded.model.names.of_layer(layer, role)
    weight, bias = (loaded.model.weights[f"{name}.{part}"] for part in ("weight", "bias"))
    dtype = torch.promote_types(weight.dtype, torch.float32)
    return weight.to("cpu", dtype).numpy(), bias.to("cpu", dtype).numpy()

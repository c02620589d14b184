"""Softmax with its operands: from logits to probabilities in two steps that can be checked by hand."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bert_core.trace import Array


class SoftmaxSteps(NamedTuple):
    """What becomes of N of the logits that share a softmax.

    Attributes:
        powers: (N,), e to the logit less the largest of all.
        total: the sum of that over all.
        probabilities: (N,), powers / total, 0 to 1.
    """

    powers: Array
    total: float
    probabilities: Array


def softmax_steps(logits: Array, every: Array) -> SoftmaxSteps:
    """Two steps of a softmax, in float64.

    Args:
        logits: (N,), those that are looked at.
        every: (V,), all that share the softmax.
    """
    largest = float(every.max())
    powers = np.exp(logits.astype(np.float64) - largest)
    total = float(np.exp(every.astype(np.float64) - largest).sum())
    return SoftmaxSteps(powers, total, powers / total)

"""Attention followed through the layers (Abnar and Zuidema 2020, arXiv 2005.00928, section 3)."""

from __future__ import annotations

import numpy as np

from bert_core.trace import Array


def rollout(probs: Array) -> Array:
    """Attention rollout: heads averaged, half the weight for the residual, layers multiplied.

    Args:
        probs: (L, H, Tq, Tk).

    Returns:
        (L, Tq, Tk); entry l is the share of each input token in each token
        after layer l+1, rows sum to 1. Values, LayerNorm and the feed-forward
        part are left out: it says where information could come from.
    """
    length = probs.shape[-1]
    flow = np.eye(length, dtype=probs.dtype)
    flows = []
    for layer in probs.mean(axis=1):  # (Tq, Tk)
        mixed = 0.5 * layer + 0.5 * np.eye(length, dtype=probs.dtype)
        flow = mixed / mixed.sum(axis=-1, keepdims=True) @ flow
        flows.append(flow)
    return np.stack(flows)

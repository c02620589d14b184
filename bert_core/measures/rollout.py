"""Attention followed through the layers (Abnar and Zuidema 2020, arXiv 2005.00928, section 3)."""

from __future__ import annotations

import numpy as np

from bert_core.trace import Array


def mixed_by_weights(probs: Array) -> Array:
    """Of what each layer's tokens are mixed, by attention alone: heads averaged, half the weight for the residual.

    Args:
        probs: (L, H, Tq, Tk).

    Returns:
        (L, Tq, Tk), rows sum to 1.
    """
    mixed = 0.5 * probs.mean(axis=1) + 0.5 * np.eye(probs.shape[-1], dtype=probs.dtype)
    return mixed / mixed.sum(axis=-1, keepdims=True)


def rollout(probs: Array) -> Array:
    """Attention rollout: the layers' mixing matrices multiplied.

    Args:
        probs: (L, H, Tq, Tk).

    Returns:
        (L, Tq, Tk); entry l is the share of each input token in each token
        after layer l+1, rows sum to 1. Values, LayerNorm and the feed-forward
        part are left out: it says where information could come from.
    """
    flow = np.eye(probs.shape[-1], dtype=probs.dtype)
    flows = []
    for mixed in mixed_by_weights(probs):  # (Tq, Tk)
        flow = mixed @ flow
        flows.append(flow)
    return np.stack(flows)

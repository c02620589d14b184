"""From [CLS] to the logits with every operand: dense, tanh, head.

Devlin et al. 2018 (arXiv 1810.04805), section 3: the pooled output is
tanh(W h_[CLS] + b); NSP and every sentence classifier are one linear layer on it.

Dimensions: D hidden size, C classes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bert_core.load import Loaded
from bert_core.model import Model, activate
from bert_core.tasks.sentences import class_names
from bert_core.trace import Array, Trace


class HeadOperands(NamedTuple):
    """Every number between [CLS] and the logits.

    Attributes:
        cls: (D,) last hidden state of [CLS].
        layer: what comes next: the 'pooler', or a 'dense layer' of the head's own (RoBERTa, DistilBERT, ELECTRA).
        dense: (D,) W cls + b of it, before the activation.
        pooled: (D,) after the activation.
        activation: its name.
        weight: (C, D) of the head.
        bias: (C,).
        products: (C, D) weight x pooled; a row and its bias sum to the logit.
        logits: (C,).
        labels: (C,) names of the classes.
    """

    cls: Array
    layer: str
    dense: Array
    pooled: Array
    activation: str
    weight: Array
    bias: Array
    products: Array
    logits: Array
    labels: tuple[str, ...]


def head_operands(loaded: Loaded, trace: Trace, head: str) -> HeadOperands:
    """Open the head that reads [CLS].

    Args:
        trace: with `hidden_states`.
        head: 'classification' or 'nsp'.

    Raises:
        ValueError: the checkpoint lacks the head, or transformers runs it, whose heads are not laid open here.
    """
    model = loaded.model
    if head not in ("classification", "nsp") or head not in model.heads:
        raise ValueError(f"{loaded.name} has no {head} head; it has {', '.join(sorted(model.heads)) or 'none'}")
    if not isinstance(model, Model):
        raise ValueError(f"{loaded.config.model_type} runs through transformers: only a head on this explorer's own "
                         "encoder can be opened into its numbers")
    names = model.names
    own = head == "classification" and names.classifier_dense is not None
    dense_name = names.classifier_dense if own else names.pooler
    activation = names.classifier_act if own else "tanh"
    cls = trace.hidden_states[-1, 0].astype(np.float32)
    dense = _array(model.weights[f"{dense_name}.weight"]) @ cls + _array(model.weights[f"{dense_name}.bias"])
    pooled = _activated(dense, activation)
    final = names.classifier if head == "classification" else names.nsp
    weight, bias = _array(model.weights[f"{final}.weight"]), _array(model.weights[f"{final}.bias"])
    products = weight * pooled[None, :]  # (C, D)
    labels = ("IsNext", "NotNext") if head == "nsp" else class_names(loaded.config, len(bias))
    return HeadOperands(cls, "dense layer" if own else "pooler", dense, pooled, activation, weight, bias, products,
                        products.sum(axis=1) + bias, labels)


def _array(tensor: Tensor) -> Array:
    return tensor.detach().cpu().float().numpy()


def _activated(x: Array, name: str) -> Array:
    return activate(torch.from_numpy(np.ascontiguousarray(x)), name).numpy()

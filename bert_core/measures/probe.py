"""What [CLS] lets one read, layer by layer: a linear probe for each.

Reference: Alain and Bengio 2016, Understanding intermediate layers using linear
classifier probes, arXiv 1610.01644. A probe says what a linear reader can find,
not what the model uses.

Dimensions: N sentences, L layers, D hidden size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from bert_core.trace import Array

FOLDS = 5


class Probe(NamedTuple):
    """One logistic regression a layer.

    Attributes:
        labels: the two classes; a reading is the probability of the second.
        readers: L+1 fitted pipelines, 0 reads the embeddings.
        accuracy: (L+1,) share of the sentences that a probe fitted on the other folds reads right.
        spread: (L+1,) standard deviation of that share over the folds.
        sentences: N.
    """

    labels: tuple[str, str]
    readers: tuple[Pipeline, ...]
    accuracy: Array
    spread: Array
    sentences: int


def fit_probe(states: Array, classes: Array, groups: Array, labels: tuple[str, str]) -> Probe:
    """Fit a probe on every layer and measure it on sentences it was not fitted on.

    Args:
        states: (N, L+1, D), [CLS] of each sentence in each layer.
        classes: (N,) 0 or 1.
        groups: (N,) sentences with the same number stay in the same fold (the
            two members of a pair that differ in a word, say).
        labels: names of class 0 and 1.
    """
    readers, accuracy, spread = [], [], []
    for layer in range(states.shape[1]):
        reader = make_pipeline(StandardScaler(), LogisticRegression(C=0.05, max_iter=500))
        read = cross_val_predict(reader, states[:, layer], classes, groups=groups, cv=GroupKFold(FOLDS))
        is_right = read == classes
        folds = GroupKFold(FOLDS).split(states, classes, groups)
        readers.append(reader.fit(states[:, layer], classes))
        accuracy.append(is_right.mean())
        spread.append(np.std([is_right[judged].mean() for _, judged in folds]))
    return Probe(labels, tuple(readers), np.array(accuracy), np.array(spread), len(states))


def read_probe(probe: Probe, states: Array) -> Array:
    """Probability of the second label in each layer, (L+1, D) -> (L+1,)."""
    return np.array([reader.predict_proba(row[None])[0, 1] for reader, row in zip(probe.readers, states)])

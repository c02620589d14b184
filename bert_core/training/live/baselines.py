"""What a classifier without BERT makes of the same split: a bag of words, and an LSTM from nothing."""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Generator, Iterator

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bert_core.training.live.tables import Dataset

LSTM_EPOCHS, LSTM_WIDTH, LSTM_LR, LSTM_BATCH = 30, 64, 3e-3, 16
#: Words that the LSTM reads in all: a large table gets fewer epochs, but never fewer than the second number.
LSTM_READS, LSTM_LEAST = 300_000, 3
#: Splits whose answers are kept: one after the other several ways to learn are tried on one.
MAX_KEPT = 8
_kept: OrderedDict[bytes, dict[str, np.ndarray]] = OrderedDict()


def words(text: str) -> list[str]:
    """Lower-case words and punctuation marks."""
    return re.findall(r"\w+|[^\w\s]", text.lower())


def both(data: Dataset, seed: int) -> Generator[None, None, dict[str, np.ndarray]]:
    """What both make of the test set, kept for the next run on the same split; pauses after every step.

    Returns:
        'words' and 'lstm' -> (n_test, C) probabilities.
    """
    split = hashlib.sha256(repr((data, seed)).encode()).digest()  # not the rows: they go with their run
    if split not in _kept:
        found = bag_of_words(data, seed)
        yield
        _kept[split] = {"words": found, "lstm": (yield from lstm(data, seed))}
    _kept.move_to_end(split)
    while len(_kept) > MAX_KEPT:
        _kept.popitem(last=False)
    return _kept[split]


def bag_of_words(data: Dataset, seed: int) -> np.ndarray:
    """Logistic regression on word counts.

    Returns:
        (n_test, C) probabilities.
    """
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression

    counter = CountVectorizer(tokenizer=words, lowercase=False, token_pattern=None)
    counts = counter.fit_transform(data.texts("train"))
    fitted = LogisticRegression(max_iter=1000, random_state=seed).fit(counts, data.indices("train"))
    found = np.zeros((len(data.test), len(data.labels)), dtype=np.float32)
    found[:, fitted.classes_] = fitted.predict_proba(counter.transform(data.texts("test")))
    return found


class LstmClassifier(nn.Module):
    """Word vectors, a both-way LSTM, and a linear layer on its last states."""

    def __init__(self, vocabulary: int, classes: int) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary, LSTM_WIDTH, padding_idx=0)
        self.reader = nn.LSTM(LSTM_WIDTH, LSTM_WIDTH, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * LSTM_WIDTH, classes)

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """(B, T) word ids and (B,) lengths -> (B, C) logits."""
        packed = nn.utils.rnn.pack_padded_sequence(self.table(ids), lengths, batch_first=True, enforce_sorted=False)
        _, (last, _) = self.reader(packed)  # (2, B, LSTM_WIDTH)
        return self.head(torch.cat([last[0], last[1]], dim=-1))


def lstm(data: Dataset, seed: int) -> Generator[None, None, np.ndarray]:
    """An LSTM trained from random weights on the training set alone; pauses after every step.

    Returns:
        (n_test, C) probabilities.
    """
    known = {word for text in data.texts("train") for word in words(text)}
    index = {word: n + 2 for n, word in enumerate(sorted(known))}  # 0 pads, 1 is unknown
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LstmClassifier(len(index) + 2, len(data.labels))
    yield from _fit(model, _ids(data.texts("train"), index), torch.from_numpy(data.indices("train")), seed)
    with torch.no_grad():
        return model.eval()(*_pad(_ids(data.texts("test"), index))).softmax(-1).numpy()


def lstm_epochs(reads: int) -> int:
    """How often the LSTM goes through a training set of so many words."""
    return min(LSTM_EPOCHS, max(LSTM_LEAST, LSTM_READS // reads))


def _fit(model: LstmClassifier, rows: list[list[int]], classes: Tensor, seed: int) -> Iterator[None]:
    optimizer = torch.optim.Adam(model.parameters(), lr=LSTM_LR)
    rng = np.random.default_rng(seed)
    for _ in range(lstm_epochs(sum(map(len, rows)))):
        order = rng.permutation(len(rows))
        for start in range(0, len(rows), LSTM_BATCH):
            chosen = order[start : start + LSTM_BATCH]
            loss = F.cross_entropy(model(*_pad([rows[i] for i in chosen])), classes[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield


def _ids(texts: list[str], index: dict[str, int]) -> list[list[int]]:
    return [[index.get(word, 1) for word in words(text)] or [1] for text in texts]


def _pad(rows: list[list[int]]) -> tuple[Tensor, Tensor]:
    lengths = torch.tensor([len(row) for row in rows])
    ids = torch.zeros(len(rows), int(lengths.max()), dtype=torch.long)
    for n, row in enumerate(rows):
        ids[n, : len(row)] = torch.tensor(row)
    return ids, lengths

"""The fine-tuning tasks: what a row is, which head reads it, and its loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from bert_core import model as core
from bert_core.load import Loaded
from bert_core.model import Inputs, Model
from bert_core.training import block, datasets
from bert_core.training.objectives import exact

IGNORED = -100
NER_LABELS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-ORG", "I-ORG")
#: Longest training input in tokens; the untrained positions beyond keep the base's.
MAX_TOKENS = 128
MAX_QUESTION_TOKENS = 192
#: What CoSENT multiplies the difference of two cosines by.
SHARPNESS = 20.0


@dataclass(frozen=True)
class Row:
    """One training example: its sequences and what they should give.

    Attributes:
        sequences: (ids, segments) of each input; two for sentence vectors.
        target: class; (T,) classes; (start, end) positions; or a score 0 to 1.
    """

    sequences: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    target: int | float | tuple[int, ...]

    @property
    def length(self) -> int:
        return max(len(ids) for ids, _ in self.sequences)


@dataclass(frozen=True)
class Task:
    """One fine-tuning task.

    Attributes:
        head: of `Model.heads`; None trains the encoder's sentence vectors.
        architecture: transformers' class that opens the result.
        labels: class names, by index.
        read: (file, loaded model, limit, seed) -> training rows.
        loss: (model, batch of rows, padding id) -> mean loss.
    """

    name: str
    head: str | None
    architecture: str
    labels: tuple[str, ...]
    read: Callable[[Path, Loaded, int | None, int], list[Row]]
    loss: Callable[[Model, Sequence[Row], int], Tensor]


# --- batches -----------------------------------------------------------------


def collate(
    sequences: Sequence[tuple[Sequence[int], Sequence[int]]], pad_id: int, device: str | torch.device = "cpu"
) -> Inputs:
    """Pad (ids, segments) to one both-way batch."""
    longest = max(len(ids) for ids, _ in sequences)
    ids = torch.full((len(sequences), longest), pad_id)
    segments, mask = torch.zeros_like(ids), torch.zeros(ids.shape, dtype=torch.bool)
    for row, (pieces, kinds) in enumerate(sequences):
        ids[row, : len(pieces)], segments[row, : len(pieces)] = torch.tensor(pieces), torch.tensor(kinds)
        mask[row, : len(pieces)] = True
    causal = torch.zeros(len(sequences), dtype=torch.bool)
    return Inputs(*(part.to(device) for part in (ids, segments, mask, causal)))


def encode(model: Model, rows: Sequence[Row], pad_id: int) -> tuple[Inputs, Tensor]:
    """The batch's inputs and last hidden states (B, T, D)."""
    inputs = collate([row.sequences[0] for row in rows], pad_id, model.device)
    return inputs, block.encode(model, inputs)


def classification_loss(model: Model, rows: Sequence[Row], pad_id: int) -> Tensor:
    """Cross-entropy of the classifier over [CLS], nats."""
    _, hidden = encode(model, rows, pad_id)
    logits = exact(core.classification_logits(model, hidden))  # (B, C)
    return F.cross_entropy(logits, torch.tensor([row.target for row in rows], device=logits.device))


def tagging_loss(model: Model, rows: Sequence[Row], pad_id: int) -> Tensor:
    """Cross-entropy a word, read at its first piece."""
    inputs, hidden = encode(model, rows, pad_id)
    targets = torch.full(inputs.input_ids.shape, IGNORED)
    for index, row in enumerate(rows):
        targets[index, : len(row.target)] = torch.tensor(row.target)
    logits = exact(core.token_classification_logits(model, hidden))  # (B, T, C)
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten().to(logits.device), ignore_index=IGNORED)


def answer_loss(model: Model, rows: Sequence[Row], pad_id: int) -> Tensor:
    """Mean cross-entropy of start and end, over [CLS] and the context."""
    inputs, hidden = encode(model, rows, pad_id)
    allowed = (inputs.token_type_ids == 1) & inputs.attention_mask
    allowed[:, 0] = True
    targets = torch.tensor([row.target for row in rows], device=hidden.device)  # (B, 2)
    logits = [part.masked_fill(~allowed, torch.finfo(part.dtype).min)
              for part in map(exact, core.question_answering_logits(model, hidden))]
    return (F.cross_entropy(logits[0], targets[:, 0]) + F.cross_entropy(logits[1], targets[:, 1])) / 2


def sentence_vectors(inputs: Inputs, hidden: Tensor) -> Tensor:
    """(B, D) L2-normalised means over the tokens between [CLS] and the last [SEP], as `embed` gives them."""
    content = inputs.attention_mask.clone()
    content[:, 0] = False
    content[torch.arange(len(content)), inputs.attention_mask.sum(1) - 1] = False
    mean = (hidden * content[..., None]).sum(1) / content.sum(1, keepdim=True).clamp(min=1)
    return F.normalize(mean, dim=-1)


def similarity_loss(model: Model, rows: Sequence[Row], pad_id: int) -> Tensor:
    """CoSENT: pairs that people found more alike should have the larger cosine."""
    inputs = collate([s for row in rows for s in row.sequences], pad_id, model.device)
    vectors = sentence_vectors(inputs, exact(block.encode(model, inputs)))
    cosine = (vectors[0::2] * vectors[1::2]).sum(-1)  # (B,)
    gold = torch.tensor([row.target for row in rows], device=cosine.device)
    gap = SHARPNESS * (cosine[:, None] - cosine[None, :])  # (B, B): row minus column
    wrong = gap[gold[:, None] < gold[None, :]]
    return torch.cat([wrong.new_zeros(1), wrong]).logsumexp(0)


# --- rows --------------------------------------------------------------------


def sampled(rows: Sequence, limit: int | None, seed: int) -> list:
    """`limit` rows drawn without replacement, or all in a new order."""
    order = np.random.default_rng(seed).permutation(len(rows))[:limit]
    return [rows[i] for i in order]


def sequence(loaded: Loaded, text: str, limit: int = MAX_TOKENS):
    """(ids, segments) of a text, cut to `limit` tokens."""
    encoding = loaded.tokenizer.encode(text)
    ids, segments = encoding.input_ids, encoding.token_type_ids
    return (ids if len(ids) <= limit else (*ids[: limit - 1], ids[-1])), segments[:limit]


def _classified(reader: Callable[[Path], list[datasets.Labelled]]):
    def read(path: Path, loaded: Loaded, limit: int | None, seed: int) -> list[Row]:
        return [Row((sequence(loaded, row.text),), row.label) for row in sampled(reader(path), limit, seed)]

    return read


def _pairs(path: Path, loaded: Loaded, limit: int | None, seed: int) -> list[Row]:
    return [Row((sequence(loaded, row.first), sequence(loaded, row.second)), row.score / 5)
            for row in sampled(datasets.read_stsb(path), limit, seed)]


def _tagged(path: Path, loaded: Loaded, limit: int | None, seed: int) -> list[Row]:
    """Kinds that NER_LABELS lacks count as O, as CoNLL's MISC; a file with no other kind teaches nothing."""
    rows, sentences = [], datasets.read_ner(path)
    kinds = {tag[2:] for sentence in sentences for tag in sentence.tags if tag != "O"}
    learnt = sorted({label[2:] for label in NER_LABELS if label != "O"})
    if kinds and kinds.isdisjoint(learnt):
        raise ValueError(f"{path.name} has entities of {', '.join(sorted(kinds))[:60]} only; what is learnt here is "
                         f"{', '.join(learnt)}")
    for words, tags in sampled(sentences, limit, seed):
        encoding = loaded.tokenizer.encode(" ".join(words))
        if len(encoding) <= MAX_TOKENS:
            rows.append(Row(((encoding.input_ids, encoding.token_type_ids),), word_targets(encoding, words, tags)))
    return rows


def word_targets(encoding, words: Sequence[str], tags: Sequence[str]) -> tuple[int, ...]:
    """(T,) class at the first piece of each of the tokenizer's words, IGNORED elsewhere.

    The tokenizer may split one labelled word into several ('U.S.'); the later
    ones continue its entity.
    """
    starts = np.cumsum([0, *(len(word) + 1 for word in words)])
    targets, seen, owner = [IGNORED] * len(encoding), None, None
    for place in encoding.content:
        if encoding.word_ids[place] == seen:
            continue
        seen = encoding.word_ids[place]
        word = int(np.searchsorted(starts, encoding.offsets[place][0], side="right")) - 1
        tag = tags[word] if tags[word] in NER_LABELS else "O"
        targets[place] = NER_LABELS.index(tag if word != owner else tag.replace("B-", "I-"))
        owner = word
    return tuple(targets)


def _questions(path: Path, loaded: Loaded, limit: int | None, seed: int) -> list[Row]:
    rng = np.random.default_rng(seed)
    rows = (_question_row(question, loaded, rng) for question in sampled(datasets.read_squad(path), limit, seed))
    return [row for row in rows if row is not None]


def _question_row(question: datasets.Question, loaded: Loaded, rng: np.random.Generator) -> Row | None:
    """A question with a stretch of its context that holds the answer, placed at random."""
    text, begin = question.answers[0]
    spans = loaded.tokenizer.spans(question.context)
    inside = [n for n, span in enumerate(spans) if span.end > begin and span.start < begin + len(text)]
    asked = loaded.tokenizer.encode(question.question).input_ids[:40]
    room = min(MAX_QUESTION_TOKENS, loaded.tokenizer.limit) - len(asked) - 1
    if not inside or len(inside) > room:
        return None
    low, high = max(0, inside[-1] + 1 - room), min(inside[0], max(0, len(spans) - room))
    starts = [n for n in range(low, max(low, high) + 1) if not n or spans[n].word != spans[n - 1].word]
    if not starts:  # half a word would be split anew, and the answer shift
        return None
    first = int(rng.choice(starts))
    stretch = question.context[spans[first].start : spans[min(first + room, len(spans)) - 1].end]
    context, end = loaded.tokenizer.encode(stretch).input_ids[1:-1][:room], loaded.tokenizer.id_of("[SEP]")
    ids = (*asked[:-1], end, *context, end)
    segments = (0,) * len(asked) + (1,) * (len(context) + 1)
    target = (inside[0] - first + len(asked), inside[-1] - first + len(asked))
    return Row(((ids, segments),), target) if target[1] < len(ids) - 1 else None


TASKS = {
    task.name: task
    for task in (
        Task("sst2", "classification", "BertForSequenceClassification", ("negative", "positive"),
             _classified(datasets.read_sst2), classification_loss),
        Task("cola", "classification", "BertForSequenceClassification", ("unacceptable", "acceptable"),
             _classified(datasets.read_cola), classification_loss),
        Task("ner", "token_classification", "BertForTokenClassification", NER_LABELS, _tagged, tagging_loss),
        Task("squad", "question_answering", "BertForQuestionAnswering", (), _questions, answer_loss),
        Task("stsb", None, "BertModel", (), _pairs, similarity_loss),
    )
}

"""Scores of the language models: masked pieces, next pieces, next sentences, minimal pairs, everyday gaps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F

from bert_core import model as core
from bert_core.load import Loaded
from bert_core.training.block import hidden_at
from bert_core.training.corpus import documents
from bert_core.training.corruption import corrupt, reverse_order
from bert_core.training.datasets import every, read_blimp, read_cloze, read_paragraphs
from bert_core.training.objectives import Objective, Sample
from bert_core.training.packing import NO_PAIR, Lengths, Packed, Special, pack
from bert_core.training.pretrain import micro_batches
from bert_core.training.taskdata import sequence

#: Longest sequence that is scored, specials included, for models that take longer ones too.
LIMIT = 512
MICRO_TOKENS = 2048
CLOZE = Path(__file__).resolve().parents[2] / "assets" / "examples" / "cloze.json"


class PieceScores(NamedTuple):
    """What a model says at every chosen position of one sequence; all are (P,).

    Attributes:
        log_probability: of the true piece, nats.
        rank: how many pieces it finds more probable.
    """

    log_probability: np.ndarray
    rank: np.ndarray


# --- sequences ---------------------------------------------------------------


def special_of(loaded: Loaded) -> Special:
    """Ids of the model's special tokens, however its family spells them.

    Raises:
        ValueError: it has none for one of the five roles.
    """
    names = loaded.tokenizer.specials
    if missing := [role for role in Special._fields if role not in names]:
        raise ValueError(f"{loaded.name} has no {' and no '.join(missing)} token; this task needs one of each role")
    return Special(*(loaded.tokenizer.id_of(names[role]) for role in Special._fields))


def encode(loaded: Loaded, text: str) -> np.ndarray:
    """(T,) ids of one text with specials, cut at the model's limit and at LIMIT."""
    return np.array(sequence(loaded, text, limit=LIMIT)[0])


def is_fixed(ids: np.ndarray, special: Special) -> np.ndarray:
    """(T,) bool, True where a piece is never scored: specials and [UNK]."""
    return np.isin(ids, (special.cls, special.sep, special.unk))


def masked_sample(ids: np.ndarray, special: Special, rng: np.random.Generator) -> Sample:
    """15 % of the pieces replaced by [MASK], all of them to be predicted."""
    seen = corrupt(ids, is_fixed(ids, special), special.mask, ids, rng, 0.15, split=(1.0, 0.0, 0.0))
    return Sample(seen.input_ids, np.zeros_like(ids), seen.positions, seen.labels, NO_PAIR)


def each_masked(ids: np.ndarray, special: Special) -> list[Sample]:
    """One sample a piece with only that piece masked (Salazar et al. 2020, arXiv 1910.14659)."""
    samples = []
    for place in np.flatnonzero(~np.isin(ids, (special.cls, special.sep))):
        seen = ids.copy()
        seen[place] = special.mask
        samples.append(Sample(seen, np.zeros_like(ids), np.array([place]), ids[[place]], NO_PAIR))
    return samples


def causal_sample(ids: np.ndarray, special: Special, reverse: bool, skip_unknown: bool) -> Sample:
    """Every piece predicted from what is read before it; [SEP] (and [UNK]) not scored."""
    order = reverse_order(len(ids)) if reverse else np.arange(len(ids))
    read = ids[order]
    ignored = is_fixed(read, special) if skip_unknown else np.isin(read, (special.cls, special.sep))
    rows = np.flatnonzero(~ignored) - 1
    return Sample(read, np.zeros_like(read), rows, read[rows + 1], NO_PAIR)


@torch.inference_mode()
def score_pieces(loaded: Loaded, samples: Sequence[Sample]) -> list[PieceScores]:
    """Forward passes over samples in batches of like length; results in the samples' order."""
    kind = "clm" if loaded.config.is_decoder else "mlm"
    objective = Objective(kind, special_of(loaded), np.arange(1))
    found: dict[int, PieceScores] = {}
    number = {id(sample): n for n, sample in enumerate(samples)}
    for micro in micro_batches([s for s in samples if len(s.targets)], MICRO_TOKENS):
        batch = objective.collate(micro, loaded.model.device)
        read = hidden_at(loaded.model, batch.inputs, batch.positions)[batch.chosen]  # (P, D)
        logits = core.mlm_logits(loaded.model, read).float()  # (P, V)
        own = logits.gather(1, batch.targets[:, None])  # (P, 1)
        logs = (own - logits.logsumexp(-1, keepdim=True))[:, 0].cpu().numpy()
        ranks = (logits > own).sum(-1).cpu().numpy()
        ends = np.cumsum([len(s.targets) for s in micro])[:-1]
        for sample, log, rank in zip(micro, np.split(logs, ends), np.split(ranks, ends), strict=True):
            found[number[id(sample)]] = PieceScores(log, rank)
    empty = PieceScores(np.zeros(0), np.zeros(0, dtype=np.int64))
    return [found.get(n, empty) for n in range(len(samples))]


# --- tasks -------------------------------------------------------------------


def require(loaded: Loaded, *heads: str) -> None:
    """ValueError if the model has none of `heads` (an untrained head never answers), or another block than BERT's."""
    if not loaded.model.heads.intersection(heads):
        raise ValueError(f"{loaded.name} has no {' or '.join(heads)} head; it can't be scored on this task")
    if not isinstance(loaded.model, core.Model):
        raise ValueError(f"{loaded.name} runs through transformers; this task is scored on BERT's own block only")


def over_seeds(measure: Callable[[int], dict[str, float]], seeds: int) -> dict[str, float]:
    """Mean and sample standard deviation of every metric over the seeds 0 .. seeds - 1; 0 for one seed."""
    runs = [measure(seed) for seed in range(seeds)]
    out: dict[str, float] = {}
    for name in runs[0]:
        values = [run[name] for run in runs]
        out[name] = float(np.mean(values))
        out[f"{name}_std"] = float(np.std(values, ddof=1)) if seeds > 1 else 0.0
    return out


def _piece_metrics(scores: Sequence[PieceScores]) -> dict[str, float]:
    logs, ranks = np.concatenate([s.log_probability for s in scores]), np.concatenate([s.rank for s in scores])
    if not len(logs):
        raise ValueError("no piece was chosen to be scored; the text is too short")
    loss = float(-logs.mean())
    return {"accuracy": float((ranks == 0).mean()), "top5": float((ranks < 5).mean()), "loss": loss,
            "perplexity": math.exp(min(loss, 700.0)), "predictions": len(logs)}


def masked_lm(loaded: Loaded, path: Path, seeds: int = 5, limit: int | None = None) -> dict[str, Any]:
    """Masked-token accuracy and perplexity: one paragraph a sequence, 15 % masked, never an [UNK]."""
    require(loaded, "mlm")
    sequences = [encode(loaded, text) for text in every(read_paragraphs(path), limit, path)]
    special = special_of(loaded)

    def measure(seed: int) -> dict[str, float]:
        rng = np.random.default_rng(seed)
        return _piece_metrics(score_pieces(loaded, [masked_sample(ids, special, rng) for ids in sequences]))

    return {"n": len(sequences), **over_seeds(measure, seeds)}


def causal_lm(loaded: Loaded, path: Path, seeds: int = 1, limit: int | None = None) -> dict[str, Any]:
    """Next-piece perplexity: one paragraph a sequence, [SEP] and [UNK] not scored; nothing is drawn."""
    require(loaded, "lm")
    special, reverse = special_of(loaded), loaded.config.reading_order == "right-to-left"
    sequences = [encode(loaded, text) for text in every(read_paragraphs(path), limit, path)]
    samples = [causal_sample(ids, special, reverse, True) for ids in sequences]
    return {"n": len(samples), **over_seeds(lambda _: _piece_metrics(score_pieces(loaded, samples)), 1)}


def next_sentence(loaded: Loaded, path: Path, seeds: int = 5, limit: int | None = None) -> dict[str, Any]:
    """Next-sentence accuracy on held-out documents, half of the false pairs from the same document."""
    require(loaded, "nsp")
    docs = every(documents(path), None, path)
    counts: list[int] = []

    def measure(seed: int) -> dict[str, float]:
        pairs = held_out_pairs(loaded, docs, seed)
        if not pairs:
            raise ValueError(f"no pairs in {str(path)!r}: no document has two sentences to pair")
        pairs = every(pairs, limit, path)
        counts.append(len(pairs))
        return {"accuracy": _pair_accuracy(loaded, pairs)}

    return {**over_seeds(measure, seeds), "n": counts[0]}


def held_out_pairs(loaded: Loaded, docs: Sequence[str], seed: int, tokens: int = 40_000) -> list[tuple[Sample, int]]:
    """Pairs packed from whole sentences as in training, about `tokens` pieces of them, with their labels."""
    packed: Packed = pack({"text": docs}, {"text": 1.0}, loaded.tokenizer.backend, tokens,
                          Lengths(min(128, loaded.tokenizer.limit), long_share=0.0, short_share=0.0), seed=seed)
    samples = []
    for example in (packed[i] for i in range(len(packed)) if packed.label[i] != NO_PAIR):
        segments = (np.arange(len(example.ids)) >= example.first).astype(np.int64)
        none = np.zeros(0, dtype=np.int64)
        samples.append((Sample(example.ids, segments, none, none, example.label), example.label))
    return samples


@torch.inference_mode()
def _pair_accuracy(loaded: Loaded, pairs: Sequence[tuple[Sample, int]]) -> float:
    objective, right = Objective("mlm", special_of(loaded), np.arange(1)), 0
    for micro in micro_batches([sample for sample, _ in pairs], MICRO_TOKENS):
        batch = objective.collate(micro, loaded.model.device)
        first = hidden_at(loaded.model, batch.inputs, batch.positions)  # (B, 1, D): [CLS] alone
        logits = core.nsp_logits(loaded.model, core.pooled_output(loaded.model, first))  # (B, 2)
        right += int((logits.argmax(-1) == batch.labels).sum())
    return right / len(pairs)


def minimal_pairs(loaded: Loaded, path: Path, seeds: int = 1, limit: int | None = None) -> dict[str, Any]:
    """Share of BLiMP pairs whose good sentence scores higher; `limit` pairs of each rule.

    Log-likelihood for a causal model, pseudo-log-likelihood for a BERT.
    """
    require(loaded, "mlm", "lm")
    pairs = read_blimp(path, limit)
    likelihood = log_likelihoods(loaded, [text for pair in pairs for text in (pair.good, pair.bad)])
    right = likelihood[0::2] > likelihood[1::2]
    rules = sorted({pair.rule for pair in pairs})
    by_rule = {rule: float(np.mean([r for r, p in zip(right, pairs, strict=True) if p.rule == rule]))
               for rule in rules}
    return {"n": len(pairs), "accuracy": float(right.mean()), "accuracy_std": 0.0, "rules": by_rule}


def log_likelihoods(loaded: Loaded, texts: Sequence[str]) -> np.ndarray:
    """(N,) nats: log-likelihood, or pseudo-log-likelihood of a masked model; specials not scored."""
    special, reverse = special_of(loaded), loaded.config.reading_order == "right-to-left"
    if "lm" in loaded.model.heads:
        samples = [causal_sample(encode(loaded, text), special, reverse, False) for text in texts]
        return np.array([s.log_probability.sum() for s in score_pieces(loaded, samples)])
    totals = []
    for some in _chunks(texts, 200):
        groups = [each_masked(encode(loaded, text), special) for text in some]
        scores = iter(score_pieces(loaded, [sample for group in groups for sample in group]))
        totals += [sum(float(next(scores).log_probability[0]) for _ in group) for group in groups]
    return np.array(totals)


def _chunks(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def everyday_cloze(loaded: Loaded, path: Path = CLOZE, seeds: int = 1, limit: int | None = None) -> dict[str, Any]:
    """Share of everyday gaps with an accepted word among the first 1 and 5 guesses."""
    require(loaded, "mlm")
    special, vocabulary = special_of(loaded), loaded.tokenizer
    items = every(read_cloze(path), limit, path)
    first, five, missed = 0, 0, []
    for item in items:
        ids = encode(loaded, item.text)
        place = np.flatnonzero(ids == special.mask)
        if not len(place):
            raise ValueError(f"{Path(path).name}: no [MASK] that the model reads in {item.text[:60]!r}")
        guesses = [vocabulary.token_of(i) for i in top_ids(loaded, ids, place)]
        first += guesses[0] in item.accept
        five += bool(set(guesses) & item.accept)
        if not set(guesses) & item.accept:
            missed.append({"text": item.text, "guesses": guesses})
    return {"n": len(items), "top1": first / len(items), "top5": five / len(items), "missed": missed}


@torch.inference_mode()
def top_ids(loaded: Loaded, ids: np.ndarray, places: np.ndarray) -> list[int]:
    """The five most probable ids at the first of `places`."""
    sample = Sample(ids, np.zeros_like(ids), places[:1], ids[places[:1]], NO_PAIR)
    batch = Objective("mlm", special_of(loaded), np.arange(1)).collate([sample], loaded.model.device)
    read = hidden_at(loaded.model, batch.inputs, batch.positions)[batch.chosen]
    return F.log_softmax(core.mlm_logits(loaded.model, read), dim=-1)[0].topk(5).indices.tolist()


LANGUAGE_TASKS: dict[str, Callable[..., dict[str, Any]]] = {
    "mlm": masked_lm, "clm": causal_lm, "nsp": next_sentence, "blimp": minimal_pairs, "cloze": everyday_cloze,
}

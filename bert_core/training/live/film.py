"""Looking at a run's checkpoints: one sentence through every frame, from the random start on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from tokenizers import Tokenizer as FastTokenizer
from torch import Tensor

from bert_core import model as bert
from bert_core.config import BertConfig
from bert_core.load import Loaded, build, describe_model
from bert_core.tokenizer import Tokenizer
from bert_core.trace import Trace, TraceRequest, run_batch
from bert_core.training.live.folder import RunFolder
from bert_core.training.live.pairs import MAX_TOKENS
from bert_core.training.live.pretraining import config_of, start_of
from bert_core.training.live.specs import PretrainSpec
from bert_core.training.live.text import learn_vocabulary, shipped_split
from bert_core.training.live.world import read_world

#: Guesses for a gap; words on the map, and of the small world so many of each kind.
TOP, MAX_WORDS, EACH = 5, 60, 9
#: Characters that are words by themselves, and that BERT's tokenizer parts from their neighbours.
_IDEOGRAPH = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_SPECIALS = {"cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]", "pad": "[PAD]", "unk": "[UNK]"}


class Guess(NamedTuple):
    """A piece and its probability."""

    token: str
    probability: float


class Shot(NamedTuple):
    """One sentence under one checkpoint; T tokens, P gaps, W words.

    Attributes:
        step: optimiser steps done.
        tokens: the sentence's pieces.
        gaps: positions of [MASK].
        guesses: P x TOP, likeliest first.
        attention: (L, H, Tq, Tk) probabilities.
        words, groups: words of the vocabulary, and what each one is.
        vectors: (W, D) their embeddings.
        dropped, gaps_cut: pieces and [MASK]s of the sentence that did not fit MAX_TOKENS.
    """

    step: int
    tokens: tuple[str, ...]
    gaps: tuple[int, ...]
    guesses: list[list[Guess]]
    attention: np.ndarray
    words: tuple[str, ...]
    groups: tuple[str, ...]
    vectors: np.ndarray
    dropped: int
    gaps_cut: int


@lru_cache(maxsize=4)
def tokenizer_of(text: str) -> Tokenizer:
    """The tokenizer that a run left in its folder, from its JSON."""
    return Tokenizer(FastTokenizer.from_str(text), MAX_TOKENS, _SPECIALS)


@lru_cache(maxsize=1)
def shipped_tokenizer() -> Tokenizer:
    """The tokenizer of runs on the shipped text."""
    return Tokenizer(learn_vocabulary(shipped_split().train), MAX_TOKENS, _SPECIALS)


def load_frame(config: BertConfig, weights: dict[str, Tensor], tokenizer: Tokenizer, name: str) -> Loaded:
    """A checkpoint as a model that traces can be run on."""
    model = build(config, weights, torch.float32, "cpu")
    return Loaded(name, model, tokenizer, describe_model(name, model))


def frame_zero(spec: PretrainSpec) -> Loaded:
    """The random start of a run on the shipped text that nobody has begun yet."""
    tokenizer = shipped_tokenizer()
    config = config_of(spec, tokenizer.vocab_size)
    return load_frame(config, start_of(spec, config.vocab_size), tokenizer, "step 0")


def run_frame(folder: RunFolder, step: int) -> Loaded:
    """The model of a run as it was after `step` steps.

    Raises:
        ValueError: there is no such frame.
    """
    config, tokenizer = folder.values("config"), folder.read_text("tokenizer.json")
    if config is None or tokenizer is None:
        raise ValueError("the run has not begun yet; wait for its first frame")
    return load_frame(BertConfig.from_dict(config), folder.frame(step), tokenizer_of(tokenizer), f"step {step}")


def trace_frame(loaded: Loaded, text: str, spec: PretrainSpec) -> Trace:
    """Run one sentence the way the run was trained (mask, positions)."""
    request = TraceRequest(
        text, attention="causal" if spec.causal else "bidirectional",
        embeddings_off=() if spec.positions else ("position",),
        parts=("attention_probs", "mlm_logits", "mlm_positions"),
    )
    return run_batch(loaded, [request])[0]


def shoot(step: int, loaded: Loaded, text: str, spec: PretrainSpec) -> Shot:
    """One sentence under one checkpoint."""
    trace = trace_frame(loaded, text, spec)
    words, groups = shown_words(loaded.tokenizer)
    encoding = trace.encoding
    return Shot(step, encoding.tokens, encoding.mask_positions, guesses(loaded, trace), trace.attention_probs,
                words, groups, word_vectors(loaded, words), encoding.dropped, len(encoding.masks_beyond))


def guesses(loaded: Loaded, trace: Trace) -> list[list[Guess]]:
    """For each gap the likeliest pieces."""
    logits = trace.mlm_logits.astype(np.float64)  # (P, V)
    probabilities = np.exp(logits - logits.max(axis=-1, keepdims=True))
    probabilities /= probabilities.sum(axis=-1, keepdims=True)
    best = np.argsort(-probabilities, axis=-1)[:, :TOP]
    return [[Guess(loaded.tokenizer.token_of(i), float(row[i])) for i in ids] for row, ids in zip(probabilities, best)]


def word_vectors(loaded: Loaded, words: Sequence[str]) -> np.ndarray:
    """(W, D) rows of the word table."""
    ids = torch.tensor([loaded.tokenizer.id_of(word) for word in words], dtype=torch.long)  # of no words: float
    return bert.word_vectors(loaded.model, ids).numpy()


def project(shots: Sequence[Shot]) -> np.ndarray:
    """(F, W, 2) places of the words: on the two main axes of the latest frame, so that words move and axes don't.

    W may be 0.
    """
    tables = np.stack([shot.vectors for shot in shots])  # (F, W, D)
    if not tables.shape[1]:  # they have no middle
        return np.zeros((len(tables), 0, 2), dtype=np.float32)
    latest = tables[-1] - tables[-1].mean(axis=0)
    _, _, found = np.linalg.svd(latest, full_matrices=False)
    axes = np.zeros((2, tables.shape[-1]))  # a single word has but one, and stays in the middle
    axes[: len(found)] = found[:2] * np.sign(found[:2, np.abs(found[:2]).argmax(axis=1)].diagonal())[:, None]
    return ((tables - tables.mean(axis=1, keepdims=True)) @ axes.T).astype(np.float32)


@lru_cache(maxsize=1)
def world_groups() -> dict[str, str]:
    """Word of the small world -> what it is."""
    world = read_world()
    groups: dict[str, str] = {}
    for name, facts in list(world["people"].items())[:EACH]:
        groups |= {name: "name", facts[1]: "job", facts[2]: "place", facts[3]: "verb, present", facts[4]: "verb, past"}
    groups |= dict.fromkeys(list(world["animals"])[:EACH], "animal")
    return groups


def shown_words(tokenizer: Tokenizer) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Words for the map of embeddings: those of the small world, or whole words of a text of one's own.

    A text of numbers has none.
    """
    known = {word: group for word, group in world_groups().items() if tokenizer.id_of(word) is not None}
    if len(known) < 20:
        whole = [w for w in tokenizer.backend.get_vocab() if w.isalpha() and (len(w) > 2 or _IDEOGRAPH.match(w))]
        known = dict.fromkeys(sorted(whole, key=tokenizer.id_of)[:MAX_WORDS], "word")
    order = sorted(known, key=lambda word: (known[word], word))
    return tuple(order), tuple(known[word] for word in order)

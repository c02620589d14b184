"""A base-size BERT with seeded random weights, for us and for transformers alike.

Speed does not depend on what the weights say, and nothing can be downloaded
here; equality of the outputs is checked in every benchmark that uses it.
"""

from __future__ import annotations

import functools
import random

import torch

from bert_core.config import BertConfig
from bert_core.kernels import packed
from bert_core.load import Loaded, LoadError, build, describe_model, load_model, shipped_names
from bert_core.tokenizer import Tokenizer

#: Where both sides compute: the engine takes a GPU where there is one.
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LENGTHS = (8, 16, 32, 64, 128, 512)
_WORDS = ("the river runs past old stone houses where people cook bread and sing at night while children "
          "draw maps of every road that leads from this small town to the sea").split()


@functools.cache
def peer():
    """transformers' BertForMaskedLM at base size, eager attention, seeded."""
    from transformers import BertConfig as PeerConfig
    from transformers import BertForMaskedLM

    torch.manual_seed(0)
    return BertForMaskedLM._from_config(PeerConfig(), attn_implementation="eager").eval().to(DEVICE)


@functools.cache
def ours(dtype: torch.dtype = torch.float32) -> Loaded:
    """The same weights as a Loaded model of ours, packed."""
    state = {n: t for n, t in peer().state_dict().items() if n != "cls.predictions.decoder.weight"}
    model = build(BertConfig(architectures=("BertForMaskedLM",)), state, dtype, DEVICE)
    return Loaded("base", packed(model), tokenizer(), describe_model("base", model))


@functools.cache
def tokenizer() -> Tokenizer:
    """The shipped tokenizer, limited at base size's 512.

    Raises:
        LoadError: no model is shipped.
    """
    if not shipped_names():
        raise LoadError("no shipped model, so no tokenizer")
    return load_model(shipped_names()[0]).tokenizer


def text(length: int, turn: int) -> str:
    """A sentence of `length` tokens, specials included, with one [MASK], another each turn."""
    draw = random.Random(turn * 1000 + length)
    words = [draw.choice(_WORDS) for _ in range(length - 2)]
    words[draw.randrange(len(words))] = "[MASK]"
    return " ".join(words)

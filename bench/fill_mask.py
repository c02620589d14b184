"""Fill-mask through our engine against transformers' pipeline, base size, other text each time.

The pipeline has its default attention; the five likeliest pieces must be the same.
"""

from __future__ import annotations

import functools

import torch

from bench import _base_model as base
from bench.harness import compared, interleave
from bert_core.serving.local import LocalEngine
from bert_core.trace import TraceRequest

LENGTHS = (8, 16, 32, 128)


@functools.cache
def engine() -> LocalEngine:
    """Our engine with the base-size model registered and no cache."""
    from bert_core.load import shipped_names

    started = LocalEngine(shipped_names()[0], cache_bytes=0)
    started.register(base.ours())
    return started


@functools.cache
def peer():
    """transformers' own pipeline on the weights of `base.peer()`, but with its default attention."""
    from transformers import BertConfig, BertForMaskedLM, BertTokenizerFast, pipeline

    model = BertForMaskedLM(BertConfig()).eval()
    model.load_state_dict(base.peer().state_dict())
    tokenizer = BertTokenizerFast(tokenizer_object=base.tokenizer().backend)
    return pipeline("fill-mask", model=model, tokenizer=tokenizer, device=base.DEVICE)


def our_answer(length: int, turn: int) -> list[int]:
    """Ids of the five likeliest pieces at the gap."""
    parts = ("mlm_positions", "mlm_logits")
    trace = engine().run(TraceRequest(text=base.text(length, turn), model="base", parts=parts))
    return torch.from_numpy(trace.mlm_logits.copy()).softmax(-1).topk(5).indices[0].tolist()


def run() -> dict[str, dict[str, float]]:
    """A case a length; the five answers must be the pipeline's."""
    results = {}
    for length in LENGTHS:
        theirs = [answer["token"] for answer in peer()(base.text(length, 0), top_k=5)]
        if our_answer(length, 0) != theirs:
            raise RuntimeError(f"answers differ at {length} tokens")
        times = interleave({
            "ours": lambda turn, n=length: our_answer(n, turn),
            "peer": lambda turn, n=length: peer()(base.text(n, turn), top_k=5),
        }, repeats=20)
        results[f"pieces/{length}"] = compared(times["ours"], times["peer"])
    return results

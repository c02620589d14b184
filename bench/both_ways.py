"""Both ways and one way as one batch of two, against two forwards of transformers.

Base size, same weights, fp32. The peer is BertForMaskedLM, then BertLMHeadModel
with `is_decoder` on the same weights. Other text each time, equality checked in
the run.

    fp32/N         every intermediate as NumPy on both sides, all logits (transformers: eager, attentions and hidden
                   states)
    fp32-masked/N  the same with our logits at the gap only
    page/N         what Compare asks for, the answers at the gap, against two forwards that are asked for logits alone,
                   with transformers' default attention
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from bench import _base_model as base
from bench.harness import compared, interleave
from bert_core.trace import Trace, TraceRequest, run_batch

if TYPE_CHECKING:  # it takes seconds to import
    from transformers import PreTrainedModel

REPEATS = {16: 24, 128: 10}
#: What `compare.masked_requests` asks for.
ANSWERS = ("mlm_positions", "mlm_logits")


@functools.cache
def peers(attention: str) -> tuple[PreTrainedModel, PreTrainedModel]:
    """transformers' BERT and its causal BERT on the weights of `base.peer()`, 'eager' or with another attention."""
    from transformers import BertConfig, BertForMaskedLM, BertLMHeadModel

    found = []
    for kind, config in ((BertForMaskedLM, BertConfig()), (BertLMHeadModel, BertConfig(is_decoder=True))):
        model = kind._from_config(config, attn_implementation=attention).eval()
        missing, unknown = model.to(base.DEVICE).load_state_dict(base.peer().state_dict(), strict=False)
        if missing or unknown:
            raise RuntimeError(f"the peer has other weights: {missing} {unknown}")
        found.append(model)
    return tuple(found)


def ids_of(length: int, turn: int) -> torch.Tensor:
    """(1, T) of the text of a turn."""
    return torch.tensor([base.tokenizer().encode(base.text(length, turn)).input_ids], device=base.DEVICE)


def peer_run(length: int, turn: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Two forwards: (logits, attentions) of each, (T, V) and (L, H, T, T)."""
    ids, found = ids_of(length, turn), []
    for model in peers("eager"):
        with torch.inference_mode():
            out = model(input_ids=ids, output_attentions=True, output_hidden_states=True)
        if not out.attentions:
            raise RuntimeError("transformers gave no attentions; the comparison would be unfair")
        found.append((out.logits[0].cpu().numpy(), np.concatenate([a.cpu().numpy() for a in out.attentions])))
    return found


def peer_answers(length: int, turn: int) -> list[np.ndarray]:
    """Two forwards that nobody asks for more than logits, (T, V) of each."""
    ids = ids_of(length, turn)
    with torch.inference_mode():
        return [model(input_ids=ids).logits[0].cpu().numpy() for model in peers("sdpa")]


def our_run(length: int, turn: int, **asked: Any) -> list[Trace]:
    """One batch of two rows: the same text, bidirectional and causal."""
    text = base.text(length, turn)
    return run_batch(base.ours(), [TraceRequest(text, attention=kind, **asked) for kind in ("bidirectional", "causal")])


def check(length: int) -> float:
    """Largest difference of logits and attentions; an error if it is no rounding."""
    worst = 0.0
    whole, answers = our_run(length, 0, all_logits=True), our_run(length, 0, parts=ANSWERS)
    for trace, page, (logits, attentions), plain in zip(
            whole, answers, peer_run(length, 0), peer_answers(length, 0), strict=True):
        worst = max(worst, float(np.abs(trace.mlm_logits - logits).max()),
                    float(np.abs(trace.attention_probs - attentions).max()),
                    float(np.abs(page.mlm_logits - plain[page.mlm_positions]).max()))
    if not worst <= 1e-3:
        raise RuntimeError(f"outputs differ by {worst} at {length} tokens")
    return worst


def run() -> dict[str, dict[str, float]]:
    """All cases; see the module's first lines."""
    results: dict[str, dict[str, float]] = {}
    for length, repeats in REPEATS.items():
        error = check(length)
        times = interleave({
            "peer": lambda turn, n=length: peer_run(n, turn),
            "peer's answers": lambda turn, n=length: peer_answers(n, turn),
            "fp32": lambda turn, n=length: our_run(n, turn, all_logits=True),
            "fp32-masked": lambda turn, n=length: our_run(n, turn),
            "page": lambda turn, n=length: our_run(n, turn, parts=ANSWERS),
        }, repeats)
        for case, peer in (("fp32", "peer"), ("fp32-masked", "peer"), ("page", "peer's answers")):
            results[f"{case}/{length}"] = compared(times[case], times[peer], error=float(f"{error:.2g}"))
    return results

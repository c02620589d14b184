"""Both ways and one way as one batch of two, against two forwards of transformers.

Base size, same weights, fp32, every intermediate wanted and given as NumPy:
fp32/N with all logits on both sides, fp32-masked/N with ours at the gap only,
which is all that the page shows. The peer is BertForMaskedLM, then
BertLMHeadModel with `is_decoder` on the same weights, eager, with attentions
and hidden states. Other text each time, equality checked in the run.
"""

from __future__ import annotations

import functools

import numpy as np
import torch

from bench import _base_model as base
from bench.harness import compared, interleave
from bert_core.trace import Trace, TraceRequest, run_batch

REPEATS = {16: 24, 128: 10}


@functools.cache
def causal_peer():
    """transformers' causal BERT on the weights of `base.peer()`."""
    from transformers import BertConfig, BertLMHeadModel

    model = BertLMHeadModel._from_config(BertConfig(is_decoder=True), attn_implementation="eager").eval()
    missing, unknown = model.to(base.DEVICE).load_state_dict(base.peer().state_dict(), strict=False)
    if missing or unknown:
        raise RuntimeError(f"the causal peer has other weights: {missing} {unknown}")
    return model


def peer_run(length: int, turn: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Two forwards: (logits, attentions) of each, (T, V) and (L, H, T, T)."""
    ids = torch.tensor([base.tokenizer().encode(base.text(length, turn)).input_ids], device=base.DEVICE)
    found = []
    for model in (base.peer(), causal_peer()):
        with torch.inference_mode():
            out = model(input_ids=ids, output_attentions=True, output_hidden_states=True)
        if not out.attentions:
            raise RuntimeError("transformers gave no attentions; the comparison would be unfair")
        found.append((out.logits[0].cpu().numpy(), np.concatenate([a.cpu().numpy() for a in out.attentions])))
    return found


def our_run(length: int, turn: int, all_logits: bool) -> list[Trace]:
    """One batch of two rows: the same text, bidirectional and causal."""
    text = base.text(length, turn)
    return run_batch(base.ours(), [TraceRequest(text, attention=kind, all_logits=all_logits)
                                   for kind in ("bidirectional", "causal")])


def check(length: int) -> float:
    """Largest difference of logits and attentions; an error if it is no rounding."""
    worst = 0.0
    for trace, (logits, attentions) in zip(our_run(length, 0, True), peer_run(length, 0), strict=True):
        worst = max(worst, float(np.abs(trace.mlm_logits - logits).max()),
                    float(np.abs(trace.attention_probs - attentions).max()))
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
            "fp32": lambda turn, n=length: our_run(n, turn, True),
            "fp32-masked": lambda turn, n=length: our_run(n, turn, False),
        }, repeats)
        for case in ("fp32", "fp32-masked"):
            results[f"{case}/{length}"] = compared(times[case], times["peer"], error=float(f"{error:.2g}"))
    return results

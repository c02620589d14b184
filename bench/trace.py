"""Full Trace of a base-size model against transformers eager with attentions and hidden states.

Cases: fp32/N all logits, fp32-masked/N logits at the gap only, bf16-masked/N the
labelled fast mode, fp32-medium/N ours against transformers with matmul precision
'medium'. Other text each time, all parts wanted, everything ends as NumPy,
equality checked in the run; `error` is the largest difference of hidden states.
"""

from __future__ import annotations

import numpy as np
import torch

from bench import _base_model as base
from bench.harness import compared, interleave
from bert_core.trace import TraceRequest, run_batch

_REPEATS = {8: 30, 16: 30, 32: 24, 64: 16, 128: 12, 512: 5}


def peer_run(length: int, turn: int):
    """transformers' forward with everything it can give, as NumPy."""
    encoding = base.tokenizer().encode(base.text(length, turn))
    with torch.inference_mode():
        out = base.peer()(input_ids=torch.tensor([encoding.input_ids], device=base.DEVICE), output_attentions=True,
                          output_hidden_states=True)
        if not out.attentions:
            raise RuntimeError("transformers gave no attentions; the comparison would be unfair")
        return (out.logits.cpu().numpy(), [a.cpu().numpy() for a in out.attentions],
                [h.cpu().numpy() for h in out.hidden_states])


def our_run(length: int, turn: int, dtype: torch.dtype, all_logits: bool):
    request = TraceRequest(text=base.text(length, turn), all_logits=all_logits)
    return run_batch(base.ours(dtype), [request])[0]


def check(length: int, dtype: torch.dtype, tolerance: float) -> float:
    """Largest difference of logits, attentions and hidden states; an error if it is no rounding."""
    logits, attentions, hidden = peer_run(length, 0)
    trace = our_run(length, 0, dtype, all_logits=True)
    if len(trace) != length:
        raise RuntimeError(f"the text has {len(trace)} tokens, not {length}")
    worst = max(
        float(np.abs(trace.mlm_logits - logits[0]).max()),
        float(np.abs(trace.attention_probs - np.concatenate(attentions)).max()),
        float(np.abs(trace.hidden_states - np.concatenate(hidden)).max()),
    )
    if not worst <= tolerance:
        raise RuntimeError(f"outputs differ by {worst} at {length} tokens")
    return worst


def run() -> dict[str, dict[str, float]]:
    """All cases; see the module's first lines."""
    results: dict[str, dict[str, float]] = {}
    for length in base.LENGTHS:
        exact, rough = check(length, torch.float32, 1e-3), check(length, torch.bfloat16, 0.5)
        times = interleave({
            "peer": lambda turn, n=length: peer_run(n, turn),
            "fp32": lambda turn, n=length: our_run(n, turn, torch.float32, True),
            "fp32-masked": lambda turn, n=length: our_run(n, turn, torch.float32, False),
            "bf16-masked": lambda turn, n=length: our_run(n, turn, torch.bfloat16, False),
        }, _REPEATS[length])
        for case, error in (("fp32", exact), ("fp32-masked", exact), ("bf16-masked", rough)):
            results[f"{case}/{length}"] = compared(times[case], times["peer"], error=float(f"{error:.2g}"))
        torch.set_float32_matmul_precision("medium")
        medium = interleave({
            "peer": lambda turn, n=length: peer_run(n, turn),
            "fp32": lambda turn, n=length: our_run(n, turn, torch.float32, True),
        }, max(_REPEATS[length] // 2, 3))
        torch.set_float32_matmul_precision("highest")
        results[f"fp32-medium/{length}"] = compared(medium["fp32"], medium["peer"])
    return results

"""The compare page's numbers in one batched pass against a pass for each.

At 16, 32 and 64 tokens, on twin-bert:

    readings/N  both ways and right side hidden at one place: 2 rows
    page/N      the same and every step of the context reveal

The peer runs the same requests one by one. Caches off, another text each
repetition, outputs compared in the same run.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bench import _base_model as base
from bench.harness import compared, interleave
from bert_core.kernels import packed
from bert_core.load import Loaded, load_model
from bert_core.measures import compare, reveal
from bert_core.trace import TraceRequest, run_batch

LENGTHS = (16, 32, 64)
REPEATS = 15
#: Rows of one pass, as the engine bounds them.
ROWS = 16


def requests(loaded: Loaded, length: int, turn: int, whole_page: bool) -> list[TraceRequest]:
    """What the page asks for one sentence, the middle word hidden."""
    text = base.text(length, turn).replace("[MASK]", "sea")
    encoding = loaded.tokenizer.encode(text)
    place = (len(encoding) // 2,)
    question = compare.question_at(encoding, place[0])
    asked = [r for kind in ("bidirectional", "causal")
             for r in compare.masked_requests(question, loaded.name, kind, place, 1)]
    if whole_page:
        steps = {seen for side in reveal.sights(encoding, place).values() for seen in side}
        for seen in sorted(steps, key=sorted):
            asked += reveal.requests(question, loaded.name, encoding, place, 1, seen)
    return asked


def batched(loaded: Loaded, asked: list[TraceRequest]) -> list[np.ndarray]:
    """Log-probabilities of every row, in passes of at most ROWS."""
    found = []
    for start in range(0, len(asked), ROWS):
        found += [compare.log_softmax(trace.mlm_logits[0]) for trace in run_batch(loaded, asked[start:start + ROWS])]
    return found


def one_by_one(loaded: Loaded, asked: list[TraceRequest]) -> list[np.ndarray]:
    """The same, a pass for each row."""
    return [compare.log_softmax(run_batch(loaded, [request])[0].mlm_logits[0]) for request in asked]


def largest_difference(loaded: Loaded, asked: list[TraceRequest]) -> float:
    """Between the probabilities of the two ways; an error if it is no rounding."""
    pairs = zip(batched(loaded, asked), one_by_one(loaded, asked), strict=True)
    worst = max(float(np.abs(np.exp(a) - np.exp(b)).max()) for a, b in pairs)
    if not worst <= 1e-4:
        raise RuntimeError(f"batched and separate answers differ by {worst}")
    return worst


def run() -> dict[str, dict[str, float]]:
    """All cases; see the module's first lines."""
    loaded = load_model("twin-bert")
    loaded = replace(loaded, model=packed(loaded.model))
    results: dict[str, dict[str, float]] = {}
    for case, whole_page in (("readings", False), ("page", True)):
        for length in LENGTHS:
            asked = requests(loaded, length, 999, whole_page)
            worst = largest_difference(loaded, asked)
            times = interleave({
                "ours": lambda turn, n=length, w=whole_page: batched(loaded, requests(loaded, n, turn, w)),
                "peer": lambda turn, n=length, w=whole_page: one_by_one(loaded, requests(loaded, n, turn, w)),
            }, REPEATS)
            results[f"{case}/{length}"] = compared(times["ours"], times["peer"], rows=len(asked),
                                                   error=float(f"{worst:.2g}"))
    return results

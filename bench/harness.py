"""Fair timing on a noisy machine: sides interleaved, order rotated, medians of what is left.

A timing alone says little here; each case gives ours and a peer's, taken in
turn in one process after a warm-up, and their ratio.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

Side = Callable[[int], object]


def turns(names: Sequence[str], rounds: int) -> Iterator[tuple[int, str]]:
    """(round, name) for every name in every round, the order rotated by one each time."""
    for round_ in range(rounds):
        first = round_ % len(names)
        for name in [*names[first:], *names[:first]]:
            yield round_, name


def interleave(
    sides: Mapping[str, Side], repeats: int, warmup: int = 2, before: Callable[[], object] = lambda: None
) -> dict[str, list[float]]:
    """Time every side `repeats` times, the order rotated by one each time.

    Args:
        sides: name -> callable that gets the repetition's number, so that it
            can take another input each time.
        repeats: counted repetitions.
        warmup: repetitions before, not counted.
        before: run before each side, not timed: leaves the machine as a side should find it.

    Returns:
        name -> milliseconds, one a repetition.
    """
    times: dict[str, list[float]] = {name: [] for name in sides}
    for round_, name in turns(list(sides), warmup + repeats):
        before()
        start = time.perf_counter()
        sides[name](round_)
        elapsed = (time.perf_counter() - start) * 1e3
        if round_ >= warmup:
            times[name].append(elapsed)
    return times


def compared(ours: list[float], peer: list[float], **more: float) -> dict[str, float]:
    """One case of a result: medians in milliseconds and the median of the pairwise ratios."""
    ratios = [a / b for a, b in zip(ours, peer, strict=True)]
    return {
        "ratio": round(statistics.median(ratios), 4),
        "ours_ms": round(statistics.median(ours), 3),
        "peer_ms": round(statistics.median(peer), 3),
        "ratio_min": round(min(ratios), 4),
        "ratio_max": round(max(ratios), 4),
        "repeats": len(ratios),
        **more,
    }

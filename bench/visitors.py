"""Thirty visitors at once: our engine against transformers with a thread each, and behind the same queue.

Base size, 16 tokens, attentions, hidden states and logits. thread-each/30 and
same-queue/30 have the logits of every token on both sides; in
thread-each-masked/30 and same-queue-masked/30 ours has them at the gap only, as
the pages ask, and the peer is the same. A case's `ratio` is our time for all
thirty over the peer's (throughput is its inverse: `times_faster`); equality is
checked in the run, and `error` is the largest difference.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch

from bench import _base_model as base
from bench.fill_mask import engine
from bench.harness import compared, interleave
from bert_core.serving.waiting import WaitingRoom
from bert_core.threads import give_team_back
from bert_core.trace import Trace, TraceRequest

VISITORS, LENGTH = 30, 16
PARTS = ("attention_probs", "hidden_states", "mlm_positions", "mlm_logits")


def at_once(visit: Callable[[int], Any]) -> list[Any]:
    """What each visitor gets, everyone in a thread of their own; ends when all are answered."""
    with ThreadPoolExecutor(VISITORS) as threads:
        return list(threads.map(visit, range(VISITORS)))


def text(turn: int, visitor: int) -> str:
    return base.text(LENGTH, turn * VISITORS + visitor)


def request(turn: int, visitor: int, all_logits: bool) -> TraceRequest:
    return TraceRequest(text(turn, visitor), model="base", parts=PARTS, all_logits=all_logits)


def ours(turn: int, all_logits: bool) -> list[Trace]:
    return at_once(lambda n: engine().run(request(turn, n, all_logits), visitor=f"visitor {n}"))


def forward(texts: list[str]) -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]:
    """transformers on B texts of equal length: logits (B, T, V), attentions (B, H, Tq, Tk), hidden states (B, T, D)."""
    ids = torch.tensor([base.tokenizer().encode(one).input_ids for one in texts], device=base.DEVICE)
    with torch.inference_mode():
        out = base.peer()(input_ids=ids, output_attentions=True, output_hidden_states=True)
        if not out.attentions:
            raise RuntimeError("transformers gave no attentions; the comparison would be unfair")
        return (out.logits.cpu().numpy(), [a.cpu().numpy() for a in out.attentions],
                [h.cpu().numpy() for h in out.hidden_states])


def thread_each(turn: int) -> None:
    at_once(lambda n: forward([text(turn, n)]))


def same_queue(turn: int) -> None:
    """The peer behind our waiting room: one worker, batches of up to sixteen."""
    room = WaitingRoom()

    def work() -> None:
        left = VISITORS
        while left:
            batch = room.next_batch(16)
            forward([ticket.request.text for ticket in batch])
            for ticket in batch:
                ticket.future.set_result(None)
            left -= len(batch)

    worker = threading.Thread(target=work)
    worker.start()
    at_once(lambda n: room.enter([request(turn, n, True)], f"visitor {n}")[0].future.result())
    worker.join()


def no_teams() -> None:
    """End the OpenMP teams of the engine's worker and of this thread: either side's idle threads slow the other's."""
    def steps(_loaded, _request):
        give_team_back()
        yield

    engine().call(steps, TraceRequest("", model="base"))


def check() -> float:
    """Largest difference of what any visitor gets; an error if it is no rounding."""
    logits, attentions, hidden = forward([text(0, n) for n in range(VISITORS)])
    attentions, hidden = np.stack(attentions, axis=1), np.stack(hidden, axis=1)
    differences = []
    for n, (full, masked) in enumerate(zip(ours(0, True), ours(0, False), strict=True)):
        differences += [full.mlm_logits - logits[n], masked.mlm_logits - logits[n, masked.mlm_positions]]
        differences += [trace.attention_probs - attentions[n] for trace in (full, masked)]
        differences += [trace.hidden_states - hidden[n] for trace in (full, masked)]
    worst = float(np.max([np.abs(difference).max() for difference in differences]))
    if not worst <= 1e-3:
        raise RuntimeError(f"outputs differ by {worst}")
    return worst


def run() -> dict[str, dict[str, float]]:
    """Both peers, and ours with all logits and with the gap's, in one run."""
    base.peer(), engine()  # loaded here: thirty threads that ask at once would load thirty copies
    error = float(f"{check():.2g}")
    sides = {"": lambda turn: ours(turn, True), "-masked": lambda turn: ours(turn, False),
             "thread-each": thread_each, "same-queue": same_queue}
    times = interleave(sides, repeats=7, warmup=1, before=no_teams)
    results = {}
    for peer in ("thread-each", "same-queue"):
        for kind in ("", "-masked"):
            figures = compared(times[kind], times[peer], error=error)
            results[f"{peer}{kind}/30"] = {**figures, "times_faster": round(1 / figures["ratio"], 2)}
    return results

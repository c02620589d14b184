"""Thirty visitors at once: our engine against transformers with a thread each, and behind the same queue.

Base size, 16 tokens, full outputs on both sides. A case's `ratio` is our time
for all thirty over the peer's (throughput is its inverse: `times_faster`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import torch

from bench import _base_model as base
from bench.fill_mask import engine
from bench.harness import compared, interleave
from bert_core.serving.waiting import WaitingRoom
from bert_core.trace import TraceRequest

VISITORS, LENGTH = 30, 16
PARTS = ("attention_probs", "hidden_states", "mlm_positions", "mlm_logits")


def at_once(visit: Callable[[int], object]) -> None:
    """Every visitor in a thread of its own; ends when all are answered."""
    threads = [threading.Thread(target=visit, args=(n,)) for n in range(VISITORS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def request(turn: int, visitor: int) -> TraceRequest:
    return TraceRequest(text=base.text(LENGTH, turn * VISITORS + visitor), model="base", parts=PARTS)


def ours(turn: int) -> None:
    at_once(lambda n: engine().run(request(turn, n), visitor=f"visitor {n}"))


def forward(texts: list[str]) -> list[np.ndarray]:
    """transformers on texts of equal length, everything as NumPy."""
    ids = torch.tensor([base.tokenizer().encode(text).input_ids for text in texts])
    with torch.inference_mode():
        out = base.peer()(input_ids=ids, output_attentions=True, output_hidden_states=True)
    return [out.logits.numpy(), *(a.numpy() for a in out.attentions), *(h.numpy() for h in out.hidden_states)]


def thread_each(turn: int) -> None:
    at_once(lambda n: forward([base.text(LENGTH, turn * VISITORS + n)]))


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
    at_once(lambda n: room.enter([request(turn, n)], f"visitor {n}")[0].future.result())
    worker.join()


def run() -> dict[str, dict[str, float]]:
    """Both peers in one run."""
    base.peer(), engine()  # loaded here: thirty threads that ask at once would load thirty copies
    times = interleave({"ours": ours, "thread": thread_each, "queue": same_queue}, repeats=7, warmup=1)
    results = {}
    for case, peer in (("thread-each/30", "thread"), ("same-queue/30", "queue")):
        figures = compared(times["ours"], times[peer])
        results[case] = {**figures, "times_faster": round(1 / figures["ratio"], 2)}
    return results

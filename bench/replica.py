"""One Ray Serve replica of two killed under load: requests lost, and time against the in-process engine.

Needs requirements-cluster.txt. The case's `ratio` is the cluster's time for the
whole load over the in-process engine's in the same run; `lost` counts requests
that got no answer or another's.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from bert_core.load import shipped_names
from bert_core.serving.engine import Engine
from bert_core.serving.local import LocalEngine
from bert_core.trace import TraceRequest

VISITORS, TURNS = 8, 40


def replicas(root: int, proc: Path = Path("/proc")) -> list[int]:
    """Process ids of the replicas that serve now in the cluster that process `root` started, never of another's."""
    found = []
    for path in proc.glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # a process may end meanwhile
            if path.read_bytes().startswith(b"ray::ServeReplica") and root in _ancestors(path.parent):
                found.append(int(path.parent.name))
    return found


def _ancestors(process: Path) -> Iterator[int]:
    """Ids of what started a process of /proc, of what started that, and so on.

    Raises:
        OSError: one of them ends meanwhile.
    """
    while parent := int(re.search(r"^PPid:\s*(\d+)$", (process / "status").read_text(), re.MULTILINE)[1]):
        yield parent
        process = process.with_name(str(parent))


def load(engine: Engine, kill_after: int | None) -> tuple[float, int]:
    """Milliseconds for all visitors' requests, and how many were lost."""
    right = []

    def visit(number: int) -> None:
        for turn in range(TURNS):
            text = f"visitor {number} saw {turn} dogs in the [MASK]"
            trace = engine.run(TraceRequest(text=text, parts=("mlm_positions", "mlm_logits")))
            if trace.encoding.text == text:
                right.append(text)
            if number == 0 and turn == kill_after:
                os.kill(replicas(os.getpid())[0], signal.SIGKILL)

    started = time.perf_counter()
    threads = [threading.Thread(target=visit, args=(n,)) for n in range(VISITORS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return (time.perf_counter() - started) * 1e3, VISITORS * TURNS - len(set(right))


def run() -> dict[str, dict[str, float]]:
    """One case: two replicas, one killed after a quarter of the load."""
    import ray
    from ray import serve

    from bert_core.serving.ray_engine import RayEngine

    ray.init("local", num_cpus=4, namespace="both-ways", include_dashboard=False, log_to_driver=False)
    try:
        cluster = RayEngine(shipped_names()[0], cache_bytes=0)
        load(cluster, None)
        ours, lost = load(cluster, TURNS // 4)
    finally:
        serve.shutdown()
        ray.shutdown()
    peer, _ = load(LocalEngine(shipped_names()[0], cache_bytes=0), None)
    return {"killed/1-of-2": {"ratio": round(ours / peer, 2), "ours_ms": round(ours), "peer_ms": round(peer),
                              "lost": lost, "requests": VISITORS * TURNS}}

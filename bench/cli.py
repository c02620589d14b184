"""Import and first answer of the command line against transformers' pipeline, a process each.

Both load the shipped twin-bert from disk (the peer from what `export` writes)
and fill one gap; best of nothing: the median of whole processes, in turn. Their
five pieces must be the same.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.harness import compared, interleave

TEXT = "Paris is the [MASK] of France."
PEER = """
import json, sys
from transformers import pipeline
answers = pipeline("fill-mask", model=sys.argv[1], device="cpu")(sys.argv[2], top_k=5)
print(json.dumps([a["token_str"] for a in answers]))
"""


def call(*command: str) -> str:
    return subprocess.run([sys.executable, *command], check=True, capture_output=True, text=True).stdout


def our_answer() -> list[str]:
    (gap,) = json.loads(call("-m", "bert_core", "fill-mask", TEXT, "--json"))
    return [prediction["token"] for prediction in gap["predictions"]]


def peer_answer(folder: str) -> list[str]:
    return json.loads(call("-c", PEER, folder, TEXT))


def run() -> dict[str, dict[str, float]]:
    """One case: from process start to the printed answer."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = str(Path(scratch) / "twin-bert")
        call("-m", "bert_core", "export", "twin-bert", folder)
        mine, theirs = our_answer(), peer_answer(folder)
        if mine != theirs:
            raise RuntimeError(f"answers differ: {mine} and {theirs}")
        times = interleave({"ours": lambda turn: our_answer(), "peer": lambda turn: peer_answer(folder)},
                           repeats=7, warmup=1)
    return {"first-answer": compared(times["ours"], times["peer"])}

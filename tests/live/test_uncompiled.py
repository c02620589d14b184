"""The trainer's optimisers without torch.compile: the same numbers, and none of its modules."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import torch

from bert_core.training.optim import adamw

ROOT = Path(__file__).resolve().parents[2]
SPARED = """
import json
from bert_core.training.live.uncompiled import spare_the_compiler
spare_the_compiler()
from tests.live.test_uncompiled import after_steps
print(json.dumps(after_steps()))
"""


def after_steps() -> list:
    """The weights after three steps, and whether the compiler is loaded now."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    reader, head = torch.nn.LSTM(8, 16, batch_first=True), torch.nn.Linear(16, 2)
    named = {f"{n}.weight": weight for n, weight in enumerate(head.parameters())}
    optimizers = torch.optim.Adam(reader.parameters(), lr=0.01), adamw(named, 0.01, 0.01)
    for _ in range(3):
        head(reader(torch.randn(4, 5, 8))[0][:, -1]).square().sum().backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    return [[weight.flatten().tolist() for weight in (*reader.parameters(), *head.parameters())],
            "torch._dynamo.utils" in sys.modules]


def test_spared_optimisers_take_the_same_steps_and_load_no_compiler():
    """Spared in a process of its own: in this one others may have it."""
    spared = json.loads(subprocess.check_output([sys.executable, "-c", SPARED], text=True, cwd=ROOT))
    weights, is_loaded = after_steps()
    assert spared == [weights, False]
    assert is_loaded

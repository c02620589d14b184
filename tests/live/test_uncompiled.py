"""The trainer's optimisers without torch.compile: the same numbers, and none of its modules."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

STEPS = """
import json, sys
import torch
from bert_core.training.live.uncompiled import spare_the_compiler
from bert_core.training.optim import adamw
if {spared}:
    spare_the_compiler()
torch.manual_seed(0)
torch.set_num_threads(1)
reader, head = torch.nn.LSTM(8, 16, batch_first=True), torch.nn.Linear(16, 2)
named = {{f"{{n}}.weight": weight for n, weight in enumerate(head.parameters())}}
optimizers = torch.optim.Adam(reader.parameters(), lr=0.01), adamw(named, 0.01, 0.01)
for _ in range(3):
    head(reader(torch.randn(4, 5, 8))[0][:, -1]).square().sum().backward()
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()
weights = [weight.flatten().tolist() for weight in (*reader.parameters(), *head.parameters())]
print(json.dumps([weights, "torch._dynamo.utils" in sys.modules]))
"""


@pytest.fixture(scope="module")
def after_steps() -> dict[bool, list]:
    """Whether the compiler was spared -> the weights after three steps, and whether it was loaded."""
    found = {}
    for spared in (False, True):
        code = STEPS.format(spared=spared)
        found[spared] = json.loads(subprocess.check_output([sys.executable, "-c", code], text=True))
    return found


def test_spared_optimisers_take_the_same_steps(after_steps):
    assert after_steps[True][0] == after_steps[False][0]


def test_spared_optimisers_load_no_compiler(after_steps):
    assert [after_steps[spared][1] for spared in (False, True)] == [True, False]

"""The OpenMP settings reach the process before torch does, and give way to the user's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ASK = "import sys, os, {}; print(os.environ.get('OMP_WAIT_POLICY'), os.environ.get('GOMP_SPINCOUNT'), "
ASK += "'torch' in sys.modules)"
KEPT = "import os, ui; print(os.environ['ONEDNN_PRIMITIVE_CACHE_CAPACITY'])"


def said_by(imported: str, chosen: dict[str, str]) -> str:
    own = {k: v for k, v in os.environ.items() if k not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}
    asked = [sys.executable, "-c", ASK.format(imported)]
    return subprocess.run(asked, env=own | chosen, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize(("chosen", "found"), [
    ({}, "ACTIVE 5000 False"),
    ({"OMP_WAIT_POLICY": "PASSIVE"}, "PASSIVE None False"),
    ({"GOMP_SPINCOUNT": "7"}, "None 7 False"),
])
def test_threads_wait_briefly_unless_told_otherwise(chosen, found):
    assert said_by("bert_core", chosen) == found


@pytest.mark.parametrize(("chosen", "found"), [
    ({}, "PASSIVE 0 False"),
    ({"OMP_WAIT_POLICY": "ACTIVE", "GOMP_SPINCOUNT": "5000"}, "PASSIVE 0 False"),
    ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE None False"),
    ({"GOMP_SPINCOUNT": "7"}, "None 7 False"),
])
def test_a_servers_threads_sleep_at_once_unless_told_otherwise(chosen, found):
    assert said_by("ui", chosen) == found


@pytest.mark.parametrize(("chosen", "found"), [({}, "256"), ({"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "9"}, "9")])
def test_a_server_keeps_few_compiled_products_unless_told_otherwise(chosen, found):
    own = {k: v for k, v in os.environ.items() if k != "ONEDNN_PRIMITIVE_CACHE_CAPACITY"}
    asked = [sys.executable, "-c", KEPT]
    assert subprocess.run(asked, env=own | chosen, capture_output=True, text=True, check=True).stdout.strip() == found


TEAMS = """
import os, sys, torch
from bert_core.serving.local import LocalEngine
from bert_core.threads import give_team_back
from bert_core.trace import TraceRequest

def threads(): return len(os.listdir("/proc/self/task"))
def product(): return torch.ones(600, 600) @ torch.ones(600, 600)

torch.set_num_threads(2)
engine = LocalEngine(sys.argv[1])
engine.run(TraceRequest("the worker has begun"))
give_team_back()
alone = threads()
product()
with_team = threads()
engine.run(TraceRequest("the dog barked"))
print(with_team - alone, threads() - alone, bool((product() == 600).all()))
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc, which Linux has")
def test_who_waits_for_the_engine_has_no_team(tiny_bert):
    said = subprocess.run([sys.executable, "-c", TEAMS, tiny_bert], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["1", "0", "True"]


LOADS = """
import os, torch
from bert_core.serving.local import LocalEngine

torch.set_num_threads(2)
alone = os.listdir("/proc/self/task")
LocalEngine("twin-bert")
print(len(os.listdir("/proc/self/task")) - len(alone))
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc, which Linux has")
def test_who_has_loaded_a_model_has_no_team():
    """Packing its matrices takes one."""
    assert subprocess.run([sys.executable, "-c", LOADS], capture_output=True, text=True, check=True).stdout == "0\n"

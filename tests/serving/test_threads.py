"""The OpenMP settings reach the process before torch does, and give way to the user's."""

import os
import subprocess
import sys

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

"""The OpenMP settings reach the process before torch does, and give way to the user's."""

import os
import subprocess
import sys

import pytest

ASK = "import sys, os, bert_core; print(os.environ.get('OMP_WAIT_POLICY'), os.environ.get('GOMP_SPINCOUNT'), "
ASK += "'torch' in sys.modules)"


@pytest.mark.parametrize(("chosen", "found"), [
    ({}, "ACTIVE 5000 False"),
    ({"OMP_WAIT_POLICY": "PASSIVE"}, "PASSIVE None False"),
    ({"GOMP_SPINCOUNT": "7"}, "None 7 False"),
])
def test_threads_wait_briefly_unless_told_otherwise(chosen, found):
    own = {k: v for k, v in os.environ.items() if k not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}
    said = subprocess.run([sys.executable, "-c", ASK], env=own | chosen, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == found

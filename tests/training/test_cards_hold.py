"""The scores on the cards come out again, through the code that the pages use."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from bert_core.load import SHIPPED
from bert_core.training.cards import read_card

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / os.environ.get("DATA", "../shared/data")
#: Fine-tuned models whose task the pages show; each takes minutes.
MODELS = ("twin-bert-sst2", "twin-bert-ner", "twin-bert-squad")
#: Kernels differ between processors: a few answers in a thousand may fall the other way.
TOLERANCE = 0.005

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800),
              pytest.mark.skipif(not DATA.is_dir(), reason=f"no labelled data at {DATA}")]


@pytest.mark.parametrize("name", MODELS)
def test_the_card_says_what_its_command_gives(name):
    scores = read_card(SHIPPED / name)["scores"]
    command = shlex.split(scores[0]["command"].replace("../shared/data", shlex.quote(str(DATA))))
    assert command[:4] == ["python", "-m", "bert_core", "evaluate"]
    done = subprocess.run([sys.executable, *command[1:]], cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["n"] == scores[0]["n"]
    for score in scores:
        assert found[score["metric"]] == pytest.approx(score["value"], abs=TOLERANCE), score["metric"]

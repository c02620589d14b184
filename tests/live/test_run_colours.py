"""The curves' colour says which way a run reads, the dash whether it is an earlier one."""

from __future__ import annotations

import numpy as np
import pytest

from bert_core.figures import pretrain, theme

CURVES = {name: np.array([1.0, 0.5]) for name in (
    "loss", "nsp_loss", "lr", "gradient", "held_step", "held_loss", "held_accuracy")}
RUNS = [pretrain.RunCurves("one way", CURVES, causal=True), pretrain.RunCurves("both", CURVES, before=True)]


@pytest.mark.parametrize("figure", [
    pretrain.accuracy_figure(RUNS, [], 2), pretrain.loss_figure(RUNS, [], 2),
    pretrain.small_figure(RUNS, "gradient", "gradient norm", 2)], ids=["accuracy", "loss", "gradient"])
def test_a_one_way_run_is_orange_and_the_run_before_is_dotted(figure):
    looks = {trace.name.split(": ")[-1]: (trace.line.color, trace.line.dash) for trace in figure.data}
    assert looks == {"one way": (theme.ONE_WAY, "solid"), "both": (theme.BOTH_WAYS, "dot")}

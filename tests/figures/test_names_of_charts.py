"""Names in the charts of both training pages: as many along an axis as fit, and whole ones in a legend."""

import numpy as np
import pytest

from bert_core.figures import finetune, pretrain

CURVES = {"loss": np.ones(2), "held_step": np.zeros(1), "held_loss": np.ones(1), "held_accuracy": np.ones(1)}
NAME = "Learning rate × 20, 4 × 128, 1,000 steps, own text, seed 1234"


@pytest.mark.parametrize(("count", "mode"), [(finetune.ALL_NAMED, None), (finetune.ALL_NAMED + 1, "auto")])
def test_of_many_tokens_the_chart_names_those_that_fit(count, mode):
    tokens = [f"<{n % 3}" for n in range(count)]
    figure = finetune.attention_figure(np.full((2, 3, count, count), 1 / count), tokens)
    axis = figure.layout.xaxis
    assert axis.tickmode == mode
    if mode:  # plotly chooses among the columns, and calls each by its token alone
        assert axis.tickvals is None
        assert axis.labelalias == {name: f"&lt;{n % 3}" for n, name in enumerate(figure.data[0].x)}
    else:
        assert len(axis.ticktext) == count


def test_a_phone_shows_the_whole_name_of_a_run():
    runs = [pretrain.RunCurves(NAME, CURVES, before=before) for before in (False, True)]
    before, after = (pretrain.loss_figure(runs, [], 3) for _ in range(2))
    pretrain.with_whole_names(after)
    lines = sum(1 + trace.name.count("<br>") for trace in after.data)  # all of them above the curves
    assert after.layout.height == before.layout.height + pretrain.LINE_HEIGHT * (lines - 1)
    for short, long in zip(after.data, before.data, strict=True):
        lines = short.name.split("<br>")
        assert " ".join(lines) == long.name
        assert max(map(len, lines)) <= pretrain.LONGEST_LINE

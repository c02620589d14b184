"""Tasks, the layer laid open: its softmax ends at the numbers that the views above show."""

from __future__ import annotations

import re

import numpy as np
import pytest

from bert_core import TraceRequest, load_engine
from bert_core.figures.masking import percent
from bert_core.tasks import answer_windows, best_answers, find_entities
from bert_core.tasks.answers import answer_probabilities
from tests.payloads import drawn, is_ready, plain_line, said, table_rows, visit
from tests.tasks.test_what_was_read import LONG

NAMES = "Ada Lovelace met Charles Babbage in London."
QUESTION = "When did the bridge open?"
CONTEXT = "Anna Smith built the bridge. It opened in May 1881, in the rain."


def adds_up(at, logit: str) -> None:
    """The last strip and the words below it make the logit that the table has."""
    values = drawn(at, "operands")["arrays"]["values"]
    assert np.allclose(values[2], values[0] * values[1], atol=1e-6)
    found = re.search(r"last strip (\S+) \+ bias (\S+) = (\S+); the run itself gave (\S+)\.", said(at))
    summed, bias, total, traced = (float(word.replace("−", "-")) for word in found.groups())
    assert values[2].sum() == pytest.approx(summed, abs=2e-4)
    assert summed + bias == pytest.approx(total, abs=2e-4)
    assert total == pytest.approx(traced, abs=2e-4)
    assert found[4] == logit


def test_it_is_closed_until_it_is_asked_for():
    with pytest.raises(AssertionError, match="no component operands"):
        drawn(visit("tasks", text=NAMES), "operands")


@pytest.mark.parametrize(("token", "label"), [(1, None), (8, "I-LOC")])
def test_a_token_s_labels_end_at_the_probabilities_of_the_map(token, label):
    given = {} if label is None else {"class": label}
    at = visit("tasks", text=NAMES, opened="true", token=token, **given)
    is_ready(at)
    reading = find_entities(load_engine("twin-bert"), NAMES, "twin-bert-ner")
    p = reading.tokens[token - 1].probabilities
    shown = table_rows(at, "Softmax over")
    assert [row[0] for row in shown] == list(reading.labels)
    assert [row[-1] for row in shown] == [percent(one) for one in p]
    adds_up(at, shown[reading.labels.index(label) if label else int(np.argmax(p))][1])


@pytest.mark.parametrize("context", [CONTEXT, LONG])
@pytest.mark.parametrize("edge", ["start", "end"])
def test_the_answer_s_edge_ends_at_its_probability(context, edge):
    at = visit("tasks", view="Answers", text=QUESTION, pair=context, opened="true", edge=edge)
    is_ready(at)
    windows = answer_windows(load_engine("twin-bert"), QUESTION, context, "twin-bert-squad")
    best, side = best_answers(windows, context)[0], ("start", "end").index(edge)
    position = best.tokens[side]
    p = answer_probabilities(windows)[best.window][side][windows[best.window].positions.index(position)]
    name = f"{position} {windows[best.window].trace.encoding.tokens[position]}"
    (row,) = [row for row in table_rows(at, "Softmax over") if row[0] == name]
    assert row[-1] == percent(p)
    adds_up(at, row[1])
    assert ("of 2 windows" in said(at)) == (context is LONG)


def test_a_token_whose_logit_counts_in_another_window_is_not_in_the_softmax():
    windows = answer_windows(load_engine("twin-bert"), QUESTION, LONG, "twin-bert-squad")
    first, last = windows[1].positions[0], windows[1].positions[-1]
    for token, elsewhere in ((first, True), (last, False)):
        at = visit("tasks", view="Answers", text=QUESTION, pair=LONG, opened="true", token=token)
        is_ready(at)
        name = f"{token} {windows[1].trace.encoding.tokens[token]}"
        assert (name not in [row[0] for row in table_rows(at, "Softmax over")]) == elsewhere
        assert ("another window has more of the context around it" in said(at)) == elsewhere
    both = sum(len(window.positions) for window in windows) - len({
        window.start + window.trace.encoding.offsets[n][0] for window in windows for n in window.positions})
    assert both > 60
    count = sum(1 + len(window.positions) for window in windows) - both
    assert f"{count:,} logits of 2 windows" in said(at)


def test_a_cosine_ends_at_the_number_of_the_verdict():
    at = visit("tasks", view="Sentence pairs", text="A dog ran.", pair="The cat sat down.", opened="true")
    is_ready(at)
    traces = load_engine("twin-bert").run_many(
        [TraceRequest(text, model="twin-bert-stsb") for text in ("A dog ran.", "The cat sat down.")])
    first, second = (trace.hidden_states[-1, 1:-1].mean(axis=0) for trace in traces)
    shown = drawn(at, "operands")["arrays"]["values"]
    assert np.allclose(shown, [first, second, first * second], atol=1e-5)
    found = re.search(r"last strip (\S+) ÷ \(length of the first (\S+) × length of the second (\S+)\) = cosine (\S+)\.",
                      said(at))
    summed, one, other, cosine = (float(word.replace("−", "-")) for word in found.groups())
    assert summed / (one * other) == pytest.approx(cosine, abs=1e-4)
    assert cosine == pytest.approx(first @ second / np.linalg.norm(first) / np.linalg.norm(second), abs=1e-4)
    assert drawn(at, "verdict")["sides"][0]["bars"][0]["value"] == pytest.approx(cosine, abs=1e-4)


def test_a_model_of_another_kind_says_why_not(family, monkeypatch):
    folder = family("DeBERTa", "DebertaV2ForTokenClassification")
    monkeypatch.setenv("BOTH_WAYS_MODEL", folder)
    assert "does not give the operands of its head" in plain_line(visit("tasks", text="the dog", opened="true"))

"""The lines shown are the lines that run, with the shapes they make."""

from __future__ import annotations

import inspect
import sys

import pytest

from bert_core import model as bert
from bert_core.load import load_model
from bert_core.measures import parity, walk


@pytest.mark.parametrize("stage", parity.STAGES)
def test_excerpts_stand_in_the_file_where_they_say(stage):
    for excerpt in walk.stage_source(stage):
        file, line = excerpt.place.rsplit(":", 1)
        lines = (walk.ROOT / file).read_text(encoding="utf-8").splitlines()
        assert lines[int(line) - 1].strip() == excerpt.text.splitlines()[0].strip()


def test_attention_and_feed_forward_share_the_layer_without_overlap():
    attention = [excerpt.text for excerpt in walk.stage_source("attention")]
    feed_forward = walk.stage_source("feed_forward")[0].text
    assert "softmax" not in feed_forward
    assert "probs" in attention[0]
    assert "attended" in attention[-1]
    assert not any("wide" in text for text in attention)
    body = inspect.getsource(bert.layer) + inspect.getsource(bert.after_context)
    shown = "\n".join((attention[0], attention[-1], feed_forward))
    assert all(line.strip() in body for line in shown.splitlines())


def test_unknown_stage_is_named():
    with pytest.raises(ValueError, match="no stage 'magic'"):
        walk.stage_source("magic")


def test_shapes_are_those_of_the_tensors(tiny_bert):
    loaded = load_model(tiny_bert)
    encoding = loaded.tokenizer.encode("the [MASK] slept in [MASK]", "she walked home")
    n = len(encoding)
    shapes = {(s.function, s.name): s.shape for s in walk.walk(loaded, encoding, 1)}
    assert shapes["embed", "total"] == (1, n, 15)
    assert shapes["layer", "query"] == (1, 3, n, 5)
    assert shapes["layer", "scores"] == shapes["layer", "probs"] == (1, 3, n, n)
    assert shapes["attention_weights", "scores"] == shapes["attention_probs", "return"] == (1, 3, n, n)
    assert shapes["mlm_transform", "dense"] == (1, 2, 15)
    assert shapes["after_context", "wide"] == (1, n, 23)
    assert shapes["pooled_output", "return"] == (1, 15)
    assert shapes["nsp_logits", "return"] == (1, 2)
    assert shapes["mlm_logits", "return"] == (1, 2, loaded.config.vocab_size)


def test_numbers_are_those_of_the_run(tiny_bert):
    loaded = load_model(tiny_bert)
    encoding = loaded.tokenizer.encode("the dog slept")
    steps = {(s.function, s.name): s for s in walk.walk(loaded, encoding, 0)}
    ours = {run.stage: run for run in parity.compare_stages(loaded, encoding, 0)}
    assert steps["after_context", "attended"].first == pytest.approx(ours["attention"].first())
    assert steps["after_context", "out"].first == pytest.approx(ours["feed_forward"].first())
    assert 0 <= steps["layer", "probs"].low <= steps["layer", "probs"].high <= 1


def test_watching_leaves_no_hook_behind(tiny_bert):
    before = sys.gettrace()
    loaded = load_model(tiny_bert)
    walk.walk(loaded, loaded.tokenizer.encode("x"))
    assert sys.gettrace() is before
    with pytest.raises(ValueError, match="layer 9"):
        walk.walk(loaded, loaded.tokenizer.encode("x"), 8)


def test_the_parts_are_the_figure_s_in_their_order_and_hold_every_line(tiny_bert):
    loaded = load_model(tiny_bert)
    steps = walk.walk(loaded, loaded.tokenizer.encode("the [MASK] slept"), 1)
    parts = walk.parts(steps)
    assert [part.name for part in parts] == ["Embeddings", "Attention", "Add and norm", "Feed-forward", "Add and norm",
                                            "Pooler", "Next sentence", "Vocabulary"]
    assert [n for part in parts for n in range(part.first, part.last + 1)] == list(range(1, len(steps) + 1))
    made = {part.name: {s.name for s in steps[part.first - 1:part.last]} for part in parts}
    assert {"query", "scores", "probs", "projected"} <= made["Attention"]
    assert made["Feed-forward"] == {"wide", "narrow"}

"""What a class types and what a tokenizer calls its tokens is shown as it is, not read as markup; long links too."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from bert_core.figures.class_poll import poll_figure
from bert_core.figures.family import attention_figure
from bert_core.load import load_model
from bert_core.measures.poll import Guess
from bert_core.trace import TraceRequest, run_batch
from ui.views import class_room
from ui.views.class_room import qr_code


def test_a_guess_and_a_models_name_are_no_markup_on_the_projector():
    drawn = poll_figure([Guess("<b>tea</b>", 1.0, 0.5)], "<i>mine</i>").data
    assert drawn[0].y[0] == drawn[1].y[0] == "&lt;b&gt;tea&lt;/b&gt;"
    assert drawn[1].name == "&lt;i&gt;mine&lt;/i&gt;"
    assert "<extra>&lt;i&gt;mine&lt;/i&gt;</extra>" in drawn[1].hovertemplate


def test_tokens_in_angle_brackets_keep_their_names(tiny_bert):
    trace = run_batch(load_model(tiny_bert), [TraceRequest("the dog", parts=("attention_probs",))])[0]
    tokens = np.array(["<s>", "the", "<mask>", "</s>"])
    figure = attention_figure(replace(trace, arrays={**trace.arrays, "tokens": tokens}))
    names = ("0 &lt;s&gt;", "1 the", "2 &lt;mask&gt;", "3 &lt;/s&gt;")
    assert figure.data[0].x == figure.data[0].y == names


def test_a_link_too_long_for_a_qr_code_is_said():
    assert "too long for a QR code" in qr_code("https://example.org/?text=" + "x" * 3000, "This link")
    assert qr_code("https://example.org/?text=x", "This link").startswith('<img class="bw-qr"')


@pytest.mark.parametrize(("told", "address"), [
    ("http://127.0.0.1:8501/class?view=Room", "http://127.0.0.1:8501/"), (None, ""), ("http://[::1", ""),
])
def test_an_address_that_is_none_is_taken_for_none(monkeypatch, told, address):
    """A browser says itself where it is."""
    monkeypatch.setattr(class_room, "st", SimpleNamespace(context=SimpleNamespace(url=told)))
    assert class_room.base_address() == address

"""What goes to the browser: exact where it says so, small at any length, the same for the same input."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

from bert_core.figures import attention as figure
from bert_core.measures.attention import head_numbers
from bert_core.trace import Trace
from ui.components import pack


def decoded(codes: np.ndarray) -> np.ndarray:
    return (codes.astype(np.float64) / 65535) ** 2


def test_the_exact_layers_come_back_to_four_decimals(trace):
    header, arrays = figure.heads_payload(trace, 1)
    assert header["exact"] == [0, 1, 2]
    assert np.abs(decoded(arrays["exact"]) - trace.attention_probs).max() < 2e-5
    assert np.allclose(arrays["numbers"], np.stack(head_numbers(trace)))


def test_zero_stays_zero_and_one_stays_one():
    assert figure.quantise16(np.array([0.0, 1.0], dtype=np.float32)).tolist() == [0, 65535]


def test_the_header_says_what_is_known_of_each_token(trace, pair_request):
    header, _ = figure.heads_payload(trace, 0, roles=["r"] * 15)
    assert header["tokens"] == list(trace.tokens)
    assert header["segments"] == trace.token_type_ids.tolist()
    assert [t for t, s in zip(header["tokens"], header["special"], strict=True) if s] == ["[CLS]", "[SEP]", "[SEP]"]
    barked = header["tokens"].index("barked")
    assert header["words"][barked] == header["words"][barked + 1] == header["words"][barked + 2] - 1
    assert (header["layers"], header["heads"], len(header["roles"])) == (3, 5, 15)


def test_a_change_of_the_run_keeps_the_input_s_name(small_engine, trace, pair_request):
    changed = small_engine.run(replace(pair_request, heads_off=((1, 2),), cut=((6, 2),)))
    header, _ = figure.heads_payload(changed, 0, mode="act")
    assert header["id"] == figure.fingerprint(trace)
    assert header["off"] == [7]
    assert header["cut"] == [6 * len(trace) + 2]


def long_trace(trace: Trace, length: int) -> Trace:
    """12 x 12 heads of `length` tokens with the attention of nobody: only its size counts."""
    probs = np.full((12, 12, length, length), 1 / length, dtype=np.float32)
    probs[3, 4] = np.eye(length)
    encoding = trace.encoding
    stretched = type(encoding)(**{
        f: (getattr(encoding, f) * length)[:length] for f in
        ("tokens", "input_ids", "token_type_ids", "special", "word_ids", "sequence_ids", "offsets")
    }, text="x", pair=None, mask_positions=())
    arrays = MappingProxyType({"attention_probs": probs})
    return Trace(arrays, trace.request, stretched, trace.config, "long", "bidirectional")


@pytest.mark.parametrize(("length", "most"), [(16, 130_000), (64, 400_000), (128, 700_000), (512, 6_700_000)])
def test_bytes_to_the_browser_stay_small(trace, length, most):
    header, arrays = figure.heads_payload(long_trace(trace, length), 3)
    data = pack(header, arrays)
    assert len(data) < most
    open_layer = arrays["exact"][header["exact"].index(3)]
    assert np.array_equal(decoded(open_layer[4]), np.eye(length))
    assert data == pack(*figure.heads_payload(long_trace(trace, length), 3))


def test_csv_labels_can_not_be_taken_for_a_formula():
    text = figure.map_csv(["=1+1", "b,c"], np.array([[0.25, 0.75], [1.0, 0.0]]))
    assert text.splitlines() == ['from \\ to,0 =1+1,"1 b,c"', "0 =1+1,0.25,0.75", '"1 b,c",1,0']

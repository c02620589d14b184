"""Payloads and messages of the canvas components."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from tests.payloads import unpack
from ui import components, served

ANY_ARRAY = st.sampled_from(components.DTYPES).flatmap(
    lambda dtype: arrays(dtype, array_shapes(min_dims=1, max_dims=3, max_side=5),
                         elements={"allow_nan": False} if dtype.startswith("float") else None))


@given(st.dictionaries(st.text(max_size=5).filter(lambda k: k != "arrays"), st.text() | st.integers() | st.none()),
       st.dictionaries(st.text(min_size=1, max_size=4), ANY_ARRAY, max_size=4))
def test_what_is_packed_comes_out_again(header, tensors):
    back = unpack(components.pack(header, tensors))
    assert {k: v for k, v in back.items() if k != "arrays"} == header
    assert back["arrays"].keys() == tensors.keys()
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(back["arrays"][name], tensor)


def test_equal_data_gives_equal_bytes():
    tensor = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert components.pack({"a": 1}, {"t": tensor}) == components.pack({"a": 1}, {"t": tensor.copy()})
    assert components.pack({}, {"t": tensor.T}) != components.pack({}, {"t": tensor})


def test_float64_and_nan_are_refused():
    with pytest.raises(ValueError, match="float64"):
        components.pack({}, {"t": np.zeros(2)})
    with pytest.raises(ValueError, match="JSON"):
        components.pack({"p": float("nan")})


JUNK = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
                    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
                    max_leaves=6)


@given(JUNK, st.integers(0, 9))
def test_messages_are_numbers_in_range_or_refused(value, count):
    try:
        assert 0 <= components.number({"n": value}, "n", count) < count
    except components.BadMessage:
        assert type(value) is not int or not 0 <= value < count
    try:
        found = components.numbers({"n": value}, "n", count)
        assert found == tuple(sorted(set(value)))
        assert all(0 <= n < count for n in found)
    except components.BadMessage:
        assert not (isinstance(value, list) and len(value) <= count
                    and all(type(n) is int and 0 <= n < count for n in value))


@given(JUNK)
def test_words_are_of_the_list_or_refused(value):
    try:
        assert components.word({"w": value}, "w", ("left", "right")) in ("left", "right")
    except components.BadMessage:
        assert value not in ("left", "right")


@pytest.mark.parametrize("path", sorted(served.COMPONENTS.glob("*.js")), ids=lambda path: path.name)
def test_scripts_ask_for_nothing_outside_and_write_no_html(path):
    source = path.read_text(encoding="utf-8")
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", source)
    assert not re.search(r"\binnerHTML\b|\bouterHTML\b|insertAdjacentHTML|document\.write|\beval\(|\bfetch\(", source)

"""Weights moved into pages of 2 MB: the same bytes at the same place, and nothing where that can't be had."""

import ctypes
import mmap
import sys
from dataclasses import replace

import pytest
import torch

from bert_core import huge_pages, kernels, onednn
from bert_core.load import load_model

MB = 2**20


def test_neighbours_are_joined_and_cut_to_whole_huge_pages():
    spans = [(9 * MB, MB), (MB, 3 * MB), (5 * MB, 3 * MB + 5), (40 * MB, MB)]
    assert huge_pages.joined(spans) == [(2 * MB, 10 * MB)]


def test_spans_far_apart_stay_apart():
    assert huge_pages.joined([(0, 4 * MB), (20 * MB, 4 * MB)]) == [(0, 4 * MB), (20 * MB, 24 * MB)]


def test_what_moves_stays_as_it_was():
    with mmap.mmap(-1, 12 * MB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        pattern = bytes(range(256)) * (12 * MB // 256)
        memory[:] = pattern
        view = (ctypes.c_char * len(memory)).from_buffer(memory)
        moved = huge_pages.gather([(ctypes.addressof(view), 5 * MB), (ctypes.addressof(view) + 6 * MB, 6 * MB)])
        del view
        assert moved % huge_pages.PAGE == 0
        assert moved <= 12 * MB
        assert memory[:] == pattern


def test_without_the_call_nothing_moves(monkeypatch):
    monkeypatch.setattr(huge_pages, "_madvise", lambda: None)
    assert huge_pages.gather([(0, 64 * MB)]) == 0


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_another_system_is_never_asked_by_linuxs_numbers(monkeypatch, system):
    monkeypatch.setattr(sys, "platform", system)
    assert huge_pages._madvise.__wrapped__() is None


def test_a_refusal_counts_nothing(monkeypatch):
    monkeypatch.setattr(huge_pages, "_madvise", lambda: lambda *_: -1)
    assert huge_pages.gather([(0, 64 * MB)]) == 0


@pytest.mark.xfail(not torch.backends.mkldnn.is_available(), reason="no oneDNN here", strict=True)
def test_a_tensor_of_onednn_tells_where_it_lies():
    start, size = onednn.pack(torch.randn(512, 256), None).span()
    assert start > 0
    assert size >= 512 * 256 * 4


def test_a_tensor_that_does_not_tell_has_no_span():
    assert onednn.BlockedLinear(torch.randn(3, 3), None).span() is None


@pytest.mark.parametrize(("least", "calls"), [(0, 1), (2**60, 0)])
def test_only_large_models_are_moved(tiny_bert, monkeypatch, least, calls):
    seen = []
    monkeypatch.setattr(kernels, "rows_worth_it", lambda *size: 2**31)
    monkeypatch.setattr(kernels, "_WORTH_MOVING", least)
    monkeypatch.setattr(huge_pages, "gather", lambda spans: seen.append(list(spans)))
    model = load_model(tiny_bert).model
    packed = kernels.packed(replace(model, fast_linear={}))
    assert len(seen) == calls
    assert all(len(spans) == len(packed.fast_linear) for spans in seen)

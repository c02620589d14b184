"""Blocks are used again when nothing looks at them, and never before."""

import mmap
import platform
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

from bert_core import memory
from bert_core.memory import Blocks, empty, rounded
from bert_core.serving.local import LocalEngine
from bert_core.trace import TraceRequest
from tests.waiting import wait_until

MIB = 2**20


def resident():
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


def array(blocks, size):
    return np.frombuffer(blocks.take(size), dtype=np.uint8, count=size)


def test_a_block_comes_back_only_when_its_last_view_is_gone():
    blocks = Blocks()
    first = array(blocks, 5 * MIB)
    place, view = first.ctypes.data, torch.from_numpy(first[MIB:].reshape(4, -1))[1:]
    del first
    other = array(blocks, 5 * MIB)
    assert other.ctypes.data != place
    other[:] = 1
    view[:] = 7
    assert other.min() == other.max() == 1
    del view
    assert array(blocks, 5 * MIB - 100).ctypes.data == place  # the same class of sizes


def test_waiting_memory_is_bounded_and_the_oldest_goes_first():
    blocks = Blocks(most_idle=20 * MIB)
    held = [array(blocks, 8 * MIB) for _ in range(5)]
    assert blocks.idle_bytes == 0
    last = held[-1].ctypes.data
    while held:
        del held[0]
    assert blocks.idle_bytes == 16 * MIB
    assert array(blocks, 8 * MIB).ctypes.data == last


def test_what_nobody_takes_for_a_while_goes_back_to_the_system():
    blocks = Blocks()
    held = [array(blocks, 8 * MIB) for _ in range(2)]
    del held[0]
    blocks.let_go(seconds=60)
    assert blocks.idle_bytes == 8 * MIB
    blocks.let_go(seconds=0)
    assert blocks.idle_bytes == 0
    held[0][:] = 1  # what is in use is left alone
    del held[0]
    assert blocks.idle_bytes == 8 * MIB


def test_the_engine_lets_long_inputs_memory_go(monkeypatch):
    engine = LocalEngine()
    monkeypatch.setattr(memory, "_BLOCKS", Blocks())
    engine.run(TraceRequest("dog " * 400), keep=False)
    wait_until(lambda: memory._BLOCKS.idle_bytes > 50 * MIB)  # the worker holds its last batch for a second
    monkeypatch.setattr(memory, "_MOST_IDLE_SECONDS", 0.0)
    wait_until(lambda: memory._BLOCKS.idle_bytes == 0)
    engine.close()


def test_sizes_fall_into_few_classes_and_waste_at_most_a_quarter():
    for size in (1, 4096, 4 * MIB, 4 * MIB + 1, 62_509_056, 550 * MIB):
        assert size <= rounded(size) <= max(4096, 1.25 * size)
    assert len({rounded(size) for size in range(4 * MIB, 8 * MIB, 4096)}) == 5


def test_many_threads_never_share_a_block():
    blocks, wrong = Blocks(), []

    def work(number):
        for turn in range(60):
            mine = array(blocks, 4 * MIB)[::4096]
            mine[:] = number
            if turn % 3 == 0:
                array(blocks, 4 * MIB)[::4096] = 99
            if not (mine == number).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert 0 < blocks.idle_bytes <= 12 * 4 * MIB


def test_a_wide_tensor_is_a_tensor_like_any_other():
    cpu = torch.device("cpu")
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        made = empty((3, 5, 7 * MIB // 15), dtype, cpu)
        assert (made.shape, made.dtype, made.is_contiguous()) == ((3, 5, 7 * MIB // 15), dtype, True)
        made.fill_(2.5)
        assert (made == 2.5).all()
    assert empty((2, 3), torch.float32, cpu).shape == (2, 3)


def test_without_private_mappings_torch_gives_the_memory(monkeypatch):
    def refuse(_size):
        raise OSError("Cannot allocate memory")

    monkeypatch.setattr(memory._BLOCKS, "take", refuse)
    assert empty((2, 3 * MIB), torch.float32, torch.device("cpu")).shape == (2, 3 * MIB)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators give memory back by themselves")
def test_freed_memory_goes_back_to_the_system():
    pieces = [np.ones(100_000, dtype=np.uint8) for _ in range(3000)]
    del pieces[:-1]  # the last one stands above them all
    before = resident()
    assert memory.return_freed()
    assert before - resident() > 200 * MIB
    assert pieces[0].all()

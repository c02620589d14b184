"""Lines between two processes: all of them, in order, and nobody waits."""

import contextlib
import os
import threading
import time

import pytest

from bert_core.training.live.lines import LineReader, LineWriter
from tests.waiting import wait_until


@pytest.fixture
def ends():
    """The two ends of a pipe: (to read, to write)."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as pipe, os.fdopen(reading, "rb", buffering=0) as source:
        yield source, pipe
        source.close()  # before the other: a writer that waits for it holds that
        with contextlib.suppress(BrokenPipeError):
            pipe.close()


def all_lines(reader: LineReader) -> list[str]:
    found = []
    while (lines := reader.read(30.0)) is not None:
        assert lines
        found += lines
        if found[-1] == "last":
            return found
    raise AssertionError(f"the input ended after {found}")


def writers() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "line-writer"}


def test_every_line_arrives_in_order_whatever_its_length(ends):
    source, pipe = ends
    writer, reader = LineWriter(pipe), LineReader(source.fileno())
    sent = ["first", "", "a line in 东京", "x" * 300_000, *map(str, range(3000)), "last"]
    for line in sent:
        writer.send(line)
    assert all_lines(reader) == sent
    writer.close()
    assert reader.read(30.0) is None


def test_a_line_in_pieces_is_one_line_and_half_a_line_at_the_end_is_none(ends):
    source, pipe = ends
    reader = LineReader(source.fileno())
    for piece in (b"on", b"e\ntw", b"o \xff\nlast\nhalf"):
        pipe.write(piece)
        pipe.flush()
        time.sleep(0.05)
    assert all_lines(reader) == ["one", "two \ufffd", "last"]
    pipe.close()
    assert reader.read(30.0) is None


def test_without_a_line_the_reader_comes_back_in_time(ends):
    reader = LineReader(ends[0].fileno())
    began = time.monotonic()
    assert reader.read(0.0) == []
    assert time.monotonic() - began < 0.1
    assert reader.read(0.2) == []
    assert 0.15 < time.monotonic() - began < 10.0


def test_who_sends_never_waits_and_knows_that_lines_are_left(ends):
    writer = LineWriter(ends[1])
    assert not writer.is_behind
    began = time.monotonic()
    for _ in range(3):
        writer.send("x" * 10**6)  # a pipe takes 64 KB
    assert time.monotonic() - began < 5.0
    assert writer.is_behind


@pytest.mark.parametrize("sends", [True, False])
def test_a_writer_ends_with_its_reader_or_when_it_is_told(ends, sends):
    before, (source, pipe) = writers(), ends
    writer = LineWriter(pipe)
    if sends:
        writer.send("x" * 10**6)
        wait_until(lambda: not writer.is_behind)
        source.close()
    else:
        writer.close()
    wait_until(lambda: not writers() - before)  # those of others may end meanwhile
    assert pipe.closed

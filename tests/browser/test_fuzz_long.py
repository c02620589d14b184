"""Hundreds of random inputs to a server of their own: none goes without an answer, and its memory does not grow."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench._server import Server, serve
from bert_core.load import shipped_names
from tests.browser.test_fuzz import give_anything

pytestmark = [pytest.mark.browser, pytest.mark.full, pytest.mark.timeout(7200)]

#: Inputs, and MiB by which the server's least memory may grow from the middle fifth to the last. The least, because a
#: long text's Trace takes 200 MB while it is in use; and the server keeps few Traces, because what its cache holds
#: changes from input to input.
COUNT, GROWTH = 500, 100


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A running explorer that keeps few Traces."""
    log = tmp_path_factory.mktemp("fuzz") / "log.txt"
    with serve(log=log, seconds=240, BOTH_WAYS_TRAINER_NICE="0", BOTH_WAYS_CACHE_MB="32") as running:
        yield running


@pytest.fixture(scope="module")
def address(server: Server) -> str:
    return server.address


def test_five_hundred_inputs_get_an_answer_and_memory_does_not_grow(visitor, server):
    for name in shipped_names():  # each is loaded when it is first asked for, and stays
        visitor.open("attention", model=name)
    memory: list[int] = []
    give_anything(visitor, COUNT, lambda: memory.append(round(server.memory())))
    fifth = COUNT // 5
    middle, end = min(memory[2 * fifth:3 * fifth]), min(memory[-fifth:])
    assert end - middle < GROWTH, f"least resident memory grew from {middle:.0f} to {end:.0f} MiB: {memory}"

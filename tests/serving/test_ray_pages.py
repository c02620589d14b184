"""The pages on a cluster that their own server started, as `make cluster` does."""

import asyncio
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from bench._server import Server, serve
from bench._visitors import Visitor

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serve(seconds=240, BOTH_WAYS_ENGINE="ray") as running:
        yield running


def wait_until_ready(address: str, seconds: float = 240.0) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"{address}/ready", timeout=10):
                return
        except urllib.error.URLError:
            time.sleep(0.5)
    raise TimeoutError(f"{address} was not ready within {seconds:g} s")


async def pictures(address: str, page: str, *texts: str) -> list[str]:
    """What one visitor's page shows after each sentence that they type."""
    visitor, shown = Visitor(address, page), []
    try:
        await visitor.open()
        for text in texts:
            await visitor.type(text)
            shown.append(visitor.showing)
    finally:
        await visitor.close()
    return shown


@pytest.mark.parametrize("page", ["masking", "attention", "compare"])
def test_a_cluster_outlives_the_thread_that_started_it(server, page):
    """Ray's processes end with the thread that started them, and the server's start is a thread that ends."""
    wait_until_ready(server.address)
    texts = ["The [MASK] barked.", "A bird sings in the [MASK]."]
    assert asyncio.run(pictures(server.address, page, *texts)) == texts

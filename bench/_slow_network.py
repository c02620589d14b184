"""A network as slow as a class's: a relay before a server that lets so many bits a second through, for all together."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass

CHUNK = 2048


@dataclass
class Relay:
    """A running relay.

    Attributes:
        address: what a browser opens.
        down: bytes that came from the server so far.
    """

    address: str = ""
    down: int = 0


class Lane:
    """One direction of the network: bytes go one after another, whoever's they are."""

    def __init__(self, bits_a_second: float, delay: float) -> None:
        self.bytes_a_second, self.delay, self.free_at = bits_a_second / 8, delay, 0.0

    def due(self, count: int) -> float:
        """When so many bytes that come now have arrived, by the loop's clock."""
        now = asyncio.get_running_loop().time()
        self.free_at = max(now, self.free_at) + count / self.bytes_a_second
        return self.free_at + self.delay


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter, lane: Lane, relay: Relay | None) -> None:
    loop = asyncio.get_running_loop()
    waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(maxsize=256)

    async def deliver() -> None:
        while True:
            due, data = await waiting.get()
            await asyncio.sleep(due - loop.time())
            if not data:
                sink.close()
                return
            sink.write(data)
            await sink.drain()

    delivery = asyncio.ensure_future(deliver())
    with contextlib.suppress(OSError):
        while data := await source.read(CHUNK):
            if relay is not None:
                relay.down += len(data)
            due = lane.due(len(data))
            await waiting.put((due, data))
            await asyncio.sleep(due - lane.delay - loop.time())  # the next bytes wait until these are on their way
    await waiting.put((loop.time(), b""))
    with contextlib.suppress(OSError):
        await delivery


@contextlib.contextmanager
def slow(address: str, bits_a_second: float, delay: float) -> Iterator[Relay]:
    """Put a slow network before a server until the block ends.

    Args:
        address: http://HOST:PORT of the server.
        bits_a_second: of each direction, shared by every connection.
        delay: seconds on the way, each way.
    """
    host, port = address.removeprefix("http://").split(":")
    loop, relay = asyncio.new_event_loop(), Relay()
    up, down = Lane(bits_a_second, delay), Lane(bits_a_second, delay)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection(host, int(port))
        await asyncio.gather(_pump(reader, server_writer, up, None), _pump(server_reader, writer, down, relay))

    async def start() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        relay.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    loop.run_until_complete(start())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield relay
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()

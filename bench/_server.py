"""A Streamlit server of our own for a measurement, on a free port."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EMPTY_PAGE = Path(__file__).resolve().parent / "_empty_page.py"


@dataclass(frozen=True)
class Server:
    """A running server: its address and process id."""

    address: str
    pid: int

    def memory(self) -> float:
        """Resident memory in MiB."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise RuntimeError(f"no memory figure for process {self.pid}")


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@contextlib.contextmanager
def serve(script: Path = ROOT / "app.py", log: Path | None = None, seconds: float = 60.0,
          **environment: str) -> Iterator[Server]:
    """Run a script with this project's Streamlit settings until the block ends.

    Args:
        log: file that gets what the server prints.
        seconds: how long it may take to answer.
    """
    port = free_port()
    command = [sys.executable, "-m", "streamlit", "run", str(script), "--server.port", str(port),
               "--server.address", "127.0.0.1", "--server.headless", "true"]
    with log.open("w") if log else contextlib.nullcontext(subprocess.DEVNULL) as out:
        process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "BOTH_WAYS_HUB": "off", **environment},
                                   stdout=out, stderr=subprocess.STDOUT)
    try:
        wait_for(f"http://127.0.0.1:{port}/_stcore/health", process, seconds)
        yield Server(f"http://127.0.0.1:{port}", process.pid)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


def wait_for(url: str, process: subprocess.Popen, seconds: float = 60.0) -> None:
    """Wait until the server answers.

    Raises:
        RuntimeError: it ended, or did not answer in time.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with code {process.returncode}")
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=2):
            return
        time.sleep(0.05)
    raise RuntimeError(f"no answer from {url} in {seconds:.0f} s")

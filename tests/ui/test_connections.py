"""A class fits into what the system lets a program open at once."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: (soft, hard) bounds that a system may set -> after the server's start; no hard one is above those before it.
BOUNDS = {
    (12000, 20000): "12000 20000",
    (256, 20000): "10240 20000",  # as macOS has it, but for the second
    (256, 1000): "1000 1000",
}
ASK = """
import resource
import sys
from ui.server import allow_many_connections
for bounds in {bounds}:
    resource.setrlimit(resource.RLIMIT_NOFILE, bounds)
    allow_many_connections()
    print(*resource.getrlimit(resource.RLIMIT_NOFILE))
sys.modules["resource"] = None  # Windows has no such bound
allow_many_connections()
"""


def test_the_limit_is_raised_as_far_as_it_may_be_and_never_lowered():
    done = subprocess.run([sys.executable, "-c", ASK.format(bounds=list(BOUNDS))], cwd=ROOT, capture_output=True,
                          text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()) == (0, list(BOUNDS.values())), done.stderr

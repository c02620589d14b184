"""A class fits into what the system lets a program open at once."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ASK = """
import sys
from ui.server import allow_many_connections
if {limits}:
    import resource
    resource.setrlimit(resource.RLIMIT_NOFILE, {limits})
    allow_many_connections()
    print(*resource.getrlimit(resource.RLIMIT_NOFILE))
else:
    sys.modules["resource"] = None
    allow_many_connections()
"""


@pytest.mark.parametrize(("limits", "after"), [
    ((256, 20000), "10240 20000"),  # as macOS has it, but for the second
    ((256, 1000), "1000 1000"),
    ((12000, 20000), "12000 20000"),
    ((), ""),  # Windows has no such bound
])
def test_the_limit_is_raised_as_far_as_it_may_be_and_never_lowered(limits, after):
    done = subprocess.run([sys.executable, "-c", ASK.format(limits=limits)], cwd=ROOT, capture_output=True, text=True,
                          check=False)
    assert (done.returncode, done.stdout.strip()) == (0, after), done.stderr

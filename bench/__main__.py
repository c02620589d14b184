"""`python -m bench` lists the benchmarks, `python -m bench NAME` runs one.

A benchmark is imported when it is run, so the list needs nothing that one of
them needs. The last line of standard output is JSON: {"benchmark", "results":
{case: {"ratio", "ours_ms", "peer_ms", ...}}}. What is no time has other keys
(`ours_mb`, `accuracy`), and a case without a peer has no ratio.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import pkgutil
import platform
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import bench

_NOT_BENCHMARKS = {"__main__", "harness"}


def names() -> list[str]:
    """Every benchmark, by the name one calls it with."""
    found = (module.name for module in pkgutil.iter_modules(bench.__path__))
    return sorted(n.replace("_", "-") for n in found if n not in _NOT_BENCHMARKS and not n.startswith("_"))


def summary(name: str) -> str:
    """The first line of a benchmark's docstring, read from its source."""
    source = Path(bench.__path__[0], f"{name.replace('-', '_')}.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]


def load(name: str) -> ModuleType:
    return importlib.import_module(f"bench.{name.replace('-', '_')}")


def measure(name: str) -> None:
    """Run one benchmark, print a table and the JSON line."""
    results = load(name).run()
    for case, figures in results.items():
        print(f"{case:28s} " + "  ".join(f"{key} {value}" for key, value in figures.items()))
    print(json.dumps({"benchmark": name, "machine": platform.processor() or platform.machine(), "results": results}))


def measured(name: str) -> bool:
    """Run one benchmark, or say in one line which import it lacks; whether it ran."""
    try:
        measure(name)
    except ModuleNotFoundError as missing:
        print(f"{name} was not run: {missing}; `make bench` installs what the benchmarks need", file=sys.stderr)
        return False
    return True


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("name", nargs="?", help="a benchmark; none lists them")
    parser.add_argument("--all", action="store_true", help="run every benchmark in turn")
    chosen = parser.parse_args(argv)
    if chosen.all:
        # a process for each, so that none finds threads, caches or imports as another left them
        ended = [subprocess.run([sys.executable, "-m", "bench", name]).returncode for name in names()]
        return 1 if any(ended) else 0
    if chosen.name is None:
        for name in names():
            print(f"{name:16s} {summary(name)}")
        return 0
    if chosen.name not in names():
        print(f"no benchmark {chosen.name!r}; there are {', '.join(names())}", file=sys.stderr)
        return 2
    return 0 if measured(chosen.name) else 1


if __name__ == "__main__":
    sys.exit(main())

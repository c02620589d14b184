"""`python -m bench` lists the benchmarks, `python -m bench NAME` runs one.

The last line of standard output is JSON: {"benchmark", "results": {case:
{"ratio", "ours_ms", "peer_ms", ...}}}.
"""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import platform
import sys
from types import ModuleType

import bench

_NOT_BENCHMARKS = {"__main__", "harness"}


def names() -> list[str]:
    """Every benchmark, by the name one calls it with."""
    found = (module.name for module in pkgutil.iter_modules(bench.__path__))
    return sorted(n.replace("_", "-") for n in found if n not in _NOT_BENCHMARKS and not n.startswith("_"))


def load(name: str) -> ModuleType:
    return importlib.import_module(f"bench.{name.replace('-', '_')}")


def measure(name: str) -> None:
    """Run one benchmark, print a table and the JSON line."""
    results = load(name).run()
    for case, figures in results.items():
        print(f"{case:28s} " + "  ".join(f"{key} {value}" for key, value in figures.items()))
    print(json.dumps({"benchmark": name, "machine": platform.processor() or platform.machine(), "results": results}))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("name", nargs="?", help="a benchmark; none lists them")
    parser.add_argument("--all", action="store_true", help="run every benchmark in turn")
    chosen = parser.parse_args(argv)
    if chosen.all:
        for name in names():
            measure(name)
        return 0
    if chosen.name is None:
        for name in names():
            print(f"{name:16s} {(load(name).__doc__ or '').strip().splitlines()[0]}")
        return 0
    if chosen.name not in names():
        print(f"no benchmark {chosen.name!r}; there are {', '.join(names())}", file=sys.stderr)
        return 2
    measure(chosen.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The measuring itself: fair turns, right figures, honest failures."""

import json
import subprocess
import sys

import pytest

from bench import __main__ as bench_main
from bench._visitors import ready_text
from bench.crowd import percentile
from bench.harness import compared, interleave
from ui import components


def test_every_side_is_first_in_turn_and_warm_ups_do_not_count():
    calls = []
    sides = {name: lambda turn, name=name: calls.append((turn, name)) for name in "abc"}
    times = interleave(sides, repeats=4, warmup=2)
    assert {name: len(values) for name, values in times.items()} == dict.fromkeys("abc", 4)
    assert [name for turn, name in calls[::3]] == ["a", "b", "c", "a", "b", "c"]


def test_the_ratio_is_the_median_of_pairs():
    figures = compared([2.0, 6.0, 5.0], [4.0, 6.0, 50.0])
    assert (figures["ratio"], figures["ours_ms"], figures["peer_ms"]) == (0.5, 5.0, 6.0)
    assert (figures["ratio_min"], figures["ratio_max"], figures["repeats"]) == (0.1, 1.0, 3)


def test_a_percentile_is_one_of_the_times():
    assert percentile([5.0, 1.0, 3.0], 0.95) == 5.0
    assert percentile([5.0, 1.0, 3.0], 0.0) == 1.0


def test_every_benchmark_says_what_it_measures_and_can_run():
    assert {"trace", "keypress", "crowd", "fill-mask", "visitors", "server"} <= set(bench_main.names())
    for name in bench_main.names():
        module = bench_main.load(name)
        assert callable(module.run), name
        assert module.__doc__.strip(), name


def test_the_last_line_is_the_result(monkeypatch, capsys):
    class Fake:
        @staticmethod
        def run():
            return {"case/1": {"ratio": 0.5, "ours_ms": 1.0, "peer_ms": 2.0}}

    monkeypatch.setattr(bench_main, "load", lambda name: Fake)
    bench_main.measure("fake")
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert last["benchmark"] == "fake"
    assert last["results"] == Fake.run()


def test_an_unknown_benchmark_is_one_line():
    done = subprocess.run([sys.executable, "-m", "bench", "nothing"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("no benchmark 'nothing'")


@pytest.mark.parametrize("text", ["the cat", 'a "quoted" \\ one', "猫 </script>", ""])
def test_a_visitor_without_a_browser_reads_what_the_page_was_drawn_for(text):
    assert ready_text(b"\x0a\x22" + components.pack({"text": text, "status": "s", "lines": [], "run": 1})) == text
    assert ready_text(b"no such thing") is None

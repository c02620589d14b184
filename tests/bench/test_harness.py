"""The measuring itself: fair turns, right figures, honest failures."""

import asyncio
import importlib
import itertools
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from bench import __main__ as bench_main
from bench import attention_view
from bench._server import serve
from bench._visitors import Visitor, ready_text
from bench.crowd import crowd, every_view, percentile
from bench.harness import compared, interleave
from bench.keypress import sentences
from ui import components, shell


class Fake:
    """A benchmark that needs nothing."""

    @staticmethod
    def run():
        return {"case/1": {"ratio": 0.5, "ours_ms": 1.0, "peer_ms": 2.0}}


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
        assert bench_main.summary(name) == module.__doc__.splitlines()[0] != "", name


def test_the_list_needs_nothing_that_a_benchmark_needs():
    code = ("import sys; sys.modules.update(dict.fromkeys(['playwright', 'ray', 'websockets', 'torch', 'bertviz']));"
            "from bench.__main__ import main; sys.exit(main([]))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[0] for line in done.stdout.splitlines()] == bench_main.names()
    assert "From a key press to the new picture in Chromium" in done.stdout


def test_a_benchmark_without_its_import_is_one_line(monkeypatch, capsys):
    monkeypatch.setattr(bench_main, "names", lambda: ["first"])
    monkeypatch.setattr(bench_main, "load", lambda name: importlib.import_module("nowhere"))
    assert bench_main.main(["first"]) == 1
    out, err = capsys.readouterr()
    assert (out, err.split(";")[0]) == ("", "first was not run: No module named 'nowhere'")


def test_all_goes_on_after_one_that_fails(monkeypatch, capfd):
    monkeypatch.setattr(bench_main, "names", lambda: ["one", "another"])  # no benchmarks: each process says so
    assert bench_main.main(["--all"]) == 1
    assert [line.split(";")[0] for line in capfd.readouterr().err.splitlines()] == [
        "no benchmark 'one'", "no benchmark 'another'"]


def test_no_sentence_is_typed_twice():
    texts = list(itertools.islice(sentences(10), 500))
    assert len(set(texts)) == 500
    assert {len(text.split()) for text in texts} == {10}
    assert all(text.count("[MASK]") == 1 for text in texts)


def test_three_attention_views_take_turns_and_a_slow_one_is_drawn_once(monkeypatch):
    milliseconds, order = {"ours": 2.0, "head": 8.0, "model": 40_000.0}, []

    def timed(browser, site, make):
        order.append(make())
        return attention_view.Drawn(milliseconds[order[-1]], 100, False)

    monkeypatch.setattr(attention_view, "our_page", lambda site, trace, layer: "ours")
    monkeypatch.setattr(attention_view, "peer_page", lambda site, trace, view: view)
    monkeypatch.setattr(attention_view, "_timed", timed)
    cases = attention_view._against(16, **attention_view._in_turns(None, None, None, 3))
    assert order == ["ours", "head", "model", "head", "ours", "ours", "head"]
    assert {name: case["ratio"] for name, case in cases.items()} == {
        "head/16": 0.25, "model/16": round(2 / 40_000, 4), "both/16": round(2 / 40_008, 4)}
    assert {name: (case["repeats"], case["peer_repeats"]) for name, case in cases.items()} == {
        "head/16": (3, 3), "model/16": (3, 1), "both/16": (3, 1)}


def test_the_last_line_is_the_result(monkeypatch, capsys):
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
    assert ready_text(components.pack({"text": text, "label": "a token on the page"})) is None


def test_visitors_without_a_browser_stay_on_the_page_they_opened():
    async def visit(address, page, text):
        visitor = Visitor(address, page)
        await visitor.open()
        opened = visitor.page_hash
        await visitor.type(text)
        await visitor.close()
        return opened, visitor.page_hash, visitor.showing

    with serve() as server, ThreadPoolExecutor(1) as apart:  # in this thread a browser test's loop may run
        first = apart.submit(asyncio.run, visit(server.address, "tokens", "the cat slept"))
        here, still_here, showing = first.result()
        elsewhere, _, _ = apart.submit(asyncio.run, visit(server.address, "cls", "the dog barked")).result()
        load = apart.submit(asyncio.run, crowd(server.address, every_view()[:2], 4.0)).result()
    assert here == still_here != elsewhere
    assert showing == "the cat slept"
    assert (len(load.opened), load.faults) == (2, {"errors": 0, "crossed": 0})
    assert len(load.answers) >= 2


def test_the_crowd_of_every_view_leaves_none_out():
    views = every_view()
    pages = [name for section in shell.PAGES.values() for name, _ in section]
    assert list(dict.fromkeys(page for page, _ in views)) == [p for p in pages if p not in ("pretrain", "finetune")]
    assert ("masking", {"view": "80/10/10"}) in views
    assert ("attention", {"view": "Attribution"}) in views
    assert len({(page, query.get("view")) for page, query in views}) == len(views) > 50

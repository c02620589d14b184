"""One case over all views: the median of their medians, and the slowest by name."""

from bench.every_view import PAGES, over_all
from ui import shell


def test_all_views_together_name_the_slowest():
    found = {"tokens/Compare": ([30.0, 10.0, 20.0], [5.0, 5.0, 5.0]), "masking/Neurons": ([400.0, 900.0, 500.0], [5.0]),
             "class/Room": ([40.0, 60.0, 50.0], [20.0, 5.0, 5.0])}
    case = over_all(found)
    assert (case["ours_ms"], case["peer_ms"], case["ratio"]) == (50.0, 5.0, 10.0)
    assert (case["slowest"], case["slowest_ms"], case["views"]) == ("masking/Neurons", 500.0, 3)


def test_every_page_is_gone_through():
    assert {name for pages in shell.PAGES.values() for name, _ in pages} == set(PAGES)

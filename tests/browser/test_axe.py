"""axe-core finds no violation on any page, in either theme."""

from __future__ import annotations

import tomllib
from urllib.parse import parse_qs, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.browser.waiting import becomes
from ui import shell

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

PAGES = [name for pages in shell.PAGES.values() for name, _ in pages]
SCHEMES = ("light", "dark")
#: The page of code is looked at in test_code.py, beside all else that needs the library it is compared with.
QUICK = [(name, SCHEMES[n % 2]) for n, name in enumerate(PAGES) if name != "code"]
#: (page, view) of every view that a page has words for; a page's first one is what its bare address shows.
VIEWS = [(name, view) for name in PAGES
         for view in list(tomllib.loads((shell.PROSE / f"{name}.toml").read_text()).get("reading", ()))[1:]]
REST = [(name, scheme) for name in PAGES for scheme in SCHEMES if (name, scheme) not in QUICK]


def violations(page) -> list[str]:
    """What axe objects to, one line an element."""
    found = Axe().run(page).response["violations"]
    return [f"{rule['id']} ({rule['impact']}): {' '.join(map(str, node['target']))}: {node['html'][:160]}"
            for rule in found for node in rule["nodes"]]


def check(visitor, name: str, **query: str) -> None:
    page = visitor.open(name, **query)
    becomes(page, lambda: violations(page), [])  # what still fades in has too little contrast, so look again


@pytest.mark.parametrize("scheme", SCHEMES)
def test_no_page_has_a_violation(new_visitor, scheme):
    """Each page in one of the themes; from one to the next by its link."""
    first, *others = [name for name, its in QUICK if its == scheme]
    visitor = new_visitor(scheme=scheme)
    check(visitor, first)
    for name in others:
        run = visitor.run_number()
        visitor.page.locator(f'[data-testid=stSidebarNavLink][href$="/{name}"]').click()
        visitor.page.wait_for_url(f"**/{name}*")
        visitor.after(run)
        becomes(visitor.page, lambda name=name: [f"{name}: {line}" for line in violations(visitor.page)], [])


@pytest.mark.full
@pytest.mark.parametrize(("name", "scheme"), REST)
def test_page_has_no_violation_in_the_other_theme(new_visitor, name, scheme):
    check(new_visitor(scheme=scheme), name)


@pytest.mark.full
@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_page_has_no_violation_on_a_phone(new_visitor, name, scheme):
    check(new_visitor(width=390, scheme=scheme), name)


@pytest.mark.full
@pytest.mark.parametrize(("name", "view"), VIEWS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_view_has_no_violation(new_visitor, name, view, scheme):
    visitor = new_visitor(scheme=scheme)
    check(visitor, name, view=view)
    assert parse_qs(urlsplit(visitor.page.url).query)["view"] == [view]

"""A page that is run without a browser takes no longer than it must: there are over a thousand of them."""

import importlib.metadata

from tests.payloads import is_ready, visit


def test_the_installed_packages_are_looked_through_for_components_once(monkeypatch):
    visit("tokens")
    asked, look = [], importlib.metadata.distributions
    monkeypatch.setattr(importlib.metadata, "distributions", lambda **which: asked.append(which) or look(**which))
    is_ready(visit("tokens"))
    assert asked == []

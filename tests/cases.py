"""Cases of a test of which `make test` tries the first, as it has twenty minutes, and `make test-full` all."""

from __future__ import annotations

from collections.abc import Iterable

import pytest


def quick_are(count: int, cases: Iterable[object]) -> list[object]:
    """For `parametrize`: the first `count` cases as they are, the others marked "full"."""
    return [case if n < count else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.full)
            for n, case in enumerate(cases)]

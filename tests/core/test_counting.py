"""One thing is one."""

import pytest

from bert_core.counting import counted


@pytest.mark.parametrize(("count", "shown"), [(0, "0 pieces"), (1, "1 piece"), (2000, "2,000 pieces")])
def test_one_thing_is_one(count, shown):
    assert counted(count, "piece") == shown


def test_a_plural_of_its_own():
    assert [counted(n, "guess", "guesses") for n in (1, 2)] == ["1 guess", "2 guesses"]

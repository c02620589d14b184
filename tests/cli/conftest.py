"""The command line called in this process."""

from __future__ import annotations

import pytest

from bert_core.cli import main


@pytest.fixture
def run(capsys):
    """run(*arguments) -> (exit code, standard output, standard error)."""
    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()  # what made the fixtures
        code = main(list(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def refused(run):
    """refused(*arguments) -> the one line of error, after checking that it is one."""
    def call(*arguments: str) -> str:
        code, out, error = run(*arguments)
        assert (code, out) == (2, "")
        assert error.count("\n") == 1
        assert "Traceback" not in error
        return error

    return call

"""Lessons as data."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from pathlib import Path

from bert_core.serving.rooms import View
from ui import state
from ui.words import LESSONS


@dataclass(frozen=True)
class Step:
    """One thing to do on a page, and what to notice there.

    Attributes:
        link: values of the page's controls.
        at: what its picture is open at: parameters of the address that no control holds.
        usual: keys of `link` whose value is the control's default.
    """

    do: str
    notice: str
    page: str
    link: tuple[tuple[str, str | bool], ...]
    at: tuple[tuple[str, str], ...] = ()
    usual: frozenset[str] = frozenset()

    @property
    def view(self) -> View:
        """Where the step takes place, with the model that its numbers are from.

        A second sentence that it doesn't name is taken away.
        """
        return View(self.page, (("pair", ""), ("model", state.OFFERED), *self.link), self.at, self.usual)


@dataclass(frozen=True)
class Lesson:
    """A lesson of 5 to 15 minutes.

    Attributes:
        key: the file's name without its number.
        question, options, answer, reveal: what is predicted before it is shown;
            `answer` is the index of the right option.
        steps: what to do and to notice.
        checks: (question, answer) to test oneself.
        checklist: keys of the checklist's items it teaches.
    """

    key: str
    title: str
    minutes: int
    question: str
    options: tuple[str, ...]
    answer: int
    reveal: str
    steps: tuple[Step, ...]
    checks: tuple[tuple[str, str], ...]
    checklist: tuple[str, ...]


@functools.cache
def lessons() -> tuple[Lesson, ...]:
    """All lessons in their order."""
    return tuple(_read(path) for path in sorted(LESSONS.glob("[0-9]*.toml")))


def titles() -> list[str]:
    """What each lesson is called where one is chosen."""
    return [f"{n}. {lesson.title}" for n, lesson in enumerate(lessons(), 1)]


def _read(path: Path) -> Lesson:
    words = tomllib.loads(path.read_text(encoding="utf-8"))
    steps = tuple(Step(s["do"], s["notice"], s["page"], tuple(s["link"].items()), tuple(s.get("at", {}).items()))
                  for s in words["step"])
    checks = tuple((c["question"], c["answer"]) for c in words["check"])
    return Lesson(path.stem.split("-", 1)[1], words["title"], words["minutes"], words["question"],
                  tuple(words["options"]), words["answer"], words["reveal"], steps, checks, tuple(words["checklist"]))


@functools.cache
def checklist() -> tuple[tuple[str, str], ...]:
    """(key, what one can do) of every item."""
    words = tomllib.loads((LESSONS / "checklist.toml").read_text(encoding="utf-8"))
    return tuple((item["key"], item["can"]) for item in words["item"])

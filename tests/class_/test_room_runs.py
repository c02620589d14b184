"""A room's training runs: who follows sees the teacher's, or that there is none, and never their own in its place."""

from __future__ import annotations

import pytest

from bert_core.serving.rooms import View
from bert_core.training.live.desk import TrainingDesk
from bert_core.training.live.specs import PretrainSpec
from tests.payloads import said, visit
from ui import rooms, training


@pytest.fixture
def desk(monkeypatch, tmp_path):
    """A desk whose trainer never listens: runs wait."""
    made = TrainingDesk(lambda _visitor: True, tmp_path)
    monkeypatch.setattr(made, "_send", lambda _command: None)
    monkeypatch.setattr(made, "_running_process", lambda: None)
    monkeypatch.setattr(training, "desk", lambda: made)
    yield made
    made.close()


@pytest.fixture
def show():
    """show(parameters): the teacher's Pre-train page; `show.code` is the room's."""
    code, key = rooms.registry().open()

    def show(**parameters: str) -> None:
        rooms.registry().show(code, key, View("pretrain", (), tuple(parameters.items())))

    show.code = code
    yield show
    rooms.registry().close(code, key)


def test_after_the_teachers_reset_the_class_sees_the_random_start_and_nobody_their_own_run(desk, show, monkeypatch):
    run = desk.start("teacher", PretrainSpec(seed=5))
    show(run=run)
    student = visit("pretrain", room=show.code)
    assert "seed 5. Starting" in said(student)
    own = desk.start("student", PretrainSpec(seed=7))
    monkeypatch.setattr(training.visitors, "current", lambda: "student")
    show(over=run)
    student.run()
    assert "Not begun: you see the random start." in said(student)
    assert "run" not in student.query_params
    student.query_params["run"] = run  # of a look that was on its way
    assert "Not begun: you see the random start." in said(student.run())
    student.button(key="_let_go").click().run()
    assert "seed 7. Starting" in said(student)
    assert student.query_params["run"] == own

"""Which runs a page shows: a visitor's own, or those of a link or a room, and those that have something to show."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from bert_core.serving.rooms import View
from bert_core.training.live import desk as desks
from bert_core.training.live import tables
from bert_core.training.live.desk import TrainingDesk
from bert_core.training.live.finetuning import FinetuneRun
from bert_core.training.live.folder import Status
from bert_core.training.live.specs import FinetuneSpec, PretrainSpec
from bert_core.training.live.tables import Labelled, write_rows
from tests.payloads import said, table_rows, visit
from ui import rooms, training
from ui.views import finetune as training_page
from ui.views import pretrain_curves

NAMES = ("Anna", "Bruno", "Carla", "David", "Emma", "Felix")


def own_table(verb: str) -> dict[str, str]:
    """The files of a run on six rows of two classes."""
    rows = [Labelled(f"{name} {verb} {'well' if n % 2 else 'badly'}.", str(n % 2)) for n, name in enumerate(NAMES)]
    return {"train.tsv": write_rows(rows[:4]), "test.tsv": write_rows(rows[4:])}


def trained(desk: TrainingDesk, visitor: str, way: str = "full", task: str = "topic", files=None) -> str:
    """A run that is done: its rows were read once."""
    spec = FinetuneSpec(task, way, epochs=1, batch=32)
    run_id = desk.start(visitor, spec, files)
    folder = desk.watch(visitor, run_id)
    run = FinetuneRun(spec, folder)
    while run.step < run.steps:
        run.advance()
    run.report()
    folder.set_status(Status("done", run.steps, run.steps, seconds=1.0))
    return run_id


def compared(at: AppTest) -> set[str]:
    """The ways of learning, and what stands beside them, in the table of the accuracies."""
    return {row[0] for row in table_rows(at, "Right on the test set")}


@pytest.fixture(scope="module")
def short_tables(tmp_path_factory):
    """A folder of the shipped tasks with ten rows of each class: what a run shows needs no more."""
    folder = tmp_path_factory.mktemp("teaching")
    shutil.copyfile(tables.TEACHING / "tasks.toml", folder / "tasks.toml")
    for path in tables.TEACHING.glob("*.tsv"):
        rows = tables.read_rows(path.read_text(encoding="utf-8"))
        labels = sorted({row.label for row in rows})
        some = [row for label in labels for row in [one for one in rows if one.label == label][:10]]
        (folder / path.name).write_text(write_rows(some), encoding="utf-8")
    return folder


@pytest.fixture
def desk(monkeypatch, tmp_path, short_tables):
    """A desk whose trainer never listens: runs wait."""
    monkeypatch.setattr(tables, "TEACHING", short_tables)
    made = TrainingDesk(lambda _visitor: True, tmp_path)
    monkeypatch.setattr(made, "_send", lambda _command: None)
    monkeypatch.setattr(made, "_running_process", lambda: None)
    monkeypatch.setattr(training, "desk", lambda: made)
    as_visitor(monkeypatch, "ann")
    yield made
    made.close()


def as_visitor(monkeypatch, name: str) -> None:
    """Who opens pages from now on."""
    monkeypatch.setattr(training.visitors, "current", lambda: name)


@pytest.fixture
def show():
    """show(page, parameters): what the teacher's page has in its address; `show.room` is its code and key."""
    code, key = rooms.registry().open()

    def show(page: str, **parameters: str) -> None:
        rooms.registry().show(code, key, View(page, (), tuple(parameters.items())))

    show.code, show.room = code, (code, key)
    yield show
    rooms.registry().close(code, key)


def test_after_the_teachers_reset_the_class_sees_the_random_start_and_nobody_their_own_run(desk, show, monkeypatch):
    run = desk.start("teacher", PretrainSpec(seed=5))
    show("pretrain", run=run)
    student = visit("pretrain", room=show.code)
    assert "seed 5. Starting" in said(student)
    own = desk.start("student", PretrainSpec(seed=7))
    as_visitor(monkeypatch, "student")
    show("pretrain", over=run)
    student.run()
    assert "Not begun: you see the random start." in said(student)
    assert "run" not in student.query_params
    student.query_params["run"] = run  # of a look that was on its way
    assert "Not begun: you see the random start." in said(student.run())
    student.button(key="_let_go").click().run()
    assert "seed 7. Starting" in said(student)
    assert student.query_params["run"] == own


def test_who_lets_go_of_the_teachers_run_finds_their_own_and_reset_stops_it(desk, show, monkeypatch):
    """It would go on where nobody sees it, and the teacher's would wait behind it."""
    as_visitor(monkeypatch, "student")
    show("tokens")
    student = visit("pretrain", room=show.code)
    own, runs = desk.start("student", PretrainSpec(seed=7)), {}
    for page, kind in (("pretrain", PretrainSpec), ("finetune", FinetuneSpec)):
        runs[page] = desk.start("teacher", kind(seed=5))
    show("finetune", tune=runs["finetune"], beside=runs["finetune"], epoch="0")
    student.run()
    show("pretrain", run=runs["pretrain"], over=runs["pretrain"], frame="0")
    assert "seed 5. Starting" in said(student.run())
    student.button(key="_let_go").click().run()
    student.switch_page("pages/tokens.py").run()
    student.query_params.clear()
    assert "seed 7. Starting" in said(student.switch_page("pages/pretrain.py").run())
    assert not {"over", "frame"} & set(student.query_params)
    sent = []
    monkeypatch.setattr(desk, "_send", sent.append)
    student.button(key="reset").click().run()
    assert "Not begun" in said(student)
    assert {"do": "stop", "run": own} in sent
    assert "tune" not in student.switch_page("pages/finetune.py").run().query_params


def test_a_run_cancelled_before_it_began_leaves_the_finished_one_on_screen(desk):
    done = trained(desk, "ann", "frozen")
    cancelled = desk.start("ann", FinetuneSpec("topic", "frozen", seed=1))
    at = visit("finetune", tune=cancelled, way="Head only")
    for status in (Status("waiting", place=2), Status("stopped")):
        desk.watch("ann", cancelled).set_status(status)
        at.run()
        assert compared(at) == {"Head only", "bag of words", "LSTM", "chance"}
        assert at.text_input(key="try_topic").value
    assert "Topic, head only, seed 0. Done: " in said(at)
    assert at.query_params["beside"] == done


def test_a_run_that_ended_before_it_began_is_nothing_trained(desk):
    run = desk.start("ann", FinetuneSpec("topic"))
    at = visit("finetune", tune=run)
    assert "Nothing trained" not in said(at)
    desk.watch("ann", run).set_status(Status("stopped"))
    assert ("Nothing trained on this task yet: press Train. Before: Topic, everything, seed 0. Stopped before it began."
            in said(at.run()))
    assert "What it learns from" in said(at)


def test_who_may_train_finds_the_trainer_ready_and_who_follows_asks_for_none(desk, show, monkeypatch):
    asked = []
    monkeypatch.setattr(desk, "make_ready", lambda: asked.append(1))
    for page in ("pretrain", "finetune"):
        asked.clear()
        visit(page)
        assert asked
        show(page)
        asked.clear()
        visit(page, room=show.code)
        assert not asked


def test_who_follows_is_asked_for_no_table_and_not_to_train(desk, show):
    rooms.registry().show(*show.room, View("finetune", (("task", "Your own table"),)))
    student = visit("finetune", room=show.code)
    assert "the picture comes with your teacher" in said(student)
    assert not student.get("file_uploader")
    assert student.button(key="train").disabled
    assert student.button(key="train").help
    student.segmented_control(key="task").set_value("Topic").run()
    assert not student.button(key="train").disabled
    assert "press Train" not in said(student)
    assert "Choose a table" not in said(student)
    student.button(key="_let_go").click().run()
    assert "Nothing trained on this task yet: press Train" in said(student)


def test_who_follows_a_teacher_that_is_gone_can_not_end_the_run_of_the_class(desk, show, monkeypatch):
    as_visitor(monkeypatch, "student")
    monkeypatch.setattr(desks, "GRACE", 0.0)
    monkeypatch.setattr(desk, "alive", lambda visitor: visitor != "teacher")
    run = desk.start("teacher", PretrainSpec(seed=5))
    show("pretrain", run=run)
    student = visit("pretrain", room=show.code)
    assert "seed 5. Starting" in said(student)
    assert all(student.button(key=key).disabled for key in ("pause", "step", "reset"))
    assert desk.owns("teacher", run)
    show("pretrain")
    student.run().button(key="play").click().run()
    assert not student.button(key="reset").disabled  # one of their own, begun while the teacher shows none
    assert visit("pretrain", run=run).button(key="pause").disabled is False  # of another window, which takes it over


def test_a_class_is_not_told_that_the_teachers_own_text_is_not_theirs(desk, show, monkeypatch):
    as_visitor(monkeypatch, "student")
    run = desk.start("teacher", PretrainSpec(text="own"), {"text.txt": "The fox runs. It sees the dog.\n\n" * 20})
    show("pretrain", run=run)
    student = visit("pretrain", room=show.code)
    assert "own text, seed 0. Starting" in said(student)
    assert "On screen is" not in said(student)
    student.number_input(key="seed").set_value(3).run()
    assert "What the controls say now, As in the paper, own text, seed 3" in said(student)


@pytest.mark.parametrize(("texts", "together"), [(("A", "A"), True), (("A", "B"), False), ((None, "A"), False),
                                                 ((None, None), True)])
def test_only_runs_on_one_text_lie_over_one_another(desk, monkeypatch, texts, together):
    """Held-out words of two texts are two examinations: neither the curves nor the levels are the other's."""
    drawn = {}
    monkeypatch.setattr(pretrain_curves.components, "_draw", lambda figure, key: drawn.update({key: figure}))
    ids = []
    for text in texts:
        files = {"text.txt": f"{text} fox runs. It sees the dog.\n\n" * 20} if text else {}
        ids.append(desk.start("ann", PretrainSpec(text="own" if text else "shipped"), files))
        curves = {name: np.ones(2, dtype=np.float32) for name in pretrain_curves.EMPTY}
        desk.watch("ann", ids[-1]).set_arrays("curves", curves)
        desk.watch("ann", ids[-1]).set_status(Status("done", 3000, 3000))
    words = said(visit("pretrain", over=ids[0], run=ids[1]))
    assert len(drawn["accuracy"].data) == 1 + together
    assert ("The run before learned from another text" in words) != together


def test_who_looks_at_one_run_shares_its_charts_and_a_further_step_is_drawn_anew(desk, monkeypatch):
    drawn, seen = {}, []
    monkeypatch.setattr(pretrain_curves.components, "_draw", lambda figure, key: drawn.update({key: figure}))
    run = desk.start("teacher", PretrainSpec())
    for done in (2, 2, 3):
        curves = {name: np.ones(done, dtype=np.float32) for name in pretrain_curves.EMPTY}
        desk.watch("teacher", run).set_arrays("curves", curves)
        desk.watch("teacher", run).set_status(Status("paused", done, 3000))
        visit("pretrain", run=run)
        seen.append(dict(drawn))
    assert len(seen[0]) == 5
    assert all(figure is seen[0][key] is not seen[2][key] for key, figure in seen[1].items())
    assert [seen[look]["loss"].data[0].x[-1] for look in (1, 2)] == [2, 3]


def test_a_class_shares_the_charts_of_a_fine_tuning_until_another_run_stands_beside_it(desk, monkeypatch):
    drawn, seen = {}, []
    monkeypatch.setattr(pretrain_curves.components, "_draw", lambda figure, key: drawn.update({key: figure}))
    run = trained(desk, "teacher", "frozen")
    for visitor, epoch in (("teacher", "1"), ("student", "1"), ("student", "0")):
        as_visitor(monkeypatch, visitor)
        visit("finetune", tune=run, epoch=epoch)
        seen.append(dict(drawn))
    first, second, earlier = seen
    assert set(first) == {"tune_accuracy", "confusion"}
    assert all(figure is first[key] for key, figure in second.items())
    assert (earlier["tune_accuracy"] is first["tune_accuracy"], earlier["confusion"] is first["confusion"]) == (
        True, False)
    as_visitor(monkeypatch, "teacher")
    visit("finetune", tune=trained(desk, "teacher", "last"))
    assert len(drawn["tune_accuracy"].data) == 2 == 1 + len(first["tune_accuracy"].data)


def test_a_finished_run_is_found_again_by_a_new_tab_until_it_is_left(desk):
    first, newest = (desk.start("ann", PretrainSpec(seed=seed)) for seed in (3, 4))
    for run in (first, newest):
        desk.watch("ann", run).set_status(Status("done", 3000, 3000))
    asked = visit("pretrain", experiment="No NSP")  # a lesson or a teacher's link, which wants another
    for experiment in ("No NSP", "As in the paper"):
        assert f"{experiment}, seed 0. Not begun" in said(
            asked.segmented_control(key="experiment").set_value(experiment).run())
    at = visit("pretrain")
    assert "seed 4. Done" in said(at)
    assert at.query_params["run"] == newest
    at.button(key="reset").click().run()
    for again in (at, visit("pretrain")):
        assert "Not begun" in said(again)


def test_the_run_in_the_picture_is_looked_at_and_cancelled_where_the_present_one_has_ended(desk, monkeypatch):
    """Another tab began it: this one said “Step 3 of 68” for ever, and offered to train."""
    ended = desk.start("ann", FinetuneSpec("topic"))
    desk.watch("ann", ended).set_status(Status("stopped"))
    other_tabs = trained(desk, "ann", task="sentiment")
    desk.watch("ann", other_tabs).set_status(Status("running", 3, 68))
    paces, ticking = [], training.ticking
    monkeypatch.setattr(training, "ticking", lambda draw, pace: paces.append(pace) or ticking(draw, pace))
    at = visit("finetune", task="Sentiment", tune=ended)
    assert "Sentiment, everything, seed 0. Step 3 of 68" in said(at)
    assert paces == [training.TICK]
    sent = []
    monkeypatch.setattr(desk, "_send", sent.append)
    at.button(key="cancel").click().run()
    assert [message for message in sent if message["do"] != "seen"] == [{"do": "stop", "run": other_tabs}]
    desk.watch("ann", other_tabs).set_status(Status("stopped", 4, 68))
    assert "Step 4 of 68" in said(at.run())
    assert not at.button(key="train").disabled
    assert paces[-1] is None


def test_a_class_and_a_link_see_all_the_runs_that_are_compared_and_none_of_their_own(desk, show, monkeypatch):
    ways = {way: trained(desk, "ann", way) for way in ("frozen", "last")}
    teacher = visit("finetune", tune=ways["last"])
    everything = {"Head only", "Last two layers", "bag of words", "LSTM", "chance"}
    assert compared(teacher) == everything
    as_visitor(monkeypatch, "ben")
    own = trained(desk, "ben", "scratch")
    address = {key: teacher.query_params[key] for key in ("tune", "beside")}
    assert compared(visit("finetune", **address)) == everything
    student = visit("finetune", room=show.code)
    show("finetune", **address)
    assert compared(student.run()) == everything
    show("finetune")
    assert "Nothing trained on this task yet" in said(student.run())
    student.button(key="_let_go").click().run()
    assert "From scratch" in compared(student)
    assert all(desk.owns("ann", run) for run in ways.values())
    assert desk.owns("ben", own)


@pytest.mark.parametrize("beside", ["x", "ab" * 16, ",".join(["ab" * 16] * 9)])
def test_runs_of_an_address_that_are_none_are_left_out(desk, beside):
    assert "Nothing trained on this task yet" in said(visit("finetune", beside=beside))


def test_another_table_than_that_of_the_run_on_screen_is_said_and_brings_its_own_sentence(desk, monkeypatch):
    first = trained(desk, "ann", task="own", files=own_table("reads"))
    files = own_table("reads")
    monkeypatch.setattr(training_page.finetune_table, "upload", lambda: files)
    at = visit("finetune", task="Your own table", tune=first)
    (sentence,) = [field for field in at.text_input if field.label == "Try a sentence"]
    assert sentence.value == "Emma reads badly."
    assert "another table" not in said(at)
    files = own_table("sings")
    assert "Press Train to learn from yours" in said(at.run())
    waiting = desk.start("ann", FinetuneSpec("own"), files)
    at.query_params["tune"] = waiting
    assert "Yours takes its place" in said(at.run())
    at.query_params["tune"] = trained(desk, "ann", task="own", files=files)
    assert "another table" not in said(at.run())
    (sentence,) = [field for field in at.text_input if field.label == "Try a sentence"]
    assert sentence.value == "Emma sings badly."


def test_by_history_the_address_says_which_run_also_that_there_is_none(desk, monkeypatch):
    run = desk.start("ann", PretrainSpec(seed=5))
    desk.watch("ann", run).set_status(Status("stopped"))
    at = visit("pretrain", run=run)
    assert "seed 5. Stopped" in said(at)
    monkeypatch.setattr(training.going, "is_by_history", lambda: True)
    del at.query_params["run"]
    at.query_params["over"] = run
    assert "Not begun" in said(at.run())
    monkeypatch.undo()

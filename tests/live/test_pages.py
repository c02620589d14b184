"""Both pages draw for anything that a link or a visitor brings, before any trainer is asked."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from bert_core.training.live import tables
from bert_core.training.live.folder import ENDED, RunFolder, Status
from bert_core.training.live.specs import FinetuneSpec, PretrainSpec, to_json
from bert_core.training.live.tables import Labelled, dataset
from tests.payloads import PATIENCE, is_ready, said, visit
from ui import training
from ui.views import finetune as finetune_page
from ui.views import pretrain as film_page
from ui.views import pretrain_curves, pretrain_runs

ODD = ["", "[MASK]", "[MASK] [MASK] [MASK] [MASK]", "<script>alert(1)</script>", "漢字 😀 שלום", "a\u0007b", "x" * 160]


@pytest.fixture(scope="module")
def pretrain() -> AppTest:
    return visit("pretrain")


@pytest.mark.parametrize("sentence", ODD)
def test_pre_train_draws_any_sentence(pretrain, sentence):
    pretrain.text_input(key="film").set_value(sentence).run()
    assert not pretrain.exception


def test_an_experiment_changes_the_run_and_asks_first(pretrain):
    pretrain.segmented_control(key="experiment").set_value("One way").run()
    assert not pretrain.exception
    assert [radio.key for radio in pretrain.radio] == ["ask_One way"]
    pretrain.segmented_control(key="experiment").set_value("As in the paper").run()
    assert not pretrain.radio


def test_a_sentence_that_is_cut_says_so_and_counts_its_gaps(pretrain):
    pretrain.text_input(key="film").set_value("x " + "qwertz " * 12 + "[MASK] [MASK]").run()
    assert "Cut at 64 tokens" in said(pretrain)
    assert "2 × [MASK] among them" in said(pretrain)
    pretrain.text_input(key="film").set_value("Anna the [MASK].").run()
    assert "Cut at" not in said(pretrain)


def test_a_sentence_in_no_language_of_the_text_says_what_to_type(pretrain):
    for sentence, is_said in (("漢字 [MASK]", True), ("Anna 漢 the [MASK].", False), ("", False), ("[MASK]", False)):
        pretrain.text_input(key="film").set_value(sentence).run()
        assert ("Most of this sentence is [UNK]" in said(pretrain)) == is_said


def test_the_film_of_an_own_text_begins_with_a_sentence_out_of_it(monkeypatch, tmp_path):
    desk = OneRun(tmp_path)
    monkeypatch.setattr(training, "desk", lambda: desk)
    assert visit("pretrain", run=desk.id).text_input(key="film").label.startswith("A sentence about the small world")
    desk.folder.write("spec.json", to_json(PretrainSpec(text="own")).encode())
    desk.folder.write("text.txt", "Коротко.\nРыжая лиса бежит через тёмный лес.\n\n".encode() * 20)
    (sentence,) = [field for field in visit("pretrain", run=desk.id).text_input if "[MASK]" in field.label]
    assert sentence.label == "A sentence like those of the run's text; [MASK] is a gap"
    assert sentence.value == "Рыжая лиса бежит [MASK] тёмный лес."


def test_own_text_before_play_says_that_the_shipped_one_is_shown(pretrain):
    pretrain.text_area(key="own_text").set_value("The cat sat down. The dog ran off. " * 20).run()
    assert "show the shipped text" in said(pretrain)
    pretrain.text_area(key="own_text").set_value("").run()
    assert "show the shipped text" not in said(pretrain)


@pytest.mark.parametrize(("edit", "learned"), [("Too short.", "shipped"), ("The pig ran. " * 30, "own")])
def test_play_in_the_moment_of_an_edit_takes_the_text_as_it_was_checked_last(pretrain, monkeypatch, edit, learned):
    begun = []
    monkeypatch.setattr(training, "begin", lambda _key, spec, files, play: begun.append((spec.text, files)))
    pretrain.text_area(key="own_text").set_value("The cat sat down. The dog ran off. " * 20).run()
    at = pretrain.session_state
    at["_given_text"] = None if learned == "shipped" else "an edit that was checked, and the page not drawn to its end"
    pretrain.text_area(key="own_text").set_value(edit)
    pretrain.button(key="play").click().run()
    assert not pretrain.exception
    assert [how for how, _ in begun] == [learned]
    assert bool(begun[0][1]) == (learned == "own")
    pretrain.text_area(key="own_text").set_value("").run()


def test_a_page_looks_again_until_the_run_has_ended_also_while_it_is_paused():
    """Who watches from another tab or another desk sees it go on."""
    def pace(state: str, own: bool = True) -> float | None:
        return training.pace(training.RunView("", None, PretrainSpec(), Status(state), own))

    assert pace("waiting") == pace("running") == training.TICK
    assert training.TICK < pace("running", own=False) < pace("paused") == pace("paused", own=False) < 10
    assert [training.pace(None), *map(pace, ENDED)] == [None] * 4


class OneRun:
    """A desk with one run that waits, of whoever asks, until it is left."""

    id, left = "ab" * 16, False

    def __init__(self, path):
        self.folder = RunFolder(path)
        self.folder.write("spec.json", to_json(PretrainSpec()).encode())
        self.folder.set_status(Status("waiting", place=2))

    def watch(self, _visitor, run_id, may_steer=True):
        return self.folder if run_id == self.id else None

    def status(self, _run_id):
        return self.folder.status()

    def unfinished(self, _owner, _kind):
        return None if self.left else self.id

    def leave(self, _owner, _kind):
        self.left = True

    def make_ready(self):
        """It has no trainer."""

    def command(self, *_about):
        return True

    owns = command


def test_an_address_that_was_on_its_way_while_a_run_was_reset_brings_it_not_back(monkeypatch, tmp_path):
    desk = OneRun(tmp_path)
    monkeypatch.setattr(training, "desk", lambda: desk)
    at = visit("pretrain")
    assert 'data-state="waiting"' in said(at)
    at.button(key="reset").click().run()
    at.query_params["run"] = desk.id  # of a look at the run that began before the click
    assert 'data-state="none"' in said(at.run())
    assert "run" not in at.query_params


def test_after_reset_the_next_film_is_followed_from_its_start(monkeypatch, tmp_path):
    desk = OneRun(tmp_path)
    monkeypatch.setattr(training, "desk", lambda: desk)
    at = visit("pretrain", run=desk.id, frame=0)  # the checkpoint that was looked at
    at.button(key="reset").click().run()
    assert 'data-state="none"' in said(at)
    assert "frame" not in at.query_params


@pytest.mark.parametrize(("size", "longest"), [("2 layers × 64", 6000), ("4 layers × 128", 3000),
                                               ("2 layers × 256", 3000)])
def test_a_size_is_offered_no_length_that_the_trainer_would_stop(size, longest):
    at = visit("pretrain", size=size)
    assert at.selectbox(key="length").options[-1] == f"{longest:,} steps"
    assert ("would not end within its 240 seconds" in said(at)) == (longest < 6000)


def test_an_upload_says_the_bound_that_its_table_has():
    at = visit("finetune", task="Your own table")
    (upload,) = at.get("file_uploader")
    assert upload.proto.max_upload_size_mb * 2**20 == tables.MAX_BYTES


@pytest.mark.parametrize(("header", "is_said"), [("text,label", False), ("the sun number 99,day", True)])
def test_a_table_without_a_header_says_what_became_of_its_first_line(monkeypatch, header, is_said):
    rows = "".join(f"the sun number {n},day\nthe moon number {n},night\n" for n in range(12))
    table = tables.read_table(f"{header}\n{rows}".encode())
    ask = finetune_page.finetune_table
    monkeypatch.setattr(ask, "upload", lambda: ask.chosen_files(table, 1))
    assert ("The first line was read as the header" in said(visit("finetune", task="Your own table"))) == is_said


def test_the_next_table_is_read_by_its_own_columns_although_they_have_the_same_names(monkeypatch):
    """What the boxes said of the table before is no choice for this one."""
    kinds = [("a fine long sentence", "good"), ("word", "a label longer than its text"), ("a sad long sentence", "bad")]
    files = ["text,label\n" + "".join(f"{text} {n},{label} {n % 2}\n" for n in range(24)) for text, label in kinds]
    ask, given = finetune_page.finetune_table, []
    monkeypatch.setattr(ask, "upload", lambda: ask.chosen_files(tables.read_table(given[-1]), len(given)))
    given.append(files[0].encode())
    at, shown = visit("finetune", task="Your own table"), []
    for file in files:
        given.append(file.encode())
        shown.append([box.value for box in at.run().selectbox if box.label.startswith("Column of")])
    assert shown == [["text", "label"], ["label", "text"], ["text", "label"]]


def test_above_the_film_stands_what_the_last_held_out_measure_said(monkeypatch, tmp_path):
    desk = OneRun(tmp_path)
    monkeypatch.setattr(training, "desk", lambda: desk)
    assert "guessed right:" not in said(visit("pretrain", run=desk.id))
    curves = {name: np.ones(2, dtype=np.float32) for name in pretrain_curves.EMPTY}
    desk.folder.set_arrays("curves", curves | {"held_accuracy": np.array([0.02, 0.337], dtype=np.float32)})
    desk.folder.set_status(Status("running", 20, 3000))
    assert "Step 20 of 3,000. Held-out words guessed right: 34 %." in said(visit("pretrain", run=desk.id))


def test_a_look_at_a_run_waits_behind_whoever_has_done_something(monkeypatch, tmp_path):
    desk, turns = OneRun(tmp_path), []
    monkeypatch.setattr(training, "desk", lambda: desk)
    desk.folder.set_status(Status("running", 20, 3000))
    taken = training.TURNS.one
    monkeypatch.setattr(training.TURNS, "one", lambda **how: turns.append(how) or taken(**how))
    assert "Step 20 of 3,000" in said(visit("pretrain", run=desk.id))
    assert turns[-1] == {"follows": True, "patience": training.SLOW_TICK}


def test_an_own_text_that_is_refused_is_said_beside_its_field_and_on_the_page():
    """A phone shows no more of the popover than the field, and nothing of it when it is closed."""
    at = visit("pretrain")
    at.text_area(key="own_text").set_value("too short").run()
    assert said(at).count("The shipped text is used: ") == 2
    at.text_area(key="own_text").set_value("").run()
    assert "The shipped text is used" not in said(at)


def test_a_model_of_another_visit_is_said_to_be_one():
    at = visit("cls", classifier="mine:topic-full-911cbc10-e4")
    bar = is_ready(at)
    assert bar["lines"] == ["mine:topic-full-911cbc10-e4 is kept by another visit or tab; Fine-tune keeps it for this "
                            "one too, while its run is there."]


@pytest.mark.parametrize(("status", "said_so"), [
    (Status("stopped"), "Stopped before it began."), (Status("paused"), "Paused before it began."),
    (Status("stopped", 0, 76), "Stopped before it began."), (Status("paused", 1, 76), "Paused. Step 1 of 76."),
    (Status("stopped", message="nobody watched"), "Stopped before it began: nobody watched."),
    (Status("failed", 0, 68, message="no room"), "Failed before it began: no room."),
    (Status("stopped", 3, 76, message="enough"), "Stopped: enough. Step 3 of 76."),
])
def test_a_run_that_never_began_counts_no_steps(status, said_so):
    assert training.status_text(status) == said_so


def test_a_run_that_the_trainer_has_not_seen_stands_in_no_queue():
    assert training.status_text(Status("waiting")) == "Starting …"
    assert training.status_text(Status("waiting", place=2)) == "Waiting: place 2 in the queue for the trainer."


def test_what_was_trained_on_another_task_is_not_said_of_the_chosen_one(monkeypatch):
    run = training.RunView("", None, FinetuneSpec("topic", "frozen"), Status("done", steps=760, seconds=8.0), own=True)
    monkeypatch.setattr(training, "current", lambda *_: run)
    monkeypatch.setattr(finetune_page.runs, "runs_of", lambda task, now: [now] if now else [])
    monkeypatch.setattr(finetune_page, "pictures", lambda *_: None)
    monkeypatch.setattr(finetune_page, "status_line", lambda _spec: "")
    assert "Topic, head only, seed 0. Done: 760 steps in 8 s." in said(visit("finetune"))
    assert ("Nothing trained on this task yet: press Train. Before: Topic, head only, seed 0. Done: 760 steps in 8 s."
            in said(visit("finetune", task="Sentiment")))


def test_a_frame_that_goes_while_the_film_is_made_is_left_out(monkeypatch, tmp_path):
    folder = RunFolder(tmp_path)
    for step in (0, 5, 9):
        folder.set_frame(step, {"weight": torch.zeros(2)})
    run = training.RunView("", folder, PretrainSpec(), Status("done"), own=True)

    def load(folder, step):
        folder.thin()  # the desk makes room meanwhile
        return folder.frame(step)

    monkeypatch.setattr(film_page.filming, "run_frame", load)
    monkeypatch.setattr(film_page.filming, "shoot", lambda step, *_: step)
    assert film_page.shots_of(run, "a sentence") == [0, 9]


def test_the_chart_says_how_many_lines_it_rests_on():
    assert pretrain_curves.what_is_scored(242, 0) == "Different lines scored: 242; none of them is in training."
    assert "4; training has 3 of them too" in pretrain_curves.what_is_scored(4, 3)


def test_runs_are_called_by_experiment_seed_and_what_departs():
    found = {entry["title"]: pretrain_runs.name_of(PretrainSpec(seed=3, **entry["change"]))
             for entry in pretrain_runs.experiments().values()}
    assert found == {title: f"{title}, seed 3" for title in found}
    assert pretrain_runs.name_of(PretrainSpec(layers=3, text="own", steps=300)) == (
        "As in the paper, 3 × 128, 300 steps, own text, seed 0")
    assert pretrain_runs.name_of(PretrainSpec(steps=6000)) == "As in the paper, 6,000 steps, seed 0"
    assert "causal" in pretrain_runs.status_line(PretrainSpec(causal=True))


@pytest.fixture
def drawn(monkeypatch, tmp_path):
    """Draw the accuracy of one finished run on a test set of so many 'no' and 'yes' -> figure, table and words."""
    def draw(no: int, yes: int) -> SimpleNamespace:
        found = SimpleNamespace(words="")
        folder = RunFolder(tmp_path)
        folder.set_arrays("curves", {"test_accuracy": np.array([0.5, 0.75])})
        folder.set_arrays("baselines", {key: np.tile([0.9, 0.1], (no + yes, 1)) for key in ("words", "lstm")})
        rows = [Labelled(f"text {n}", "no" if n < no else "yes") for n in range(no + yes)]
        monkeypatch.setattr(finetune_page.runs, "data_of", lambda _run: dataset("own", rows, rows))
        monkeypatch.setattr(finetune_page.components, "_draw", lambda figure, *_: setattr(found, "figure", figure))
        monkeypatch.setattr(finetune_page.tables, "show_growing", lambda table: setattr(found, "rows", table.rows))
        monkeypatch.setattr(finetune_page.st, "html", lambda words: setattr(found, "words", found.words + words))
        run = training.RunView("", folder, FinetuneSpec("own"), Status("done"), own=True)
        finetune_page.accuracy([run], run)
        return found

    return draw


@pytest.mark.parametrize(("no", "yes", "name", "value"), [
    (10, 10, "chance", 0.5), (39, 4, "commonest class", 39 / 43), (1, 3, "commonest class", 0.75),
])
def test_the_lowest_level_is_the_commonest_class_where_classes_are_unequal(drawn, no, yes, name, value):
    found = drawn(no, yes)
    assert value in [shape.y0 for shape in found.figure.layout.shapes]
    words = " ".join(level.text for level in found.figure.layout.annotations)
    assert f"{name} {100 * value:.0f} %" in words
    assert (name == "chance") == ("chance" in words)
    assert found.rows[-1] == (name, "", value)
    assert f"The test set has {no + yes} sentences: " in found.words


@pytest.mark.parametrize(("sentences", "each", "half"), [(2, "50.0", 69), (3, "33.3", 57), (208, "0.5", 7)])
def test_what_chance_can_do_is_said_for_the_test_set_that_there_is(sentences, each, half):
    said = finetune_page.within_chance(sentences)
    assert f"has {sentences} sentences: each counts {each} points" in said
    assert f"by up to {half} points either way" in said


def epochs_page() -> None:
    """A page with nothing but the choice of an epoch, of a run with as many frames as the session says."""
    from types import SimpleNamespace

    import streamlit as st

    from ui.views import finetune

    frames = tuple(range(st.session_state.get("frames", 3)))
    st.text(str(finetune.epoch_of(SimpleNamespace(id="r", folder=SimpleNamespace(frames=lambda: frames)))))


def test_a_chosen_epoch_stays_while_more_come_and_the_latest_is_followed():
    app = AppTest.from_function(epochs_page, default_timeout=PATIENCE).run()
    shown = []
    for choice in ("1", None, "3", None):
        if choice:
            app.select_slider[0].set_value(choice).run()
        else:
            app.session_state["frames"] = len(app.select_slider[0].options) + 1
            app.run()
        shown.append(app.text[0].value)
    assert shown == ["1", "1", "3", "4"]


@pytest.mark.parametrize("parameters", [
    {"run": "x"}, {"run": "0" * 32}, {"over": "1" * 32}, {"layer": "0", "head": "77", "frame": "9"}, {"size": "9"},
])
def test_pre_train_survives_any_link(parameters):
    assert not visit("pretrain", **parameters).exception


@pytest.mark.parametrize("parameters", [{}, {"task": "Who does it?", "way": "Head only"}, {"task": "no"}, {"tune": "z"},
                                        {"task": "Your own table"}])
def test_fine_tune_survives_any_link(parameters):
    app = visit("finetune", **parameters)
    assert not app.exception
    train, has_no_table = app.button(key="train"), parameters.get("task") == "Your own table"
    assert train.disabled == has_no_table
    assert ("task yet: choose a table." in said(app)) == has_no_table
    assert ("task yet: press Train." in said(app)) != has_no_table


@pytest.mark.parametrize(("seconds", "said_so"), [
    (None, "Step 5 of 40."), (0.2, "Step 5 of 40, about 1 s left."), (89.4, "Step 5 of 40, about 89 s left."),
    (90.0, "Step 5 of 40, about 2 min left."), (444.0, "Step 5 of 40, about 7 min left."),
])
def test_what_is_left_is_said_in_the_unit_that_one_thinks_in(seconds, said_so):
    assert training.status_text(Status("running", 5, 40, left=seconds)) == said_so


def test_the_answers_of_the_experiments_are_not_all_in_one_place():
    places = [entry["expected"] for entry in pretrain_runs.experiments().values() if "expected" in entry]
    assert max(map(places.count, range(3))) <= len(places) // 2

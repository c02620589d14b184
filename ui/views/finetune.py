"""The Fine-tune page: a task, a way to learn it, its accuracy beside two baselines, and a sentence to try."""

from __future__ import annotations

import html

import numpy as np
import streamlit as st

from bert_core.counting import counted
from bert_core.figures import finetune as figures
from bert_core.figures import theme
from bert_core.measures import classification
from bert_core.training.live import classifier
from bert_core.training.live.specs import FinetuneSpec
from bert_core.training.live.tables import MAX_TEXT, Dataset, shipped_task, task_words
from ui import components, controls, notices, rooms, state, tables, training
from ui.training import RunView
from ui.views import finetune_more, finetune_table, task_models
from ui.views import finetune_runs as runs

RUN = "tune"
WAYS = {"Everything": "full", "Last two layers": "last", "Head only": "frozen", "From scratch": "scratch"}
OWN = "Your own table"
#: Sentences of each class that are shown before the first run.
SHOWN_SENTENCES = 3


def settings() -> tuple[FinetuneSpec, dict[str, str]]:
    """The run that the controls describe, and the files it needs."""
    words = task_words()
    tasks = {entry["title"]: name for name, entry in words.items()} | {OWN: "own"}
    task = tasks[controls.choice("Task", list(tasks), "task")]
    files = finetune_table.upload() if task == "own" else {}
    if task != "own":
        st.html(f'<p class="bw-result"><strong>{html.escape(words[task]["question"])}</strong> '
                f'{html.escape(words[task]["note"])}</p>')
    with controls.row():
        way = WAYS[controls.choice("What learns", list(WAYS), "way")]
        seed = int(controls.number("Seed", 0, 9999, "seed", 0, width=160))
    return FinetuneSpec(task, way, seed=seed), files


def status_line(spec: FinetuneSpec) -> str:
    """The model on screen, for the status bar: the shown run's, else the one that the controls describe."""
    _, shown = shown_runs(training.current(RUN, FinetuneSpec.kind), spec)
    spec = shown.spec if shown else spec
    from_scratch = spec.way == "scratch"
    start, weights = (f"{spec.base}'s architecture", "random weights and ") if from_scratch else (spec.base, "")
    return f"{start} · CPU, one thread, float32 · with {weights}a new linear layer over [CLS]"


def page(spec: FinetuneSpec, files: dict[str, str]) -> None:
    """Everything that moves while a run goes on."""
    pace = training.pace(at_work(training.current(RUN, FinetuneSpec.kind), spec))

    def draw() -> None:
        now = training.current(RUN, FinetuneSpec.kind)
        buttons(now, spec, files)
        say_other_table(now, spec, files)
        pictures(now, spec)
        if training.pace(at_work(now, spec)) != pace:
            st.rerun()

    training.ticking(draw, pace)


def at_work(run: RunView | None, spec: FinetuneSpec) -> RunView | None:
    """The run that goes on: the present one, else the one in the picture, which another tab may have begun."""
    both = (run, shown_runs(run, spec)[1])
    return next((one for one in both if one is not None and not one.status.ended), None)


def buttons(run: RunView | None, spec: FinetuneSpec, files: dict[str, str]) -> None:
    """Train or cancel, and where the run is: the one that goes on, else the one in the picture, else the last one."""
    going = at_work(run, spec)
    drawn = going or shown_runs(run, spec)[1]
    told, follows = drawn or run, rooms.following() is not None
    first, line = st.columns([1, 4], vertical_alignment="center")
    if going:
        first.button("Cancel", key="cancel", icon=":material/stop:", width="stretch", disabled=not going.own,
                     on_click=training.steer, args=(going, "stop"))
    else:
        first.button("Train", key="train", icon=":material/play_arrow:", type="primary", width="stretch",
                     disabled=spec.task == "own" and not files, on_click=begin, args=(spec, files),
                     help=finetune_table.TEACHERS if follows and spec.task == "own" else None)
    with line:
        next_step = "choose a table" if spec.task == "own" and not files else "press Train"
        text = "" if drawn else "Nothing trained on this task yet" + (". " if follows else f": {next_step}. ")
        text += "Before: " if told and not drawn else ""
        text += f"{run_name(told.spec)}. {training.status_text(told.status)}" if told else ""
        mark = told.status.state if told else "none"
        st.html(f'<p class="bw-result" data-state="{mark}">{html.escape(text)}</p>')
        if going and going.status.steps:
            st.progress(min(1.0, going.status.step / going.status.steps))


def say_other_table(run: RunView | None, spec: FinetuneSpec, files: dict[str, str]) -> None:
    """Where the pictures are of another table than the one that the visitor gave."""
    _, shown = shown_runs(run, spec)
    if not files or shown is None or all(shown.folder.read_text(name) == text for name, text in files.items()):
        return
    going = run is not None and not run.status.ended and run.id != shown.id
    notices.note("The run on screen learned from another table. " + (
        "Yours takes its place with its first epoch." if going else "Press Train to learn from yours."))


def run_name(spec: FinetuneSpec) -> str:
    """What tells a run from the others of a visitor, in the words of its controls."""
    task = OWN if spec.task == "own" else task_words()[spec.task]["title"]
    return f"{task}, {next(name for name, way in WAYS.items() if way == spec.way).lower()}, seed {spec.seed}"


def begin(spec: FinetuneSpec, files: dict[str, str]) -> None:
    """Start a run; the ones before stay in the picture."""
    if training.begin(RUN, spec, files):
        state.set_param("epoch", None)
        state.set_param(runs.BESIDE, None)  # from here on they are compared with this visitor's own


# --- pictures ----------------------------------------------------------------


def shown_runs(run: RunView | None, spec: FinetuneSpec) -> tuple[list[RunView], RunView | None]:
    """The runs on the chosen task, and the one that is looked at: the present one once it has begun, or the latest."""
    together = runs.runs_of(spec.task, run if run is not None and run.spec.task == spec.task else None)
    return together, together[-1] if together else None


def pictures(run: RunView | None, spec: FinetuneSpec) -> None:
    """The accuracy of each way, a sentence to try, and one closer look."""
    together, shown = shown_runs(run, spec)
    runs.keep_beside(together, run)
    if not any(len(one.folder.arrays("curves")) for one in together):
        if spec.task != "own":
            what_it_reads(spec.task)
        notices.note("The chart comes with the first run: chance, a bag of words, an LSTM, and the encoder.")
        return
    left, right = st.columns([1.5, 1], gap="large")
    with left:
        accuracy(together, shown)
    with right:
        epoch = try_out(shown)
    finetune_more.look_closer(shown, epoch)


def what_it_reads(task: str) -> None:
    """Before any run: some of the sentences it will learn from, class by class."""
    data = shipped_task(task)
    cards = []
    for label in data.labels:
        some = [row.text for row in data.train if row.label == label][:SHOWN_SENTENCES]
        rows = "".join(f"<p>{html.escape(text)}</p>" for text in some)
        cards.append(f'<section class="bw-card" translate="no"><h3>{html.escape(label)}</h3>{rows}</section>')
    st.html(f'<h2 class="bw-sub">What it learns from</h2><div class="bw-cards">{"".join(cards)}</div>'
            f'<p class="bw-small">{len(data.train)} sentences to learn from, {len(data.test)} to be tested on; '
            f"the first {SHOWN_SENTENCES} of each class.</p>")


def accuracy(together: list[RunView], newest: RunView) -> None:
    """Test accuracy by epoch over the baselines of the newest run, and over what needs no reading."""
    names = {way: name for name, way in WAYS.items()}
    curves, looks = [], []
    for one in together:
        found = one.folder.arrays("curves").get("test_accuracy")
        if found is not None and len(found):
            curves.append(figures.WayCurve(one.spec.way, names[one.spec.way], np.arange(len(found)), found))
            looks.append((str(one.folder.path), len(found)))
    data = runs.data_of(newest)
    baselines = {key: classification.accuracy(found, data.indices("test"))
                 for key, found in newest.folder.arrays("baselines").items()}
    rows = [(c.name, int(x), float(y)) for c in curves for x, y in zip(c.epochs, c.accuracy)]
    rows += [(figures.BASELINES[key], "", float(value)) for key, value in baselines.items()]
    name, value = without_reading(data)
    rows.append((name, "", value))
    longest = max(runs.epochs_of(one) for one in together)
    components.shared_chart(
        lambda: figures.accuracy_figure(curves, baselines, (name, value), longest),
        (*looks, *baselines.items(), name, value, longest), "tune_accuracy", "Right on the test set by epoch")
    st.html(f'<p class="bw-small">{within_chance(len(data.test))}</p>')
    tables.show_growing(tables.Numbers("Right on the test set", ("way", "epoch", "right on the test set"), rows))


def within_chance(sentences: int) -> str:
    """How far a share of so many test sentences may be off: 1.96 standard errors of a share of one half, the widest."""
    half = 100 * 1.96 * (0.25 / sentences) ** 0.5
    return (f"The test set has {counted(sentences, 'sentence')}: each counts {100 / sentences:.1f} points, and chance "
            f"alone can move a score by up to {half:.0f} points either way (95 %, widest at a score of one half).")


def without_reading(data: Dataset) -> tuple[str, float]:
    """What the same answer to every test sentence is worth, 0 to 1, and its name: chance only where classes are equal.
    """
    counts = np.bincount(data.indices("test"), minlength=len(data.labels))
    return "chance" if counts.min() == counts.max() else "commonest class", float(counts.max() / counts.sum())


def epoch_of(run: RunView) -> int:
    """The epoch that the visitor looks at; the latest unless they or their link chose another."""
    frames = [str(n) for n in run.folder.frames()]
    if len(frames) < 2:
        return int(frames[0]) if frames else 0
    key, latest = f"epoch_{run.id}_{len(frames)}", frames[-1]
    st.session_state[key] = state.param("epoch", lambda raw: frames[frames.index(raw)], latest)
    return int(st.select_slider("After epoch", frames, key=key, on_change=keep_epoch, args=(key, latest)))


def keep_epoch(key: str, latest: str) -> None:
    """Stay at the chosen epoch while more of them come, in the address; whoever chose the latest follows it."""
    chosen = st.session_state[key]
    state.set_param("epoch", None if chosen == latest else chosen)


# --- a sentence of one's own -------------------------------------------------


def try_out(run: RunView) -> int:
    """One sentence at any epoch, which is returned: the closer looks show it too."""
    text = controls.text("Try a sentence", runs.sentence_key(run), runs.example(run), MAX_TEXT)
    epoch = epoch_of(run)
    if not run.folder.frames():
        return epoch
    trace = classifier.try_sentence(runs.model_of(run, epoch), text)
    found = classifier.probabilities(trace)
    labels = runs.data_of(run).labels
    best = int(found.argmax())
    rows = "".join(_bar(label, float(p), n == best) for n, (label, p) in enumerate(zip(labels, found)))
    st.html(f'<div class="bw-classes" role="list" aria-label="Probabilities">{rows}</div>')
    if epoch == 0:
        notices.note("Epoch 0 has an untrained head: these are the numbers it starts from, not an answer.")
    return epoch


def _bar(label: str, probability: float, best: bool) -> str:
    weight = "600" if best else "400"
    return (f'<div role="listitem" style="display:grid;grid-template-columns:7rem 1fr 4rem;gap:.6rem;'
            f'align-items:center;padding:.2rem 0;font-size:1.1rem;font-weight:{weight}">'
            f'<span>{html.escape(label)}</span><span style="height:1.05rem;border-radius:4px;overflow:hidden;'
            f'background:var(--study-soft)"><span style="display:block;height:100%;'
            f'width:{100 * probability:.1f}%;background:{theme.css(theme.BOTH_WAYS)}"></span></span>'
            f'<span style="text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap">'
            f"{html.escape(task_models.share(probability))}</span></div>")

"""The Pre-train page: a run's buttons, its film and its curves, alive while it learns."""

from __future__ import annotations

import contextlib
import html
import zlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import streamlit as st

from bert_core.counting import counted
from bert_core.figures.attention import quantise16
from bert_core.training.live import film as filming
from bert_core.training.live.folder import NoFrame, RunFolder
from bert_core.training.live.specs import MAX_WORK_SECONDS, PretrainSpec
from bert_core.training.live.text import check_text, decode_text, example, shipped_text
from ui import chips, components, controls, notices, rooms, state, training, uploads
from ui.training import RunView
from ui.views import pretrain_curves, pretrain_runs

SENTENCE = "Anna the [MASK] bakes the bread in the [MASK]."
#: Layers, width, and the most steps that are offered: a step takes 10, 19, 29, 40 and 53 ms of a usual processor, and
#: with a fifth to spare for a slower one they end within the trainer's time (`specs.MAX_WORK_SECONDS`).
SIZES = {"2 layers × 64": (2, 64, 6000), "2 layers × 128": (2, 128, 6000), "3 layers × 128": (3, 128, 6000),
         "4 layers × 128": (4, 128, 3000), "2 layers × 256": (2, 256, 3000)}
LENGTHS = {"300 steps": 300, "1,000 steps": 1000, "3,000 steps": 3000, "6,000 steps": 6000}
#: Megabytes of a text's file: 300,000 characters (`text.MAX_CHARACTERS`) have up to four bytes each.
MAX_FILE_MB = 2
#: Characters of the sentence in the film: more would not fit the map.
MAX_SENTENCE = 160
RUN, OVER = "run", "over"
GIVEN = "_given_text"  # the visitor's own text as it was checked last, None where there is none
LEARNED = "_learned_text"  # what this visitor's run reads, where that is a text of their own


def settings() -> PretrainSpec:
    """The run that the controls describe."""
    titles = {entry["title"]: entry for entry in pretrain_runs.experiments().values()}
    chosen = titles[controls.choice("Experiment", list(titles), "experiment")]
    with controls.row():
        layers, width, most = SIZES[controls.choice("Size", list(SIZES), "size", "2 layers × 128", as_list=True)]
        lengths = [name for name, steps in LENGTHS.items() if steps <= most]
        steps = LENGTHS[controls.choice("Length", lengths, "length", "3,000 steps", as_list=True)]
        seed = int(controls.number("Seed", 0, 9999, "seed", 0))
        own, refused = own_text()
    st.session_state[GIVEN] = own
    if refused:
        notices.problem(refused)
    if len(lengths) < len(LENGTHS):
        notices.note(f"With this size a run has at most {lengths[-1]}: more would not end within its "
                     f"{MAX_WORK_SECONDS:.0f} seconds of processor time.")
    spec = replace(PretrainSpec(), layers=layers, width=width, steps=steps, seed=seed, **chosen["change"])
    ask_first(chosen)
    return replace(spec, text="own") if own else spec


def ask_first(experiment: dict) -> None:
    """The expected outcome of an experiment, as a question before it is run."""
    if "question" not in experiment:
        return
    with st.container(border=True):
        answer = st.radio(experiment["question"], experiment["options"], index=None, key=f"ask_{experiment['title']}")
        if answer is not None:
            right = answer == experiment["options"][experiment["expected"]]
            notices.note(f"{'Expected.' if right else 'Not what is expected.'} {experiment['why']}")


def own_text() -> tuple[str | None, str]:
    """A visitor's own text, checked, or None for the shipped one; and why theirs can't be read, or ''."""
    with st.popover("Own text"):
        pasted = st.text_area("Text: sentences, a blank line between documents", key="own_text", height=140,
                              placeholder="Paste at least some hundred sentences. They stay on this server while "
                                          "you are here, and are not in the address.")
        beside = st.container()  # a phone shows no more of this than the field
        no_file = uploads.why_not()
        file = st.file_uploader("or a .txt file in UTF-8", type=["txt"], key="own_file", disabled=bool(no_file),
                                max_upload_size=MAX_FILE_MB)
        if no_file:
            notices.problem(no_file)
        if file is None and not pasted.strip():
            return None, ""
        try:
            return check_text(pasted if file is None else decode_text(file.getvalue())), ""
        except ValueError as problem:
            refused = f"The shipped text is used: {problem}."
            with beside:
                notices.problem(refused)
            return None, refused


def page(spec: PretrainSpec) -> None:
    """Everything that moves while a run goes on."""
    run = training.current(RUN, PretrainSpec.kind)
    pace = training.pace(run)

    def draw() -> None:
        now = training.current(RUN, PretrainSpec.kind)
        buttons(now, spec)
        say_what_counts(now, spec)
        show_film(now, now.spec if now else spec, film_sentence(now))
        pretrain_curves.draw(now, now.spec if now else spec, underneath(now))
        if training.pace(now) != pace or (now and now.id) != (run and run.id):
            st.rerun()

    training.ticking(draw, pace)


def status_line(spec: PretrainSpec) -> str:
    """What the status bar says: the run on screen, or the one that the controls describe."""
    run = training.current(RUN, PretrainSpec.kind)
    return pretrain_runs.status_line(run.spec if run else spec)


def say_what_counts(run: RunView | None, spec: PretrainSpec) -> None:
    """Where the controls or the visitor's text are not what is on screen; of another's run only the controls count."""
    if run is not None and not run.own:
        spec = replace(spec, text=run.spec.text)
    if run is not None and run.spec != spec:
        notices.note(f"On screen is {pretrain_runs.name_of(run.spec)}. What the controls say now, "
                     f"{pretrain_runs.name_of(spec)}, takes effect after Reset.")
    elif run is not None and run.own and another_text(spec):
        notices.note("The run on screen learned from another text of yours. Press Reset to learn from the new one.")
    if spec.text == "own" and run is None:
        notices.note("Until Play, film and batch show the shipped text; after it the run learns from yours.")


def another_text(spec: PretrainSpec) -> bool:
    """Whether the visitor's text is another one than their run was begun with, as far as this session knows."""
    return spec.text == "own" and st.session_state.get(LEARNED) not in (None, st.session_state[GIVEN])


def underneath(run: RunView | None) -> RunView | None:
    """The run that is laid under the present one."""
    run_id = training.chosen(OVER)
    if not run_id or (run is not None and run.id == run_id):
        return None
    return training.look(run_id, PretrainSpec.kind)


# --- steering ----------------------------------------------------------------


def buttons(run: RunView | None, spec: PretrainSpec) -> None:
    """Play or pause, one step, reset; and where the run is."""
    status = run.status.state if run else ""
    going, ended = status in ("waiting", "running"), run is not None and run.status.ended
    mine = run is None or run.own
    first, second, third, line = st.columns([1, 1.15, 1, 4.2], vertical_alignment="center")
    if going:
        first.button("Pause", key="pause", icon=":material/pause:", width="stretch", disabled=not mine,
                     on_click=act, args=("pause", spec))
    else:
        first.button("Play", key="play", icon=":material/play_arrow:", type="primary", width="stretch",
                     disabled=ended or not mine, on_click=act, args=("play", spec))
    second.button("One step", key="step", icon=":material/skip_next:", width="stretch",
                  disabled=going or ended or not mine, on_click=act, args=("step", spec))
    is_teachers = not mine and rooms.following() is not None
    third.button("Reset", key="reset", icon=":material/restart_alt:", width="stretch",
                 disabled=run is None or is_teachers, on_click=act, args=("reset", spec),
                 help="This is your teacher's run. “Let go” above to begin one of your own." if is_teachers else None)
    with line:
        where = training.status_text(run.status) if run else "Not begun: you see the random start."
        text = f"{pretrain_runs.name_of(run.spec if run else spec)}. {where}{pretrain_curves.right_now(run)}"
        st.html(f'<p class="bw-result" data-state="{status or "none"}">{html.escape(text)}</p>')
        st.progress(min(1.0, run.status.step / run.status.steps) if run and run.status.steps else 0.0)


def act(what: str, spec: PretrainSpec) -> None:
    """What a button does."""
    run = training.current(RUN, PretrainSpec.kind)
    if what == "reset":
        reset(run)
    elif run is None:
        given = st.session_state[GIVEN]  # it may have come or gone in the moment before the click
        spec, files = (replace(spec, text="own"), {"text.txt": given}) if given else (replace(spec, text="shipped"), {})
        if training.begin(RUN, spec, files, play=what == "play"):
            st.session_state[LEARNED] = given
    else:
        training.steer(run, what)


def reset(run: RunView | None) -> None:
    """Back to the random start; what the run left stays underneath, to compare with.

    The checkpoint that was looked at was that run's: the next one's film is followed from its start.
    """
    if run is not None:
        if run.own and not run.status.ended:
            training.steer(run, "stop")
        training.remember(OVER, run.id)
    training.forget(RUN, PretrainSpec.kind)
    state.set_param("frame", None)


# --- the film ----------------------------------------------------------------


def film_sentence(run: RunView | None) -> str:
    """The sentence that the film is of; each text of a visitor's own has its field, which begins with one out of it."""
    if run is None or run.spec.text != "own":
        return controls.text("A sentence about the small world; [MASK] is a gap", "film", SENTENCE, MAX_SENTENCE)
    key, sentence = of_own_text(str(run.folder.path), run.folder)
    return controls.text("A sentence like those of the run's text; [MASK] is a gap", key, sentence, MAX_SENTENCE)


@st.cache_resource(show_spinner=False, max_entries=40)
def of_own_text(path: str, _folder: RunFolder) -> tuple[str, str]:
    """Name in the address of the field for a run's own text, and the sentence that it begins with."""
    text = _folder.read_text("text.txt") or shipped_text()
    return f"film_{zlib.crc32(text.encode()):08x}", example(text, MAX_SENTENCE)


@st.cache_resource(show_spinner=False, max_entries=600)
def shot(path: str, step: int, sentence: str, _folder, _spec: PretrainSpec) -> filming.Shot:
    """One frame of a run under one sentence."""
    return filming.shoot(step, filming.run_frame(_folder, step), sentence, _spec)


@st.cache_resource(show_spinner=False, max_entries=40)
def start_shot(spec: PretrainSpec, sentence: str) -> filming.Shot:
    """The random start under one sentence, before anybody begins."""
    return filming.shoot(0, filming.frame_zero(spec), sentence, spec)


@st.cache_resource(show_spinner=False, max_entries=40)
def places(film: str, steps: tuple[int, ...], _shots: Sequence[filming.Shot]) -> np.ndarray:
    """(F, W, 2) of `project`, read-only: the words lie there whatever sentence is read.

    Args:
        film: of which run these frames are, or which start.
    """
    found = filming.project(_shots)
    found.flags.writeable = False
    return found


def show_film(run: RunView | None, spec: PretrainSpec, sentence: str) -> None:
    """The main picture: every checkpoint so far, to scrub and play."""
    shots, start = shots_of(run, sentence) if run else [], replace(spec, text="shipped", steps=1)
    film = str(run.folder.path) if shots else repr(start)
    shots = shots or [start_shot(start, sentence)]
    if shots[0].dropped:
        notices.note(cut_line(shots[0]))
    if is_unknown(shots[0].tokens[1:-1]):
        notices.note("Most of this sentence is [UNK]: a run knows only the words and letters of its text. Type a "
                     "sentence in the language of that text.")
    layer, head = controls_of_film(spec)
    header = {
        "steps": [s.step for s in shots], "tokens": list(shots[0].tokens), "gaps": list(shots[0].gaps),
        "guesses": [[[[g.token, round(g.probability, 5)] for g in gap] for gap in s.guesses] for s in shots],
        "words": list(shots[0].words), "groups": list(shots[0].groups), "layer": layer, "head": head,
        "cut": shots[0].gaps_cut,
    }
    frame = state.param("frame", chips.place(len(shots)), None)
    if frame is not None:
        header["frame"] = frame
    attention = quantise16(np.stack([s.attention for s in shots]))
    lie = places(film, tuple(s.step for s in shots), shots)
    data = components.pack(header, {"attention": attention, "places": lie})
    components.mount("live_film", "film", data, on_event=lambda message: keep(message, len(shots), spec))


def shots_of(run: RunView, sentence: str) -> list[filming.Shot]:
    """A run's frames under one sentence, without those that the desk lets go at this moment."""
    shots = []
    for step in run.folder.frames():
        with contextlib.suppress(NoFrame):
            shots.append(shot(str(run.folder.path), step, sentence, run.folder, run.spec))
    return shots


def is_unknown(tokens: Sequence[str]) -> bool:
    """Whether more than half of what was typed is [UNK] to the run."""
    return tokens.count("[UNK]") > len(tokens) / 2


def cut_line(one: filming.Shot) -> str:
    """That the film does not show the whole sentence."""
    lost = f", {one.gaps_cut} × [MASK] among them" if one.gaps_cut else ""
    return f"Cut at {filming.MAX_TOKENS} tokens: {counted(one.dropped, 'piece')} of the sentence did not fit{lost}."


def controls_of_film(spec: PretrainSpec) -> tuple[int, int]:
    """0-based layer and head that the map shows."""
    layer = state.param("layer", chips.place(spec.layers, 1), 0)
    return layer, state.param("head", chips.place(spec.heads, 1), 0)


def keep(message: dict, frames: int, spec: PretrainSpec) -> None:
    """Put what the visitor chose in the film into the address."""
    state.set_param("layer", str(components.number(message, "layer", spec.layers) + 1))
    state.set_param("head", str(components.number(message, "head", spec.heads) + 1))
    frame = components.number(message, "frame", frames)
    state.set_param("frame", None if message.get("following") else str(frame))

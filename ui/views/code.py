"""What the Code page needs: stages beside transformers, the walk through the lines, the script."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import streamlit as st

from bert_core import script
from bert_core.load import Loaded
from bert_core.measures import parity, walk
from ui import controls, notices, shell, state
from ui.state import Here
from ui.tables import table
from ui.views.family_html import draw, heading, small, words_of

#: Longest input that is run a second time through transformers, in tokens.
MOST_TOKENS = 128
LINE_BY_LINE, ENGINE = "line by line", "through the engine"
#: The part of the network whose lines are on screen; it follows the line, which is in the address.
_PART = "_part"


class StageRow(NamedTuple):
    """One stage of the comparison as plain data."""

    stage: str
    shape: tuple[int, ...]
    first: tuple[float, ...]
    difference: float


class Comparison(NamedTuple):
    """All stages, and what goes with them.

    Attributes:
        rows: a row a stage.
        kernels: what the kernels of the other pages change: the largest
            difference of a last hidden state.
        losses: (ours, theirs) of each term of the loss, in nats; empty without
            a masked-LM head.
        next_gap: 'no_head' or 'no_pair' if the loss lacks its next-sentence
            term, else ''.
    """

    rows: tuple[StageRow, ...]
    kernels: float
    losses: tuple[tuple[float, float], ...]
    next_gap: str


def layer_slider(here: Here) -> int:
    """The layer that is looked into, 1-based."""
    return controls.slider("Layer", 1, state.loaded(here.model).config.num_hidden_layers, "layer", 1)


# --- stages ------------------------------------------------------------------


def stages(here: Here) -> None:
    """The largest difference of each stage, and the code of one, ours and theirs."""
    causal = state.loaded(here.model).config.is_decoder
    words = _stage_words(causal)
    titles = {words[stage]["title"]: stage for stage in parity.STAGES}
    left, right = st.columns([2, 3], gap="large", vertical_alignment="bottom")
    with left:
        stage = titles[controls.choice("Stage", list(titles), "stage", as_list=True)]
    with right:
        layer = layer_slider(here)
    found = _comparison(here, layer)
    if found is not None:
        draw(_difference_table(found, words))
    chosen = words[stage]
    draw(heading(chosen["title"]), f"<p>{shell.inline(chosen['words'])}</p>")
    st.latex(chosen["equation"])
    draw(small(chosen["section"]))
    if stage == "losses" and found is not None and found.losses:
        draw(_terms_table(found, chosen))
    ours, theirs = st.columns(2, gap="medium")
    with ours:
        draw(heading("This project", 3))
        for excerpt in walk.stage_source(stage):
            draw(small(excerpt.place))
            st.code(excerpt.text, language="python", wrap_lines=True)
    with theirs:
        draw(heading("transformers", 3))
        for name in parity.counterparts(stage, causal):
            draw(small(f"{name}.forward, transformers {parity.reference_version()}"))
            st.code(parity.reference_source(name), language="python", wrap_lines=True)


def _stage_words(causal: bool) -> dict[str, dict]:
    """What is said of each stage, of a causal model where that is something else."""
    return {stage: words | (words.get("causal", {}) if causal else {})
            for stage, words in words_of("code")["stage"].items()}


def _comparison(here: Here, layer: int) -> Comparison | None:
    """The comparison, or None after a line that says why there is none."""
    loaded = state.loaded(here.model)
    if not parity.applies_to(loaded):
        notices.note(f"{here.model} is a {loaded.config.model_type}; the classes shown are BERT's, so nothing is run.")
        return None
    if len(here.encoding) > MOST_TOKENS:
        notices.note(f"Compared up to {MOST_TOKENS} tokens; this input has {len(here.encoding)}.")
        return None
    return state.or_stop(lambda: _compare(here.text, here.pair, here.model, layer - 1, loaded))


@st.cache_data(show_spinner="Running transformers on the same sentence …", max_entries=64)
def _compare(text: str, pair: str | None, model: str, index: int, _loaded: Loaded) -> Comparison:
    encoding = _loaded.tokenizer.encode(text, pair)
    plain = parity.unpacked(_loaded)  # made once for all that follows
    runs = parity.compare_stages(plain, encoding, index)
    rows = tuple(StageRow(run.stage, run.shape, run.first(), run.largest_difference) for run in runs)
    losses = tuple(pair for run in runs if run.stage == "losses"
                   for pair in zip(run.ours.tolist(), run.theirs.tolist(), strict=True))
    gap = ""
    if len(losses) == 1 and not _loaded.config.is_decoder:
        gap = "no_pair" if "nsp" in _loaded.model.heads else "no_head"
    return Comparison(rows, parity.kernel_difference(_loaded, encoding), losses, gap)


def _terms_table(found: Comparison, words: dict) -> str:
    """Each term of the loss in both programs, and why one is missing."""
    shown = [(name, f"{ours:.6f}", f"{theirs:.6f}", _apart(abs(ours - theirs)))
             for name, (ours, theirs) in zip(words["terms"], found.losses, strict=False)]
    columns = ["term, nats", "this project", "transformers", "difference"]
    lacking = small(words[found.next_gap]) if found.next_gap else ""
    return table("The loss, term by term", columns, shown, (1, 2, 3)) + lacking


def _apart(difference: float) -> str:
    return f"{difference:.1e}".replace("-", "−") if difference else "0"


def _difference_table(found: Comparison, words: dict) -> str:
    """Stages and differences; what this checkpoint lacks is said."""
    rows = found.rows
    shown = [(words[row.stage]["title"], _apart(row.difference), _shape(row.shape),
              _numbers(row.first)) for row in rows]
    there = {row.stage for row in rows}
    lacking = [words[stage]["title"] for stage in parity.STAGES if stage not in there]
    largest = max(row.difference for row in rows)
    notes = []
    if lacking:
        notes.append(f"Not in this checkpoint, so not run: {', '.join(lacking)}.")
    if found.losses and found.next_gap:
        notes.append(words["losses"][found.next_gap])
    if found.kernels:
        notes.append("The other pages compute these products with weights packed for this processor, and so sum in "
                     f"another order: no last hidden state here moves by more than {_apart(found.kernels)}.")
    apart = f"at most {_apart(largest)} apart" if largest else "equal to the last bit"
    answer = f'<p class="bw-figure-number">{apart}</p>' + small(
        "The largest difference of any number below between this project and transformers, on this sentence.")
    columns = ["stage", "largest difference", "shape", "our first numbers"]
    return answer + table("Both programs on this sentence", columns, shown, (1,)) + small(" ".join(notes))


def _numbers(values: Iterable[float]) -> str:
    """Signed, four decimals."""
    return "  ".join(_number(value, "+") for value in values)


def _number(value: float, plus: str = "") -> str:
    """Four decimals, with a minus that is one."""
    return f"{value:{plus}.4f}".replace("-", "−")


def _shape(sizes: Iterable[int]) -> str:
    """Sizes on one line, also in a narrow table."""
    return "\u00a0×\u00a0".join(map(str, sizes))


# --- the walk ----------------------------------------------------------------


def steps(here: Here) -> None:
    """One line of code at a time with the tensor it made."""
    if len(here.encoding) > MOST_TOKENS:
        notices.note(f"The walk goes up to {MOST_TOKENS} tokens; this input has {len(here.encoding)}.")
        return
    strip = st.container()
    left, right = st.columns(2, gap="large")
    with left:
        layer = layer_slider(here)
    loaded = state.ours(here.model, "its lines")
    way = state.or_stop(lambda: _walk(here.text, here.pair, here.model, layer - 1, loaded))
    with right:
        at = controls.slider("Line", 1, len(way), "line", 1, help="Arrow keys go on and back")
    with strip:
        _network(walk.parts(way), at, f"layer {layer} of {state.loaded(here.model).config.num_hidden_layers}")
    step = way[at - 1]
    draw(f'<p class="bw-figure-number">{html.escape(step.name)}: {_shape(step.shape)}</p>',
         small(f"{step.function}, {step.place}. First numbers {_numbers(step.first)}; "
               f"all between {_number(step.low)} and {_number(step.high)}."))
    st.code(step.source, language="python", wrap_lines=True)
    rows = [("→" if n == at else "", str(n), s.function, s.name, _shape(s.shape), s.place)
            for n, s in enumerate(way, 1)]
    draw(table("The whole way", ["", "line", "function", "makes", "shape", "place"], rows, (1,)))


def _network(parts: Sequence[walk.Part], line: int, watched: str) -> None:
    """The network as a strip of its parts, the one of the line lit; a click goes to the first line of another."""
    names = [f"{n} {part.name}" for n, part in enumerate(parts, 1)]
    st.session_state[_PART] = next(name for name, part in zip(names, parts, strict=True)
                                   if part.first <= line <= part.last)

    def go() -> None:
        st.session_state["line"] = parts[names.index(st.session_state[_PART])].first

    st.segmented_control(f"From the sentence to the answers, by {watched}", names, key=_PART, required=True,
                         on_change=go)


@st.cache_data(show_spinner=False, max_entries=64)
def _walk(text: str, pair: str | None, model: str, index: int, _loaded: Loaded) -> tuple[walk.Step, ...]:
    return walk.walk(_loaded, _loaded.tokenizer.encode(text, pair), index)


# --- the script --------------------------------------------------------------


def copy_script(here: Here) -> None:
    """The run as a file, beside the numbers it prints."""
    form = controls.choice("Form", [LINE_BY_LINE, ENGINE], "form")
    request, loaded = here.request(parts=script.PARTS), state.loaded(here.model)
    if state.was_made_here(here.model):
        notices.problem(f"{here.model} lives in this visit only, so a script can't load it: download its folder on the "
                        "Fine-tune page, put it below models/, and choose it here.")
        return
    try:
        source = script.write_script(request, loaded, form == LINE_BY_LINE)
    except ValueError as problem:
        notices.note(f"{problem}: it stands below.")
        source = script.write_script(request, loaded, line_by_line=False)
    trace, *alone = state.traces([request, *script.alone_requests(request, loaded)])
    numbers = script.screen_numbers(trace, loaded, alone)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        draw(heading("Copy as a script"), small(
            "Save it as sentence.py in the project's folder and run it with the environment's Python; it needs no page "
            "and no network."))
        st.code(source, language="python", wrap_lines=True)
        st.download_button("Download sentence.py", source, "sentence.py", "text/x-python")
    with right:
        draw(heading("It prints"), small(_what_is_printed(numbers, loaded)))
        st.code(script.screen_text(numbers), language=None, wrap_lines=True)


def _what_is_printed(numbers: dict[str, Any], loaded: Loaded) -> str:
    """Whose numbers these are, and what those of a head are where their names don't say it."""
    words, heads = words_of("code")["printed"], loaded.model.heads
    there = {"tokens": "token_classification" in heads and "classification" not in heads,
             "viterbi": script.is_decoded(loaded), "answer": "start" in numbers, "cosine": "cosine" in numbers}
    return " ".join([words["all"], *(words[name] for name, is_there in there.items() if is_there)])

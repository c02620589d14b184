"""Compare page: a BERT and a GPT write on, and what each has to compute again."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

import streamlit as st

from bert_core.config import BertConfig
from bert_core.counting import counted
from bert_core.figures import compare_curves as figures
from bert_core.figures import theme
from bert_core.figures.compare import COLOURS, NAMES
from bert_core.measures import compare_writing as writing_measures
from bert_core.measures.compare import NoReading
from bert_core.measures.compare_writing import Draw, Written
from bert_core.tokenizer import MASK
from ui import components, controls, notices, tables
from ui.state import Here
from ui.tables import Numbers
from ui.views.compare_ask import Asked, VisitorEngine, ask, say

#: Where the sentence has nothing before the chosen word.
FALLBACK = "The little girl opened the door and"
MAX_SEED = 9999
#: A key that moved no farther has only been added up in another order.
ROUNDING = 1e-4
#: Letters of a start that are shown before what was written.
SHOWN = 200


def writing(here: Here) -> None:
    """Both continue the words before the chosen one; then the cost, counted."""
    asked = ask(here, one_way=())
    if asked.readers.left is None:
        notices.note("No left-to-right model is here, so BERT has no other writer beside it.")
        return
    before = start_of(asked)
    with controls.row():
        typed = controls.text("Start", "start", max_chars=200, placeholder=before,
                              help="What both models continue; if you type nothing, the words before your chosen one.")
        count = controls.slider("Pieces to write", 2, writing_measures.MAX_WRITTEN, "write", 7, width=160)
        draw = _how_to_go_on()
    prompt = typed.replace(MASK, " ").strip() or before
    written = {}
    for column, (reader, model) in zip(st.columns(2, gap="large"), _writers(asked), strict=True):
        with column:
            written[model] = _one(reader, model, prompt, count, draw)
    if written[asked.readers.left]:
        _cache(asked, prompt, written)


def _how_to_go_on() -> Draw | None:
    """Which piece comes next: the likeliest, or one that is drawn."""
    if controls.choice("Next piece", ("the likeliest", "drawn"), "pick") == "the likeliest":
        return None
    temperature = controls.number("Temperature", 0.1, 2.0, "temperature", 1.0, 0.1, width=160,
                                  help="Logits are divided by it: below 1 the likely pieces get likelier still, above "
                                       "1 the others catch up.")
    return Draw(temperature, int(controls.number("Seed", 0, MAX_SEED, "seed", 1, width=160)))


def _writers(asked: Asked) -> Sequence[tuple[str, str]]:
    return ("left", asked.readers.left), ("both", asked.readers.masked)


def start_of(asked: Asked) -> str:
    """The words before the hidden one, or a start of our own."""
    question = asked.question
    before = (question.text if question.sequence == 0 else question.pair or "")[:question.start]
    return before.replace(MASK, " ").strip() or FALLBACK


def end_of(start: str) -> str:
    """A start as both columns show it: of a long one its last words."""
    if len(start) <= SHOWN:
        return start
    _, _, words = start[-SHOWN - 1:].partition(" ")
    return f"… {words or start[-SHOWN:]}"


def _one(reader: str, model: str, prompt: str, count: int, draw: Draw | None) -> int:
    """What one writer puts behind the start; how many pieces that are."""
    try:
        written = list(writing_measures.write(VisitorEngine(), model, prompt, count, draw))
    except ValueError as problem:
        notices.note(str(problem))
        return 0
    if len(written) < count:
        notices.note(f"Only {len(written)} of {count} pieces fit within this model's limit.")
    pieces = "".join(f'<span class="piece" title="{w.probability:.3f}">{html.escape(w.token)}</span> ' for w in written)
    say(f"**{NAMES[reader]}** · {model}", "cmp-small")
    st.html(f'<p class="cmp-written" style="--mark:{theme.css(COLOURS[reader])}">'
            f'<span class="start">{html.escape(end_of(prompt))}</span> {pieces}</p>')
    say(_how(reader, draw), "cmp-small")
    columns = ("piece", "probability") if draw is None else ("piece", "probability", "drawn with")
    tables.show(Numbers(f"What {model} wrote", columns, _rows(written)))
    return len(written)


def _how(reader: str, draw: Draw | None) -> str:
    """What the writer does, in a sentence or two."""
    piece = "its likeliest next piece" if draw is None else "a piece drawn from its probabilities"
    if reader == "both":
        return (f"It fills a row of [MASK]s from left to right, each time with {piece}; it was trained to fill a few "
                "gaps in a finished text, not to write one.")
    return (f"It writes {piece}, again and again, and never a special token that would end the text: continuing "
            "a text is what it was trained for.")


def _rows(written: Sequence[Written]) -> list[tuple[str, float] | tuple[str, float, float]]:
    return [(w.token, w.probability) if w.drawn_with is None else (w.token, w.probability, w.drawn_with)
            for w in written]


# --- the cache ---------------------------------------------------------------


def _cache(asked: Asked, prompt: str, written: Mapping[str, int]) -> None:
    """Counted work, and the measured reason: prefix keys that stay or move.

    Args:
        written: model -> pieces that it wrote, of the left-to-right one at least 1.
    """
    count, gpt = written[asked.readers.left], VisitorEngine().loaded(asked.readers.left)
    config, start = gpt.config, writing_measures.read_before(gpt.tokenizer, prompt)
    kept, anew = writing_measures.costs_at_one_size(config, start, count)
    size = f"{config.num_hidden_layers} layers of width {config.hidden_size}"
    say(f"To write {counted(count, 'piece')} after {start} the GPT reads **{kept.tokens}** token positions, each once, "
        f"and keeps their keys and values ({_bytes(config, kept.tokens)} in fp32). A BERT reads all "
        f"{start + count + 1} again for every piece: **{anew.tokens}** positions. If both have the GPT's size, {size}, "
        f"that is **{anew.multiplications / kept.multiplications:.1f}** times the multiplications.")
    work = [(name, getattr(kept, field), getattr(anew, field)) for name, field in (
        ("passes", "passes"), ("token positions", "tokens"), ("query-key scores a head and layer", "pairs"),
        (f"multiply-adds in all layers, both {size}", "multiplications"))]
    tables.show(Numbers("Work for the same number of pieces, counted",
                        ("what is counted", "GPT with its cache", "BERT"), work),
                is_open=True, summary="The work, counted")
    _moved_keys(asked, prompt, written)


def _moved_keys(asked: Asked, prompt: str, written: Mapping[str, int]) -> None:
    """How far the keys of the start move when a word follows, for each writer that has room and shows its keys."""
    longer, moved = f"{prompt} {FALLBACK.split()[-2]}", {}
    for model in (model for _, model in _writers(asked) if written[model]):
        try:
            moved[model] = writing_measures.prefix_change(VisitorEngine(), model, longer, prompt)
        except NoReading as gap:
            say(f"{gap}.", "cmp-small")
    if not moved:
        return
    most = {model: float(change.max()) for model, change in moved.items()}
    say("Measured here: one more word is put after the start. How far do the keys of the words before it move? "
        + ", ".join(f"{model} by {_how_far(change)}" for model, change in most.items())
        + ". Keys that stay may be kept; where they move, everything has to be read again.")
    rows = [(n + 1, *(float(m[n]) if n < len(m) else "–" for m in moved.values()))
            for n in range(max(map(len, moved.values())))]
    components.chart(figures.prefix_figure(moved, {model: reader for reader, model in _writers(asked)}), "prefix",
                     Numbers("Largest change of a prefix key", ("layer", *moved), rows))


def _how_far(change: float) -> str:
    """'at most 0.52', or that it is nothing but rounding."""
    return f"{'no more than rounding,' if 0 < change <= ROUNDING else 'at most'} **{_short(change)}**"


def _short(change: float) -> str:
    return f"{change:.2g}".replace("-", "−")


def _bytes(config: BertConfig, tokens: int) -> str:
    """Size of keys and values of all layers: 2 L D 4 bytes a token."""
    return f"{2 * config.num_hidden_layers * config.hidden_size * 4 * tokens / 1024:,.0f} KiB"

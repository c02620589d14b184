"""What the Tokens page asks of the tokenizer and hands to its components."""

from __future__ import annotations

import functools
import tomllib

from bert_core.figures import tokens as figures
from bert_core.measures import wordpiece
from bert_core.measures.embeddings import positions
from ui import chips, components, controls, notices, shell, state
from ui.state import Here
from ui.views import task_models

#: Characters of the text that the comparison looks at.
COMPARED = 1500
#: Sentences whose words are cut.
TO_TRY = ("The unbelievably playful kittens meowed.", "Tokenization of misspeled wrods", "Zoë's café in Łódź 🙂")


def step_by_step(here: Here) -> None:
    """Normalise, split, longest match first, ids."""
    loaded, encoding = state.loaded(here.model), here.encoding
    if not wordpiece.is_wordpiece(loaded.tokenizer):
        notices.note(f"{here.model} does not use WordPiece, so there are no longest-match look-ups to show. "
                     "Its pieces are those below; see Compare for another way to cut.")
        chips.tokens(encoding, "tokens", labels=[str(i) for i in encoding.input_ids])
        notices.result(figures.marks_note(encoding, wordpiece.is_byte_level(loaded.tokenizer)))
        return
    words = wordpiece.words(loaded.tokenizer, encoding)
    first = figures.choose_word(words)
    opened = chips.chosen_positions("word", len(words), () if first is None else (first,), only_one=True)
    chosen = opened[0] if opened else first
    longest = loaded.tokenizer.backend.model.max_input_chars_per_word
    header = figures.word_data(words, chosen)
    header |= {
        "normal_note": figures.normal_note(words), "token_note": f"{len(encoding)} tokens go into the model.",
        "ladder_note": figures.ladder_note(None if chosen is None else words[chosen], longest),
        "tokens": [{"t": text, "k": kind, "i": n, "l": str(encoding.input_ids[n])}
                   for n, (text, kind) in enumerate(chips.describe(encoding))],
    }
    components.mount("wordpiece", "wordpiece", components.pack(header),
                     on_event=chips.receive_positions("word", len(words)))
    task_models.try_buttons([(text, None) for text in TO_TRY], "tokens")


def ids_and_segments(here: Here) -> None:
    """The numbers that go into the encoder, padded to a chosen length."""
    loaded, encoding = state.loaded(here.model), here.encoding
    longest = min(loaded.tokenizer.limit, 128)
    pad, pad_id = loaded.tokenizer.specials.get("pad"), loaded.config.pad_token_id
    pad_to = 0 if pad is None else controls.slider(
        "Pad to", 0, longest, "pad", 0, help=f"Shorter inputs of a batch are filled up with `{pad}`.")
    if pad is None:
        notices.note(f"{here.model} has no token to pad with.")
    shown = [{"t": text, "k": kind} for text, kind in chips.describe(encoding)]
    extra = max(0, pad_to - len(encoding))
    shown += [{"t": pad, "k": "pad"}] * extra
    rows = figures.id_rows(encoding, pad_to, pad_id, positions(loaded, encoding.input_ids, extra),
                           loaded.tokenizer.has_segments)
    components.mount("ids", "ids", components.pack({"tokens": shown, "rows": rows}))


def compare(here: Here) -> None:
    """One text through five tokenizers."""
    size = controls.slider("Pieces in the small vocabularies", 100, 3000, "pieces", 800, step=100, width=360)
    text = here.text[:COMPARED]
    if len(here.text) > COMPARED:
        notices.note(f"The comparison looks at the first {COMPARED:,} characters.")
    if here.pair:
        notices.note("The comparison looks at the first sentence only.")
    loaded = state.loaded(here.model)
    end = loaded.tokenizer.encode(text).cut_at[0]
    if end is not None:
        text = text[:end]
        notices.note(f"The comparison looks at the first {end:,} characters: what this model's limit lets in.")
    cuts = wordpiece.cuts(loaded.tokenizer, shell.short_name(here.model), text, own_prose(), size)
    words = len(text.split())
    header = {"cuts": [
        {"name": cut.name, "title": figures.cut_title(cut), "note": figures.cut_note(cut, words),
         "count": len(cut.pieces), "per_word": len(cut.pieces) / max(words, 1), "vocabulary": cut.vocabulary,
         "chips": [{"t": shown, "k": kind, "at": f"piece {n}"} for n, (shown, kind)
                   in enumerate(chips.describe([visible(p) for p in cut.pieces[:figures.SHOWN_PIECES]]), 1)]}
        for cut in cuts]}
    components.mount("cuts", "cuts", components.pack(header))


def visible(piece: str) -> str:
    """White space drawn, so that a piece which is only a space can be seen."""
    return piece.replace(" ", "␣").replace("\t", "⇥").replace("\n", "↵") or "∅"


@functools.cache
def own_prose() -> tuple[str, ...]:
    """Every sentence of the explorer's own pages: what the small vocabularies are trained on."""
    lines: list[str] = []
    for path in sorted(shell.PROSE.glob("*.toml")):
        words = tomllib.loads(path.read_text(encoding="utf-8"))
        for value in (*words.values(), *words.get("reading", {}).values()):
            lines += [v for v in (value if isinstance(value, list) else [value]) if isinstance(v, str)]
    return tuple(lines)

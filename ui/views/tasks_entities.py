"""Tasks, entities: names drawn on the text, with every token's probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bert_core.figures import tasks as figures
from bert_core.tasks import Reading, find_entities
from bert_core.tasks.entities import AGGREGATIONS, OUTSIDE, kind_of
from bert_core.tokenizer import Encoding
from ui import chips, components, controls, notices, shell, state
from ui.state import Here
from ui.views import tasks_layer
from ui.views.task_models import examples, or_example, say, try_buttons

RULES = {
    "first": "the first one speaks for the word", "average": "their probabilities are averaged",
    "max": "the surest one speaks for the word", "simple": "each speaks for itself",
}
#: By how it is shown: the sequence first, for that is how the shipped model is read.
DECODINGS = {"Best valid sequence": "viterbi", "Each word alone": "argmax"}
#: Tokens that fit on the map of all labels.
ON_MAP = 64


def draw(here: Here) -> Here:
    """The text with its entities, then every label for every token.

    Returns:
        The input that the picture is of: the sentence alone.
    """
    shipped = examples("tasks")["entities"]
    try_buttons([(text, None) for text in shipped], "entities")
    here = replace(or_example(here, shipped[0]), pair=None)
    shell.say_cut(here)
    own = state.loaded(here.model).config.label_decoding
    with controls.row():
        rule = controls.choice("Pieces of one word", ["first", *(a for a in AGGREGATIONS if a != "first")], "pieces")
        decoding = DECODINGS[controls.choice(
            "Labels of a sentence", list(DECODINGS), "sequence", next(k for k, v in DECODINGS.items() if v == own))]
    reading = state.or_stop(
        lambda: find_entities(state.engine(), here.text, here.model, rule, state.visitor(), decoding))
    if not reading.words:
        notices.note("There is no word to label.")
        return here
    probabilities = np.array([token.probabilities for token in reading.tokens], dtype=np.float32)
    chosen = chips.chosen_positions("token", len(here.encoding), fixed=fixed_of(here.encoding), only_one=True)
    components.mount("entities", "ner_text", _payload(reading, probabilities, rule, [
        here.encoding.content.index(position) for position in chosen]), on_event=_open(here.encoding))
    say(_in_words(reading, here.model), strong=True)
    if len(reading.tokens) > ON_MAP:
        notices.note(f"The map shows the first {ON_MAP} tokens of {len(reading.tokens)}; the table has them all.")
    tokens = [token.token for token in reading.tokens[:ON_MAP]]
    components.chart(figures.label_figure(probabilities[:ON_MAP], tokens, reading.labels), "ner_map",
                     "Probability of each label for each token")
    tasks_layer.of_entities(here)
    return here


def fixed_of(encoding: Encoding) -> list[int]:
    """Positions that have no label."""
    return sorted(set(range(len(encoding))) - set(encoding.content))


def _open(encoding: Encoding) -> Callable[[dict[str, Any]], None]:
    """A word that was clicked is the one that is looked at, here and one layer further."""
    def receive(message: dict[str, Any]) -> None:
        place = components.number(message, "token", len(encoding.content))
        state.set_param("token", str(encoding.content[place]))
    return receive


def _payload(reading: Reading, probabilities: np.ndarray, rule: str, chosen: Sequence[int]) -> bytes:
    """The component's data: words with their pieces, entities, (T, C) probabilities.

    Args:
        chosen: index of the token whose word is open; of none the first name is.
    """
    kinds = list(dict.fromkeys(kind_of(label) for label in reading.labels if kind_of(label) != OUTSIDE))
    spans = [(entity.start, entity.end) for entity in reading.entities]
    words = [word for pieces in words_of(reading) for word in _word(reading, pieces, spans)]
    return components.pack({
        "label": "Text with its entities", "text": reading.text, "labels": list(reading.labels), "types": kinds,
        "tokens": [token.token for token in reading.tokens], "words": words, "rule": RULES[rule],
        "open": next((n for n, word in enumerate(words) if set(chosen) & set(word["pieces"])), None),
        "entities": [{"start": e.start, "end": e.end, "label": e.label, "score": e.score} for e in reading.entities],
    }, {"probs": probabilities})


def words_of(reading: Reading) -> list[list[int]]:
    """Token indices of each word, in reading order."""
    groups: dict[int | None, list[int]] = {}
    for n, token in enumerate(reading.tokens):
        groups.setdefault(token.word, []).append(n)
    return list(groups.values())


def _word(reading: Reading, pieces: list[int], spans: list[tuple[int, int]]) -> list[dict]:
    """One word for the component; none where it is spaces alone, which have no label."""
    start, end = reading.tokens[pieces[0]].start, reading.tokens[pieces[-1]].end
    inside = any(a <= start < b for a, b in spans)
    labels = [word.label for word in reading.words if start <= word.start < end]
    return [{"start": start, "end": end, "text": reading.text[start:end], "pieces": pieces, "entity": inside,
             "label": label} for label in labels[:1]]


def _in_words(reading: Reading, model: str) -> str:
    found = ", ".join(f"{entity.text} ({entity.label})" for entity in reading.entities[:12])
    said = f"{model} finds: {found}." if found else f"{model} finds no name in this text."
    turned = sum(word.probability < max(word.probabilities) for word in reading.words)
    if turned:
        words = "1 word has" if turned == 1 else f"{turned} words have"
        said += f" {words} a different label than alone, to make the sequence valid."
    return said

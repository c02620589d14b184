"""Tasks that give one number or label for a whole input: pairs and acceptability."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from bert_core import Trace
from bert_core.figures import tasks as figures
from bert_core.measures.similarity import cosine_to, sentence_vector, unit
from bert_core.tokenizer import Encoding
from ui import components, notices, shell, state
from ui.state import Here
from ui.tables import Numbers
from ui.views import tasks_layer
from ui.views.cls_answer import answer, labels_of, side, verdict
from ui.views.cls_reader import answers_from
from ui.views.task_models import examples, or_example, say, share, signed, try_buttons

PARTS = ("hidden_states", "token_embeddings")
#: The shipped model whose sentence vectors were tuned for similarity.
TUNED = "twin-bert-stsb"
#: Name of the visitor's pair on the bars.
THESE = "these two sentences"
#: Tokens of a sentence up to which the token map names each, and its table goes with the page.
FEW = 40
#: Shipped classifiers that never read a pair.
ALONE = ("twin-bert-sst2", "twin-bert-cola")
TOKEN_COSINES = "Cosine of every token of the first sentence to every token of the second"


def draw_pair(here: Here) -> tuple[Here, ...]:
    """Similarity of two sentences; or a pair classifier's answer, where the chosen model is one.

    Returns:
        What was read, with the model of the picture: both sentences as one input, or each by itself.
    """
    shipped = [tuple(pair) for pair in examples("tasks")["pairs"]]
    try_buttons(shipped, "pairs")
    here = or_example(here, *shipped[0])
    if here.pair is None:
        say("Type a second sentence above, or try a pair.", strong=True)
        return (here,)
    if "classification" in state.loaded(here.model).model.heads and not _judges_one_sentence(here.model):
        shell.say_cut(here)
        _draw_classifier(here)
        return (here,)
    tuned = replace(here, model=TUNED) if TUNED in state.model_names() else here
    read = tuple(replace(tuned, text=text, pair=None) for text in (here.text, here.pair))
    for one in read:
        shell.say_cut(one)
    _draw_similarity(here, tuned)
    return read


def _judges_one_sentence(model: str) -> bool:
    """Whether this classifier was trained on sentences alone, and knows nothing of a pair: shipped, or made here."""
    return model in ALONE or model.startswith(state.MADE)


def _draw_classifier(here: Here) -> None:
    """The answer of the chosen model's own head to both sentences in one input."""
    trace = state.trace(here.request(parts=("logits",)))
    result = answer(trace)
    verdict([side(result, labels_of(trace))], "pair_verdict", f"{here.model} on the pair")
    place = f", and answered from {answers_from(here.model, trace.encoding)}"
    say(f"{here.model} read both sentences as one input, {_pattern(trace.encoding)}{place}. A head that was trained on "
        "sentences alone says nothing about a pair.")


def _pattern(encoding: Encoding) -> str:
    """How two sentences stand in one input: '[CLS] A [SEP] B [SEP]'."""
    parts: list[str] = []
    for token, special, sequence in zip(encoding.tokens, encoding.special, encoding.sequence_ids, strict=True):
        name = token if special else "AB"[sequence or 0]
        if special or parts[-1:] != [name]:
            parts.append(name)
    return " ".join(parts)


def _draw_similarity(here: Here, tuned: Here) -> None:
    """Cosine of the two sentence vectors by the tuned model and by the chosen one; tokens against tokens."""
    if tuned is here and here.model != TUNED:
        notices.note(f"{TUNED} is not here: the cosine is that of {here.model}, which was not tuned for similarity.")
    readers = _readers(here, tuned)
    marks = {name: tuple(pair) for name, pair in examples("tasks")["pair_marks"].items()}
    pairs = {"own": (here.text, here.pair), **marks}
    texts = list(dict.fromkeys(text for pair in pairs.values() for text in pair))
    traces = iter(state.traces([reader.request(text=text, pair=None, parts=PARTS)
                                for reader in readers for text in texts]))
    read = [{text: next(traces) for text in texts} for _ in readers]
    if not all(one[text].encoding.content for one in read for text in texts):
        notices.note("One of the sentences has no token besides the special ones: there is no vector to compare.")
        return
    known = [_cosines(reader.model, pairs, one) for reader, one in zip(readers, read, strict=True)]
    verdict([_side(one, pairs) for one in known], "pair_cosines", "Similarity of the two sentences")
    is_shipped = pairs["own"] in marks.values()
    if not is_shipped:
        say(figures.own_line(known), strong=True)
    say(figures.order_line(known[0], known[1] if len(known) > 1 else None), strong=is_shipped)
    first, second = (read[0][text] for text in pairs["own"])
    _draw_tokens(first, second, tuned.model)
    tasks_layer.of_pair(first, second, tuned.model)


def _readers(here: Here, tuned: Here) -> list[Here]:
    """The tuned model and, beside it, one that was not tuned: the chosen one, or else the shipped one."""
    if tuned.model != here.model:
        return [tuned, here]
    is_beside = here.model == TUNED and state.OFFERED in state.model_names()
    return [tuned, replace(here, model=state.OFFERED)] if is_beside else [tuned]


def _cosines(model: str, pairs: Mapping[str, tuple[str, str]], read: Mapping[str, Trace]) -> figures.PairCosines:
    """Cosines of each pair by the last layer's mean, and of the visitor's by static vectors too."""
    def cosine(name: str, kind: str) -> float:
        return float(cosine_to(*(sentence_vector(read[text], kind) for text in pairs[name])))

    return figures.PairCosines(model, *(cosine(name, "mean") for name in ("own", "alike", "unlike")),
                               cosine("own", "static"))


def _side(one: figures.PairCosines, pairs: Mapping[str, tuple[str, str]]) -> dict:
    """One side of the verdict: the visitor's pair, and to compare it with, the shipped ones that are not the same."""
    marks = [(label, value, " + ".join(pairs[name])) for name, label, value in (
        ("alike", "a pair that is alike", one.alike), ("unlike", "a pair that is not alike", one.unlike))
        if pairs[name] != pairs["own"]]
    bars = [(THESE, one.own, ""), *marks, ("these two, static vectors only", one.static, "")]
    return {
        "title": f"{one.model}, tuned to compare" if one.model == TUNED else one.model, "text": None,
        "best": THESE, "low": -1.0, "high": 1.0, "hidden": 0,
        "bars": [{"label": label, "value": value, "share": max(0.0, value), "text": f"cosine {signed(value, plus='')}",
                  "below": below} for label, value, below in bars],
        "table": [[label, value] for label, value, _ in bars],
    }


def _draw_tokens(first: Trace, second: Trace, model: str) -> None:
    """Cosine of every token of A to every token of B in the last layer."""
    rows, columns = first.encoding.content, second.encoding.content
    a, b = unit(first.hidden_states[-1][list(rows)]), unit(second.hidden_states[-1][list(columns)])
    names = [[f"{n} {trace.encoding.tokens[n]}" for n in places]
             for trace, places in ((first, rows), (second, columns))]
    cosines = np.clip(a @ b.T, -1.0, 1.0)
    if max(len(rows), len(columns)) > FEW:
        components.mount("maps", "pair_tokens", _packed(cosines, first.encoding, second.encoding))
    else:
        components.chart(figures.token_pairs_figure(cosines, *names), "pair_tokens", Numbers(
            TOKEN_COSINES, ("token", *names[1]),
            [(name, *values) for name, values in zip(names[0], cosines.tolist())]))
    found = figures.own_range(cosines)
    scale = (f" Its colours run from its own least cosine, {signed(found[0], plus='')}, to its greatest, "
             f"{signed(found[1], plus='')}.") if found else ""
    say(f"Each sentence was read on its own by {model}; the map compares their tokens in the last layer.{scale}")


def _packed(cosines: np.ndarray, first: Encoding, second: Encoding) -> bytes:
    """The same map of long sentences, in numbers: as HTML their table would have ten million letters."""
    low, high = figures.own_range(cosines) or (None, 1.0)
    ticks = [[one.tokens[n] for n in one.content] for one in (first, second)]
    rows, columns = ([f"“{one.tokens[n]}” ({n})" for n in one.content] for one in (first, second))
    return components.pack(
        {"rows": rows, "columns": columns, "ticks": ticks[0], "column_ticks": ticks[1],
         "row_word": "sentence", "column_word": "second sentence", "size": 640,
         "caption": TOKEN_COSINES, "panels": [{"title": "Cosine", "name": "cosine", "signed": True, "low": low,
                                               "limit": high}]},
        {"cosine": cosines.astype(np.float32)})


def draw_acceptability(here: Here) -> Here:
    """A second task for [CLS]: is this a sentence of English?

    Returns:
        The input that was read: the sentence alone.
    """
    shipped = examples("tasks")["acceptability"]
    try_buttons([(text, None) for text in shipped], "acceptability")
    here = replace(or_example(here, shipped[0]), pair=None)
    shell.say_cut(here)
    trace = state.trace(here.request(parts=("logits",)))
    result = answer(trace)
    verdict([side(result, labels_of(trace))], "cola_verdict", f"{here.model} on the sentence")
    say(f"{here.model} says {result.label}, {share(result.probability)}.", strong=True)
    return here

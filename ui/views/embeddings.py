"""What the Embeddings page asks of the engine and hands to its components."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from bert_core.figures import embeddings as figures
from bert_core.figures import masking as cards
from bert_core.measures import embeddings as measures
from bert_core.measures import predictions
from bert_core.measures.similarity import cosine_matrix
from bert_core.model import Model
from bert_core.request import EMBEDDINGS
from bert_core.trace import Trace, TraceRequest
from ui import chips, components, controls, notices, state
from ui.state import Here
from ui.views import masking

MAX_SEED = 9999
#: Neighbours of a row of the word table that are shown.
NEAREST = 15
TABLES = "its tables of embeddings"


def switches(here: Here, model: Model) -> tuple[TraceRequest, str]:
    """The controls of one run; the request they make, and what it changes in words.

    Args:
        model: what `here` names.
    """
    _say_segments(here, model)
    kinds = [kind for kind in EMBEDDINGS if kind != "segment" or model.names.segment is not None]
    with controls.row():
        off = tuple(controls.many("Switch off", kinds, "off"))
        kind = controls.choice("Positions", measures.ORDERS, "order")
        seed = int(controls.number("Seed", 0, MAX_SEED, "seed", 1)) if kind == "shuffled" else 0
    natural = measures.natural_order(model.config, len(here.encoding))
    order = measures.order(kind, natural, seed)
    return here.request(embeddings_off=off, position_order=order), figures.settings_name(off, kind)


def _say_segments(here: Here, model: Model) -> None:
    """A line where this model's segments are not BERT's two."""
    if model.names.segment is None:
        notices.note(f"{here.model} has no segment embeddings: two vectors are added, token and position.")
    elif model.config.type_vocab_size == 1:
        notices.note(f"{here.model} has one segment vector, the same for every token of both sentences.")


def strips(here: Here) -> None:
    """The three addends, their sum and its LayerNorm, token by token."""
    model = state.ours(here.model, TABLES).model
    request, _ = switches(here, model)
    trace = state.trace(_with(request, parts=tuple(figures.STRIPS)))
    arrays = figures.strip_arrays(trace)
    limits = figures.strip_limits(arrays)
    weight, bias = measures.norm_parameters(model)
    count, width = arrays["sum"].shape
    data = components.pack(
        {"tokens": list(trace.encoding.tokens), "cell": list(chosen_cell(count, width)),
         "epsilon": model.config.layer_norm_eps, **limits},
        {**figures.sent_arrays(arrays), "weight": weight, "bias": bias},
    )

    def choose(message: dict[str, Any]) -> None:
        token = components.number(message, "token", count)
        state.set_param("cell", f"{token},{components.number(message, 'dimension', width)}")

    components.mount("embeddings", "strips", data, on_event=choose)


def chosen_cell(count: int, width: int) -> tuple[int, int]:
    """(token, dimension) that the address names under `cell`."""

    def parse(raw: str) -> tuple[int, int]:
        token, dimension = (int(part) for part in raw[:20].split(","))
        if not (0 <= token < count and 0 <= dimension < width):
            raise ValueError(f"no such cell: {raw}")
        return token, dimension

    return state.param("cell", parse, (min(1, count - 1), 0))


def _with(request: TraceRequest, **changes: Any) -> TraceRequest:
    return TraceRequest(**{**request.__dict__, **changes})


def consequences(here: Here) -> None:
    """What switching off or shuffling does to the guesses and to every token's last vector."""
    model = state.ours(here.model, TABLES).model
    request, name = switches(here, model)
    encoding = here.encoding
    masked = masking.chosen(encoding)
    parts = ("hidden_states", "mlm_positions", "mlm_logits")
    plain = state.trace(here.request(masked=masked, parts=parts))
    changed = state.trace(_with(request, masked=masked, parts=parts))
    has_head = "mlm" in model.heads
    shown = _paired_cards(here, plain, changed, name) if has_head else []
    hint = f"{here.model} has no masked-LM head, so no guesses are shown."
    if has_head:
        hint = masking.no_gap(encoding, masked) or masking.without_card(plain)
    masking.mount_gaps("gaps", encoding, masked, shown, hint)
    if plain.request == changed.request:
        notices.note("Nothing is switched off yet. Switch off “position”, or shuffle the positions: the answers then "
                     "stand side by side, and below them what is left of every token's vector.")
        return
    cosines = measures.row_cosines(plain.hidden_states[-1], changed.hidden_states[-1])
    notices.result(f"How much of each token's last vector is left ({name}): cosine to the vector of the unchanged run, "
                   f"{float(np.mean(cosines)):.3f} on average.")
    chips.tokens(plain.encoding, "left", values=np.clip(cosines, 0, 1).tolist(),
                 labels=[f"{value:.2f}" for value in cosines.tolist()],
                 label="Tokens, shaded by the cosine to their unchanged vector")


def _paired_cards(here: Here, plain: Trace, changed: Trace, name: str) -> list[dict[str, Any]]:
    tokenizer = state.loaded(here.model).tokenizer
    truths = {n: here.encoding.input_ids[n] for n in plain.request.masked}
    first, second = (predictions.read_gaps(trace, tokenizer, 6, truths, masking.MAX_CARDS)
                     for trace in (plain, changed))
    columns = 1 if plain.request == changed.request else 2
    return [cards.card(cards.gap_title(a, n + 1, len(first)), [("as trained", a), (name, b)][:columns])
            for n, (a, b) in enumerate(zip(first, second, strict=True))]


def positions(here: Here) -> None:
    """Cosine of every position embedding with every other."""
    model = state.ours(here.model, TABLES).model
    header, arrays = figures.similarity_data(position_cosines(here.model, len(measures.position_table(model))),
                                             model.config.position_offset)
    components.mount("maps", "positions", components.pack(header, arrays))


@functools.lru_cache(maxsize=8)
def position_cosines(name: str, count: int) -> np.ndarray:
    """(P, P) cosines of a model's position table; `count` is P."""
    return cosine_matrix(measures.position_table(state.loaded(name).model)[:count])


@functools.lru_cache(maxsize=8)
def word_baseline(name: str) -> float:
    """Average cosine of two random rows of a model's word table."""
    return measures.mean_random_cosine(measures.word_table(state.loaded(name).model))


@functools.lru_cache(maxsize=256)
def nearest_rows(name: str, index: int) -> tuple[measures.Neighbour, ...]:
    """The rows of a model's word table nearest to one: they stay the same while one types another word."""
    return measures.neighbours(measures.word_table(state.loaded(name).model), index, NEAREST)


def neighbours(here: Here) -> None:
    """The rows of the word table nearest to a chosen token's."""
    loaded, encoding = state.ours(here.model, TABLES), here.encoding
    count = len(encoding)
    default = chips.second_word(encoding)  # what stands nearest to a [MASK] says little
    opened = chips.chosen_positions("token", count, (default,), only_one=True)
    chosen = opened[0] if opened else default
    found = state.or_stop(lambda: nearest_rows(here.model, encoding.input_ids[chosen]))
    baseline = word_baseline(here.model)
    data = components.pack({
        "chips": [{"t": text, "k": kind, "i": n} for n, (text, kind) in enumerate(chips.describe(encoding))],
        "chosen": chosen,
        "title": f"Nearest to “{encoding.tokens[chosen]}” in the table of token embeddings, by cosine",
        "rows": [{"t": predictions.piece(loaded.tokenizer, near.id), "id": near.id, "cosine": near.cosine}
                 for near in found],
        "baseline": baseline,
        "note": f"The line in each bar stands at {baseline:.3f}, the average cosine of two random pieces of the table.",
    })
    components.mount("neighbours", "neighbours", data, on_event=chips.receive_positions("token", count))

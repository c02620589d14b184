"""What the Family page needs: anatomy, relatives, several models side by side, claims and tables."""

from __future__ import annotations

import html
from pathlib import Path

import streamlit as st

from bert_core import Trace, TraceRequest
from bert_core.config import BertConfig
from bert_core.facts import known_sizes, paper_tables, read_facts
from bert_core.figures import family as figures
from bert_core.figures import family_claims, theme
from bert_core.load import Loaded
from bert_core.serving.rooms import View
from bert_core.sizes import parameter_table
from bert_core.tasks.vocabulary import last_place, last_read, top_predictions
from ui import chips, components, controls, glossary, going, notices, shell, state
from ui.state import Here
from ui.tables import Numbers, table
from ui.views import task_models
from ui.views.family_html import draw, heading, small, words_of

#: Choices of the anatomy picture; the sizes that are edited start from base.
BASE, LARGE, SHOWN, OWN = "base", "large", "the chosen model", "my own"
#: Models side by side, and tokens up to which their attention map is drawn.
MOST_MODELS, MOST_TOKENS = 3, 48
#: Claims that another view of this page answers, by their key.
_VIEWS = {"limit": "Cost", "distil": "Anatomy"}
#: Stands between the claims while their terms are marked; no escaped text holds it.
_BETWEEN = "<!-- -->"


# --- anatomy -----------------------------------------------------------------


def anatomy(here: Here) -> None:
    """The treemap of parameters, its formulas, and every known size counted."""
    left, right = st.columns([1, 1.5], gap="medium")
    with left:
        which = controls.choice("Architecture", [BASE, LARGE, SHOWN, OWN], "size")
    config, heads = _anatomy_config(here, which)
    if config is None:
        return
    nodes = figures.anatomy_info(config, heads)
    name = {BASE: "BERT base", LARGE: "BERT large", OWN: "a BERT of your own sizes"}.get(which, here.model)
    with right:
        draw(f'<p class="bw-figure-number">{nodes[0].count:,}</p>', small(
            f"parameters of {shell.short_name(name)}: L = {config.num_hidden_layers} layers, D = {config.hidden_size}, "
            f"H = {config.num_attention_heads} heads, I = {config.intermediate_size}, "
            f"V = {config.vocab_size:,} pieces, P = {config.max_position_embeddings} positions, "
            f"S = {config.type_vocab_size} segments, E = {config.table_width} numbers an embedding. "
            "The rectangles add up to it exactly; click one to go in."))
    draw(_kinds_line(nodes))
    components.chart(figures.anatomy_figure(nodes), "anatomy",
                     f"Parameters of {shell.short_name(name)}, part by part: area is their number")
    with st.expander("Every part with its formula"):
        rows = [(s.part, s.formula, f"{s.each:,}", str(s.times), f"{s.total:,}")
                for s in figures.anatomy_table(config, heads)]
        rows.append(("sum", "", "", "", f"{nodes[0].count:,}"))
        draw(table("Parts", ["part", "formula", "each", "times", "parameters"], rows, (2, 3, 4)),
             small("The letters are those above; C is the number of labels of a classifier."))
    with st.expander("Known models, counted by the same formulas"):
        rows = [(size.name, size.what.replace("`", ""), f"{size.parameters:,}") for size in known_sizes()]
        facts = read_facts("sizes")
        draw(table("Parameters", ["model", "what is counted", "parameters"], rows, (2,)), small(facts["note"]))


def _kinds_line(nodes: tuple[figures.Node, ...]) -> str:
    """The treemap's colours, each with how many parameters it stands for."""
    return '<p class="bw-kinds">' + "".join(
        f'<span><i style="background:{theme.css(kind.colour)}"></i>{kind.name} <b>{kind.count:,}</b> '
        f"({_share(kind.count / nodes[0].count)})</span>" for kind in figures.anatomy_kinds(nodes)) + "</p>"


def _share(part: float) -> str:
    return f"{100 * part:.1f} %" if part >= 0.001 else "under 0.1 %"


def _anatomy_config(here: Here, which: str) -> tuple[BertConfig | None, tuple[str, ...] | None]:
    """The chosen architecture and its heads; None after a problem was shown."""
    if which == SHOWN:
        return _config_of(state.loaded(here.model))
    if which != OWN:
        size = {BASE: "bert-base-uncased", LARGE: "bert-large-uncased"}[which]
        return next(known.config for known in known_sizes() if known.name == size), None
    columns = st.columns(4)
    with columns[0]:
        layers = controls.number("Layers L", 1, 48, "layers", 12)
    with columns[1]:
        hidden = controls.number("Hidden size D", 16, 4096, "hidden", 768, step=16)
    with columns[2]:
        heads = controls.number("Heads H", 1, 64, "heads", 12)
    with columns[3]:
        vocabulary = controls.number("Vocabulary V", 100, 300000, "vocabulary", 30522, step=100)
    try:
        return figures.edited_config(layers, hidden, heads, vocabulary), None
    except ValueError as problem:
        notices.problem(f"{problem}. Each head gets D / H numbers, so choose D as a multiple of H.")
        return None, None


def _config_of(loaded: Loaded) -> tuple[BertConfig | None, tuple[str, ...] | None]:
    """A model's architecture and heads; None after a line that its block has no formulas here."""
    order = ("pooler", "mlm", "lm", "nsp", "classification", "token_classification", "question_answering")
    heads = tuple(head for head in order if head in loaded.model.heads)
    try:
        parameter_table(loaded.config, heads)
    except ValueError:
        notices.note(f"{shell.short_name(loaded.name)} has a different block from BERT's, so these formulas don't "
                     f"count its parts. It has {loaded.info.parameters:,} parameters in all.")
        return None, None
    return loaded.config, heads


# --- relatives ---------------------------------------------------------------


def relatives() -> None:
    """What came after, and what encoders, decoders and encoder-decoders are for."""
    variants = read_facts("variants")["variant"]
    rows = [(v["name"], v["changed"], v["why"], v["language"], v["paper"].replace(" ", "\u00a0") or "–")
            for v in variants]
    history = table("What came after BERT", ["model", "what changed", "why", "language", "paper"], rows, stacked=True)
    draw(f'<div class="bw-words">{glossary.mark(history)}</div>', _paper_links(variants))
    kinds = words_of("family")["kinds"]
    cards = "".join(_kind_card({key: html.escape(words) for key, words in kind.items()}) for kind in kinds)
    draw(heading("Encoder, decoder, encoder-decoder"), f'<div class="bw-cards">{glossary.mark(cards)}</div>')


def _paper_links(variants: list[dict[str, str]]) -> str:
    """A line that leads to every paper of the table."""
    links = (f'<a href="https://arxiv.org/abs/{v["paper"].removeprefix("arXiv ")}">{html.escape(v["name"])}</a>'
             for v in variants if v["paper"])
    return f'<p class="bw-small">The papers on arXiv: {", ".join(links)}.</p>'


def _kind_card(kind: dict[str, str]) -> str:
    return (f'<div class="bw-card"><h3 class="bw-sub">{kind["name"]}</h3><p>{kind["sees"]}</p>'
            f'<p><strong>For:</strong> {kind["for"]}</p><p class="bw-small">{kind["examples"]}</p></div>')


# --- side by side ------------------------------------------------------------


def side_by_side(here: Here) -> None:
    """The sentence through up to three loaded models: tokens, guesses, attention."""
    names = state.model_names()
    start = ([here.model] if here.model in names else []) + [n for n in names if n != here.model]
    chosen = controls.many("Models", names, "with", default=start[:2])
    if not chosen:
        notices.note("Choose at least one model.")
        return
    chosen, left_out = chosen[:MOST_MODELS], chosen[MOST_MODELS:]
    if left_out:
        names = ", ".join(shell.short_name(name) for name in left_out)
        notices.note(f"{MOST_MODELS} models stand side by side; not shown: {names}.")
    traces = state.traces([_asked(here, name) for name in chosen])
    for part in (_says, _looks):  # the maps begin in one line, however much stands above each
        for number, (column, trace) in enumerate(zip(st.columns(len(chosen)), traces, strict=True)):
            with column:
                part(trace, number)


def _asked(here: Here, name: str) -> TraceRequest:
    """What stands in a model's column: its attention, and its guesses in the gaps or after all it has read."""
    loaded = state.loaded(name)
    last = last_place(loaded.tokenizer.encode(here.text, here.pair), loaded.config)
    parts = ("attention_probs", "mlm_positions", "mlm_logits", "lm_logits")
    return here.request(model=name, parts=parts, lm_at=(last,))


def _says(trace: Trace, number: int) -> None:
    """What a model is, how it cuts the sentence, and what it guesses."""
    config = trace.config
    draw(heading(Path(trace.model).name), small(
        f"{config.model_type}, {config.num_hidden_layers} × {config.hidden_size}, {trace.attention_kind}, "
        f"{len(trace)} tokens of {config.vocab_size:,}"))
    chips.tokens(trace.encoding, key=f"tokens{number}", label=f"Tokens of {Path(trace.model).name}")
    guesses = _guesses(trace)
    if guesses is None:
        draw(small("This checkpoint has no language-model head, so it guesses no words."))
    else:
        title, rows = guesses
        draw(table(title, ["token", "probability"], rows, (1,)) if rows else small(f"{title}."))


def _looks(trace: Trace, number: int) -> None:
    """Its attention in the last layer, under its name again: on a phone it stands far below the first."""
    draw(small(f"{shell.short_name(trace.model)}: who looks at whom"))
    if not trace.has("attention_probs"):
        draw(small("This model gives no attention to draw."))
    elif len(trace) > MOST_TOKENS:
        draw(small(f"No attention map: it is drawn up to {MOST_TOKENS} tokens, and here are {len(trace)}."))
    else:
        components.chart(figures.attention_figure(trace), f"attention{number}", _weights(trace))


def _weights(trace: Trace) -> Numbers:
    """The same map as numbers."""
    names = [f"{n} {token}" for n, token in enumerate(trace.tokens)]
    rows = [(name, *row) for name, row in zip(names, trace.attention_probs[-1].mean(axis=0).tolist(), strict=True)]
    return Numbers(f"Attention of {shell.short_name(trace.model)}, last layer, mean of heads: rows look at columns",
                   ("from \\ to", *names), rows)


def _guesses(trace: Trace) -> tuple[str, list[tuple[str, str]]] | None:
    """Title and top five of the first gap, or of what is read next; None without a head."""
    tokenizer = state.loaded(trace.model).tokenizer
    if trace.has("lm_logits"):
        if not len(trace):
            return "Type something to see what comes next", []
        side = "Before" if trace.config.reading_order == "right-to-left" else "Next after"
        title, logits = f"{side} the sentence", trace.lm_row(last_read(trace))
    elif trace.has("mlm_logits") and len(trace.mlm_positions):
        title, logits = f"In the gap at position {trace.mlm_positions[0]}", trace.mlm_logits[0]
    elif trace.has("mlm_logits"):
        return "Put a [MASK] into the sentence to see its guesses", []
    else:
        return None
    return title, [(best.token, task_models.share(best.probability)) for best in top_predictions(logits, tokenizer, 5)]


# --- claims and tables -------------------------------------------------------


def claims(here: Here) -> None:
    """Claims that circulate, shown wrong, each with the way to where one can try it."""
    found = family_claims.claims(state.loaded(here.model), here.text)
    marked = glossary.mark(_BETWEEN.join(map(_one_claim, found))).split(_BETWEEN)  # each term once for all claims
    draw(heading("Said wrongly elsewhere"))
    shown = list(zip(found, marked, strict=True))
    for first in range(0, len(shown), 2):  # read from left to right; on a phone one below the other
        for column, (claim, words) in zip(st.columns(2, gap="large"), shown[first:first + 2]):
            with column:
                draw(words)
                _try_it(claim)


def _try_it(claim: family_claims.Claim) -> None:
    """A way to where one can try what the claim is about."""
    if not claim.page:
        return
    view = _VIEWS.get(claim.key)
    st.button(f"Try it: {view or shell.title_of(claim.page)}", key=f"_try_{claim.key}", type="tertiary",
              icon=":material/open_in_new:", on_click=going.to,
              args=(View(claim.page, (("view", view),) if view else ()),))


def _one_claim(claim: family_claims.Claim) -> str:
    lines = [f'<p class="bw-wrong">{shell.inline(claim.wrong)}</p>', f"<p>{shell.inline(claim.right)}</p>"]
    if claim.evidence:
        lines.append(f'<p class="bw-evidence">Here: {shell.inline(claim.evidence)}</p>')
    return f'<section class="bw-claim">{"".join(lines)}</section>'


def paper() -> None:
    """The paper's result tables, each with its source."""
    facts = read_facts("paper")
    for shown in paper_tables():
        draw(table(shown.title, shown.columns, shown.rows, range(1, len(shown.columns))), small(shown.note))
    draw(small(f"{facts['data']['pretraining']} {facts['data']['nsp']} Source of all tables: {facts['source']}. "
               f"{facts['note']}"))

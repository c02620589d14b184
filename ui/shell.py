"""The frame of every page: navigation, shared inputs, and what stands below a picture."""

from __future__ import annotations

import functools
import html
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote_plus, unquote_plus

import streamlit as st

from bert_core import LoadError, MissingPart, hub
from bert_core.counting import counted
from bert_core.serving import EngineError, Superseded
from bert_core.tokenizer import Encoding
from ui import (
    arithmetic,
    classroom,
    follow,
    glossary,
    going,
    model_card,
    model_picker,
    notices,
    settings,
    state,
    tour,
    visitors,
)
from ui.state import OWN_SENTENCE, Here
from ui.words import PROSE

ROOT = Path(__file__).resolve().parent.parent

#: The explorer's pages: section -> (name in the address, name on screen).
PAGES = {
    "Look": (("tokens", "Tokens"), ("embeddings", "Embeddings"), ("attention", "Attention"),
             ("masking", "Masking"), ("compare", "One way, both ways")),
    "Use": (("cls", "[CLS]"), ("meaning", "Meaning"), ("tasks", "Tasks")),
    "Learn": (("pretrain", "Pre-train"), ("finetune", "Fine-tune")),
    "Study": (("family", "Family"), ("code", "Code"), ("class", "Class")),
}
#: On the pages of OWN_SENTENCE the shared fields are kept, and shown while they have the focus.
NO_SENTENCE = ('[data-testid="stLayoutWrapper"]:has(> [data-testid="stHorizontalBlock"] > * .st-key-text)'
               ":not(:focus-within) "
               "{ position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }")
#: Characters of an address that each shared input may take: with both full a link can still be opened, which one of
#: 130,000 can't. Ten thousand English words fit.
MOST_IN_ADDRESS = {"text": 75_000, "pair": 37_500}
#: Those that one character may take.
LONGEST_IN_ADDRESS = 12
#: The explorer itself, behind a page's name in the browser's tab.
APP = "Both Ways"
#: Page and view as older links have it -> its name now.
RENAMED = {("masking", "Two sentences"): "Other sentence"}
#: The page at the bare address.
FIRST = "masking"
#: Where a session keeps the pages of its navigation.
_PAGES = "_pages"


# --- app.py ------------------------------------------------------------------


def navigation() -> st.Page:
    """Navigation over the pages; the bare address shows FIRST."""
    pages = st.session_state.get(_PAGES)
    if pages is None:  # once a session: to make them anew at every key press looks for 14 scripts on the disk
        pages = st.session_state[_PAGES] = _pages()
    return st.navigation(pages, expanded=True)


def _pages() -> dict[str, list[st.Page]]:
    """Section -> its pages whose script is there, for one session."""
    sections = {
        section: [st.Page(_script(name), title=title, url_path=name)
                  for name, title in pages if (ROOT / _script(name)).exists()]
        for section, pages in PAGES.items()
    }
    start = st.Page(_script(FIRST), title="Start", url_path="start", default=True)
    return {"": [start], **{section: pages for section, pages in sections.items() if pages}}


def title_of(name: str) -> str:
    """A page's name on screen."""
    return next((title for pages in PAGES.values() for page, title in pages if page == name), APP)


def _script(name: str) -> str:
    return f"pages/{name}.py"


def frame(page: st.Page) -> None:
    """What all pages share: style, title and question, sentence, model."""
    name = page.url_path or FIRST
    st.set_page_config(page_title=f"{title_of(name)} · {APP}")
    is_back = st.session_state.get("_page") not in (None, name)
    if is_back:  # two pages may have a view of the same name
        st.session_state.pop("view", None)
    if (name, st.query_params.get("view")) in RENAMED:
        st.session_state.setdefault("view", RENAMED[name, st.query_params["view"]])
    is_sent = going.is_sent()
    st.session_state["_page"] = name
    st.session_state["_framed"] = True
    visitors.current()
    classroom.begin(name)
    words = prose(name, state.open_view())
    style = f"<style>{NO_SENTENCE}</style>" if name in OWN_SENTENCE else ""
    st.html(style + words.heading + tour.offer(not page.url_path))
    classroom.draw(name, tuple(name for pages in PAGES.values() for name, _ in pages))
    _inputs()
    _sidebar()
    follow.model()
    if is_back and not is_sent and not going.is_by_history():
        follow.come_back(name)
    follow.note(name)
    model_picker.offer()


def run(page: st.Page) -> None:
    """The page's own script; what the model lacks, or a busy engine, ends it with a line that says so."""
    try:
        page.run()
    except Superseded:  # a newer run of this tab draws the picture
        st.stop()
    except (MissingPart, LoadError) as problem:
        state.stop(str(problem), state.instead())
    except EngineError as problem:
        state.stop(str(problem))


def _inputs() -> None:
    """The shared live inputs; their values are the parameters text and pair."""
    pause = settings.typing_pause()
    first, second = st.columns([3, 2], gap="small")
    for key in ("text", "pair"):
        _shorten(key)
    first.text_input("Sentence", value=state.DEFAULT_TEXT, key="text", bind="query-params", live=pause,
                     max_chars=MOST_IN_ADDRESS["text"], placeholder="Type anything; [MASK] is a gap",
                     on_change=follow.words)
    second.text_input("Second sentence", value="", key="pair", bind="query-params", live=pause,
                      max_chars=MOST_IN_ADDRESS["pair"], placeholder="optional", on_change=follow.words)


def _shorten(key: str) -> None:
    """Cut what is typed, or what a room or an example put into a shared input, to what an address holds."""
    written = _in_address(st.session_state.get(key) or "")
    if len(written) > MOST_IN_ADDRESS[key]:
        whole = re.sub("%.?$", "", written[:MOST_IN_ADDRESS[key]])
        st.session_state[key] = unquote_plus(whole, errors="ignore")  # half a character at the end is none


def _in_address(text: str) -> str:
    """A text as an address has it: a Latin letter or a space as one character, another as up to 12."""
    return quote_plus(text, errors="replace")


def _say_full(here: Here) -> None:
    """A line where an input is as long as it can be: more was typed, or came with a link."""
    for key, name, text in (("text", "sentence", here.text), ("pair", "second sentence", here.pair or "")):
        if len(_in_address(text)) + LONGEST_IN_ADDRESS > MOST_IN_ADDRESS[key]:
            notices.note(f"The {name} has all that its field takes, here {len(text):,} characters; what came behind "
                         "was left out.")


def _sidebar() -> None:
    """The model picker."""
    names, default = state.model_names(), settings.default_model()
    chosen = st.session_state.get("model", st.query_params.get("model"))
    if chosen and chosen not in names:
        names.append(chosen)
    st.sidebar.selectbox("Model", names, index=names.index(default), key="model", bind="query-params",
                         accept_new_options=True, help=_how_to_name_a_model())
    model_picker.draw()
    arithmetic.draw()
    model_card.draw(st.session_state.get("model") or default)


def _how_to_name_a_model() -> str:
    """What a visitor may type beside the names that are listed."""
    ways = ["a hub id"] if hub.is_on() else []
    root = settings.folders_root()
    if root is not None:
        ways.append(f"a folder below {root.name}/ on the server, with config.json, a tokenizer and model.safetensors")
    return f"Choose, or type {' or '.join(ways)}." if ways else "Choose one of the shipped models."


# --- pages -------------------------------------------------------------------


def open_page(needs_model: bool = True, says_cut: bool = True) -> Here:
    """Start a page: what the visitor looks at, and what there is to say about it.

    Args:
        needs_model: whether the page can't do without the chosen model.
        says_cut: whether the page as a whole reads sentence and pair as one input; else its views `say_cut`.
    """
    _through_app()
    here = state.here()
    classroom.cover(here)
    if here.page not in OWN_SENTENCE:
        _say_full(here)
    if needs_model and says_cut:
        say_cut(here)
    return here


def say_cut(here: Here) -> None:
    """Where the model's limit cuts this input, if it does."""
    if here.encoding.truncated:
        notices.note(_cut_line(here.encoding, state.loaded(here.model).tokenizer.limit))


def _through_app() -> None:
    """Go through app.py if Streamlit started the page's script on its own.

    It does so for the first visitor, because of the folder pages/, unless it was told (ui/server.py).
    """
    if not st.session_state.pop("_framed", False):
        navigation()
        st.rerun()


def _cut_line(encoding: Encoding, limit: int) -> str:
    """Where the model's limit cut the input."""
    parts = []
    for what, text, cut in zip(("sentence", "second sentence"), (encoding.text, encoding.pair), encoding.cut_at):
        if cut is not None and text:
            before, after = text[max(0, cut - 30):cut].lstrip(), text[cut:cut + 30].rstrip()
            parts.append(f"the {what} ends at “… {before}” ✂ “{after.strip()} …” (character {cut:,})")
    where = "; ".join(parts) or "at the end"
    return f"Cut at this model's limit of {limit} tokens, {counted(encoding.dropped, 'piece')} did not fit: {where}."


def close_page(here: Here, shown: str = "", read: Sequence[Here] = ()) -> None:
    """End a page: how to read it, what it doesn't prove, the status bar and `data-ready`.

    Args:
        shown: the whole status bar of a page that shows another model or another input than the chosen one.
        read: what the page read where that is not the visitor's own input, such as an example.
    """
    below = prose(here.page, str(st.session_state.get("view", ""))).below
    if below:
        st.html(below)
    classroom.end(here.page)
    has_read = () if here.page in OWN_SENTENCE else read or (here,)
    notices.ready(here.text, shown or status_line(here), state.dropped(), _in_words(has_read))


def _in_words(read: Sequence[Here]) -> str:
    """The sentences of what was read, under the names of their fields."""
    texts = [text for one in read for text in (one.text, one.pair) if text]
    return " · ".join(f"{name}: “{text}”" for name, text in zip(("Sentence", "Second sentence"), texts))


def status_line(*read: Here, note: str = "") -> str:
    """Which model on which device made the picture, and how long the inputs are that it read.

    Args:
        note: what belongs to the model's name, such as which models read beside it.
    """
    loaded = state.loaded(read[0].model)
    config, device = loaded.config, loaded.model.device
    exact = str(loaded.model.dtype).removeprefix("torch.")
    precision = "bfloat16, the fast mode" if read[0].precision == "bf16" else exact
    place = "GPU" if device.type == "cuda" else "CPU"
    tokens = f"{' + '.join(str(len(here.encoding)) for here in read)} tokens"
    return " · ".join(filter(None, (  # a phone has room for the first of these
        short_name(loaded.name), note, f"{place}, {precision}", tokens,
        f"{config.num_hidden_layers} layers × {config.num_attention_heads} heads", config.attention_kind)))


def short_name(model: str) -> str:
    """A model's name without the folders it lies in."""
    return Path(model).name or model


# --- prose -------------------------------------------------------------------


@dataclass(frozen=True)
class Prose:
    """A page's words as HTML: above and below its picture."""

    heading: str
    below: str


@functools.lru_cache(maxsize=256)
def prose(name: str, view: str = "") -> Prose:
    """The words of NAME.toml in the prose; a page without them has its name only.

    Args:
        view: the open view, which may have a lead of its own: what is said of another one is left out, but for
            the sources. A word of a link that names no view is the first one.
    """
    path = PROSE / f"{name}.toml"
    words = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    title = title_of(name)
    heading = f"<h1>{inline(words.get('question', title))}</h1>"
    if lead := words.get("lead_of", {}).get(view, words.get("lead")):
        heading += f'<p class="bw-lead">{inline(lead)}</p>'
    eyebrow = f'<header class="bw-head"><p class="bw-eyebrow">{html.escape(title)}</p>'
    return Prose(eyebrow + glossary.mark(heading) + "</header>", glossary.mark(_below(words, view)))


def _below(words: dict, view: str) -> str:
    """Under the picture: how to read it beside what it doesn't prove, then the sources."""
    read = [*words.get("reading", {}).get(view, ()), *words.get("read", ())]
    not_proven = [*words.get("not_proven_by", {}).get(view, ()), *words.get("not_proven", ())]
    boxes = (("How to read it", read, " open"), ("What it does not prove", not_proven, " open"),
             ("Sources", words.get("sources"), ""))
    parts = []
    for title, lines, opened in boxes:
        if lines:
            items = "".join(f"<li>{inline(line)}</li>" for line in lines)
            parts.append(f"<details{opened}><summary>{title}</summary><ul>{items}</ul></details>")
    return f'<footer class="bw-below">{"".join(parts)}</footer>' if parts else ""


def inline(text: str) -> str:
    """Plain text to HTML: escaped, with `code`, *emphasis* and **strong**; a number and its % stay on one line."""
    escaped = notices.unbroken(html.escape(text, quote=False))
    escaped = re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped)
    escaped = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", escaped)
    return re.sub(r"\*([^*]+)\*", r"<em>\1</em>", escaped)

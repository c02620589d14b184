"""What the visitor looks at, and the one way from there to a Trace.

Models, the engine and its cache are shared by all visitors; everything of a
visitor is in the address or in the session.
"""

from __future__ import annotations

import functools
import gc
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from bert_core import LoadError, MissingPart, Trace, TraceRequest, load_engine
from bert_core.load import Loaded, shipped_names
from bert_core.model import Model
from bert_core.serving import Engine, Superseded
from bert_core.serving.engine import Steps
from bert_core.tokenizer import Encoding
from bert_core.trace import Overflow
from ui import going, notices, settings
from ui.turns import TURNS

Value = TypeVar("Value")

#: A sentence whose gap takes both sides: what was opened is a door until one reads on. It has a word that is cut.
DEFAULT_TEXT = "The schoolteacher opened the [MASK] and read the first chapter."
#: A shipped model that every page can read with, offered where the chosen one can't be used.
OFFERED = "twin-bert"
#: Pages that have a sentence of their own, or none.
OWN_SENTENCE = ("pretrain", "finetune")
#: How the name of a model begins that was made by fine-tuning here.
MADE = "mine:"
#: Key of the switch of the fast mode, and the pages that have it -> their views that are made for checking numbers
#: and stay exact, as all other pages do.
FAST = "fast"
FAST_PAGES = {
    "masking": ("The head", "Layer by layer", "Neurons", "Swap vectors", "80/10/10", "Pseudo-perplexity"),
    "attention": ("Through the layers", "Step by step", "Roles", "Act", "Attribution", "bertviz", "Export"),
    "compare": ("Masks and heads", "Reveal", "Surprise", "Writing", "Experiment"),
}
#: Models of a folder or the hub that a visitor's picker remembers.
MOST_OWN_MODELS = 8
#: Seconds for which a dropped link value stays on screen.
NOTICE_SECONDS = 20.0
#: Seconds for which a browser may still send the address that it had before a value was taken out.
ECHO_SECONDS = 2.0


@dataclass(frozen=True)
class Here:
    """What the visitor looks at.

    Attributes:
        text: the sentence, as typed.
        pair: the second sentence, or None.
        model: name of the model that makes the pictures.
        page: name of the page, as in its address.
        fast: whether the visitor asks for the fast mode, in a view that has one.
    """

    text: str
    pair: str | None
    model: str
    page: str
    fast: bool = False

    @property
    def precision(self) -> str:
        """What its pictures are computed in: 'fp32', or 'bf16' in the fast mode."""
        return "bf16" if self.fast and takes_fast(self.model) else "fp32"

    @functools.cached_property
    def encoding(self) -> Encoding:
        """The sentence as this model's tokenizer cuts it."""
        return loaded(self.model).tokenizer.encode(self.text, self.pair)

    def request(self, **changes: Any) -> TraceRequest:
        """A TraceRequest for the present input; `changes` are its other fields."""
        return replace(TraceRequest(self.text, self.pair, model=self.model, precision=self.precision), **changes)


def here() -> Here:
    """The present input, from the shared widgets."""
    values = st.session_state
    pair = values.get("pair") or None
    model, page = chosen_model(), values.get("_page", "")
    return Here(values.get("text") or "", pair, settings.default_model() if waits_for(model) else model, page,
                wants_fast(page))


def wants_fast(page: str) -> bool:
    """Whether the visitor has switched the fast mode on, and the page's open view has it.

    The view's name may still be the last page's: then the first one opens here, which is fast.
    """
    return (settings.fast_is_offered() and bool(st.session_state.get(FAST)) and page in FAST_PAGES
            and open_view() not in FAST_PAGES[page])


def open_view() -> str:
    """Name of the open view, '' for the first, before the page has drawn the switch: a link may say any word."""
    asked = st.query_params.get("view", "")
    return asked if going.is_by_history() else st.session_state.get("view") or asked


def takes_fast(model: str) -> bool:
    """Whether the fast mode can run this model: our own block, whose precision we choose."""
    return isinstance(loaded(model).model, Model)


def chosen_model() -> str:
    """The model that the visitor or the link chose, whether it is here or not; a folder in the one spelling."""
    return settings.one_spelling(st.session_state.get("model") or settings.default_model())


def waits_for(model: str) -> bool:
    """Whether this model has to be downloaded before it can make pictures; the default one makes them meanwhile."""
    return model != settings.default_model() and model not in own_models() and settings.must_be_fetched(model)


def engine() -> Engine:
    """The engine of this process, as the pages use it; a setting that names none is the end of the page."""
    return or_stop(_engine)


@st.cache_resource(show_spinner="Loading the model …", max_entries=1)
def _engine() -> Engine:
    return start_engine()


def start_engine() -> Engine:
    """Load the engine, or wait for who is loading it; what it loaded is frozen out of garbage collection.

    Raises:
        LoadError: the default model can't be loaded.
    """
    started = load_engine(settings.default_model(), settings.check_model_name)
    gc.collect()
    gc.freeze()
    return started


def loaded(name: str | None = None) -> Loaded:
    """Model and tokenizer, or the one-line problem and the end of the page."""
    name = name or here().model
    with TURNS.away(unless=engine().has(name)):
        found = or_stop(lambda: _loaded(name))
    if name not in shipped_names() and name not in model_names():
        keep_own(found)
    return found


def _loaded(name: str) -> Loaded:
    """From the engine; a model that this visitor made, and others have pushed out since, is made again."""
    try:
        return engine().loaded(name)
    except LoadError:
        again = _makers().get(name)
        if again is None:
            raise
    try:
        model = again()
    except (OSError, ValueError):
        raise LoadError(f"{name}: the run that made it is gone; it has to be trained again") from None
    engine().register(model)
    return model


def ours(name: str, wanted: str) -> Loaded:
    """A model whose layers are this project's own, or one line that says why there is no picture.

    Args:
        wanted: what the picture needs of it, such as 'its tables of embeddings'.
    """
    found = loaded(name)
    if not isinstance(found.model, Model):
        stop(f"{name} runs through transformers' own {found.config.model_type}, which does not give {wanted}. "
             f"Choose a BERT, such as {OFFERED}, for this view.", instead())
    return found


def keep_own(model: Loaded, again: Callable[[], Loaded] | None = None) -> None:
    """Remember a model that this visitor loaded or made, and what it can do.

    Args:
        again: makes the model once more, for one that has no folder and no hub id.
    """
    _remember(model.name, model.info.tasks, again)


def _remember(name: str, tasks: tuple[str, ...], again: Callable[[], Loaded] | None) -> None:
    kept = dict(list({**own_models(), name: tasks}.items())[-MOST_OWN_MODELS:])
    makers = _makers() | ({} if again is None else {name: again})
    st.session_state["_own_models"] = kept
    st.session_state["_makers"] = {name: maker for name, maker in makers.items() if name in kept}


@dataclass(frozen=True)
class Lent:
    """A model that a teacher made in this visit, for those who follow: what it can do, and what makes it."""

    tasks: tuple[str, ...]
    make: Callable[[], Loaded]


def lend(names: Iterable[str]) -> dict[str, Lent]:
    """Those of the names that are models which this visitor made."""
    return {name: Lent(own_models()[name], _makers()[name]) for name in names if name in _makers()}


def borrow(lent: Mapping[str, Lent]) -> None:
    """Have what a teacher made among this visitor's own models, for the rest of the visit."""
    for name, model in lent.items():
        if name not in _makers():  # who reloaded may have it from the engine, and nothing that makes it
            _remember(name, model.tasks, model.make)


def _makers() -> dict[str, Callable[[], Loaded]]:
    """Name -> what makes the model, of those that were made in a visit: this one, or that of a room's teacher."""
    return st.session_state.get("_makers", {})


def own_models() -> dict[str, tuple[str, ...]]:
    """Name -> tasks of the models that this visitor loaded or made."""
    return st.session_state.get("_own_models", {})


def was_made_here(name: str) -> bool:
    """Whether this model was trained in a visit, this or a teacher's: it has neither a folder nor a hub id."""
    return name.startswith(MADE)


def model_names() -> list[str]:
    """Shipped models, the default, and those that this visitor loaded; loads none of them."""
    return list(dict.fromkeys((*shipped_names(), settings.default_model(), *own_models())))


def trace(request: TraceRequest) -> Trace:
    """Run the request, or show the one-line problem and stop the page."""
    return traces([request])[0]


def traces(requests: Sequence[TraceRequest], keep: bool = True) -> list[Trace]:
    """Run several requests as one batch, or show the problem and stop.

    Args:
        keep: False leaves them out of the cache that all visitors share.
    """
    named = [r if r.model else replace(r, model=here().model) for r in requests]
    for name in {r.model for r in named}:
        loaded(name)
    return or_stop(lambda: raw_traces(named, keep))


def raw_traces(requests: Sequence[TraceRequest], keep: bool = True) -> list[Trace]:
    """As `traces`, of loaded models; raises EngineError or ValueError, as what is cached must not draw anything."""
    with TURNS.away(unless=engine().has(*requests)):
        return engine().run_many(requests, visitor=visitor(), keep=keep)


def shared(make: Callable[..., Value], *of: Any) -> Value:
    """What one visitor's run makes for everyone (a cached function and its arguments), or the problem and the stop.

    Others draw while it is made, and no newer request of this visitor takes its place.
    """
    was_made = _was_made(make.__module__, make.__name__, *of)
    with TURNS.away(unless=was_made.is_set()):
        value = or_stop(lambda: make(*of))
    was_made.set()
    return value


@st.cache_resource(show_spinner=False, max_entries=512)
def _was_made(*what: Any) -> threading.Event:
    """Set once it was made in this process; `make` has it at hand then, or makes it again while this visitor draws."""
    return threading.Event()


def call(steps: Steps[Value], request: TraceRequest, *rest: Any) -> Value:
    """Engine.call in this visitor's name: EngineError or ValueError if it can't be done (see `or_stop`)."""
    with TURNS.away():
        return engine().call(steps, request, *rest, visitor=visitor())


def visitor() -> str | None:
    """Who asks, for the engine's queue: this tab's session, None outside one."""
    context = get_script_run_ctx(suppress_warning=True)
    return context.session_id if context else None


def or_stop(action: Callable[[], Value]) -> Value:
    """Do it, or show the one-line problem and stop the page."""
    try:
        return action()
    except Superseded:  # a newer run of this tab draws the picture
        st.stop()
    except (LoadError, MissingPart, Overflow) as problem:
        stop(str(problem), instead())
    except ValueError as problem:
        stop(str(problem))


def instead() -> str | None:
    """The model to offer where the chosen one can't be used; None where it is that one."""
    return OFFERED if chosen_model() != OFFERED else None


def stop(problem: str, model: str | None = None) -> None:
    """Show one line that says what is wrong and what to do, and end the page.

    Args:
        model: one that can do it, offered as a button.
    """
    notices.problem(problem)
    if model:
        st.button(f"Read with {model}", key="instead", on_click=choose_model, args=(model,))
    notices.ready(here().text, "No picture: see the message above.", dropped())
    st.stop()


def choose_model(name: str) -> None:
    """Make it the visitor's model; for callbacks, as a widget holds it. The load itself checks everything."""
    st.session_state["model"] = name


# --- values that live in the address only ------------------------------------


def param(key: str, parse: Callable[[str], Value], default: Value) -> Value:
    """The value of a parameter of the address that no widget holds.

    Args:
        key: name of the parameter.
        parse: text to value; raises ValueError if the text is none.
        default: where the address doesn't say, or says nonsense (which is told
            to the visitor).
    """
    raw = given(key)
    if raw is None:
        return default
    try:
        return parse(raw)
    except ValueError:
        if not was_set_here(key):
            drop(key, raw)
        return default


def was_set_here(key: str) -> bool:
    """Whether the parameter's present value was chosen in this session, not brought by a link."""
    return st.session_state.get(f"_set_{key}") == st.query_params.get(key)


def make_own(key: str, raw: str) -> None:
    """The visitor has gone on from this value of the address: if it fits no more, no link is to blame."""
    if st.query_params.get(key) == raw:
        st.session_state[f"_set_{key}"] = raw


def given(key: str) -> str | None:
    """What the address says of a parameter that no widget holds, None where it says nothing.

    A browser sends its address with every rerun. A page that looks again and
    again has one on its way while a click takes a value out, and what that one
    brings back is not what the visitor wants.
    """
    raw = st.query_params.get(key)
    taken_out, since = st.session_state.get(f"_out_{key}", (None, 0.0))
    if raw is None or raw != taken_out or time.monotonic() - since > ECHO_SECONDS or going.is_by_history():
        return raw
    del st.query_params[key]
    return None


def set_param(key: str, raw: str | None) -> None:
    """Put a value in the address; None or '' takes it out."""
    _keep_in_step()
    st.session_state[f"_set_{key}"] = raw
    if raw:
        st.session_state.pop(f"_out_{key}", None)
        st.query_params[key] = raw
    elif key in st.query_params:
        going.take_out(key)


def _keep_in_step() -> None:
    """Let the server's copy of the address say what the shared inputs hold.

    While one types, the copy that a browser sends may be a word behind, and whatever
    is put into the address would put the last sentence back beside it.
    """
    context = get_script_run_ctx(suppress_warning=True)
    if context is None:
        return
    with context.session_state.query_params() as address:
        for key, default in (("text", DEFAULT_TEXT), ("pair", "")):
            value = st.session_state.get(key, default) or ""
            if value != default:
                address.set_with_no_forward_msg(key, value)
            elif key in st.session_state:
                address.discard_param_no_forward_msg(key)


def drop(key: str, raw: str) -> None:
    """Remember that the address had a value which can't be used, to say so."""
    notices = st.session_state.setdefault("_dropped", {})
    notices[key] = (raw[:60], time.monotonic())


def dropped() -> list[str]:
    """Lines about parameters whose values were dropped lately."""
    notices = st.session_state.get("_dropped", {})
    now = time.monotonic()
    fresh = {key: (raw, since) for key, (raw, since) in notices.items() if now - since < NOTICE_SECONDS}
    st.session_state["_dropped"] = fresh
    return [_why_dropped(key, raw) for key, (raw, _) in fresh.items()]


def _why_dropped(key: str, raw: str) -> str:
    if raw.startswith(MADE):
        return f"{raw} is kept by another visit or tab; Fine-tune keeps it for this one too, while its run is there."
    return f"The address has “{raw}” for “{key}”, which can't be used with what is on screen; it was left out."

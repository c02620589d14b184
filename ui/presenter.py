"""Presenter mode: larger type, less around it, page by page with a clicker; and a teacher's links.

Parameters of the address, kept for the session once seen:
present=1    larger type, no sidebar, PageDown and PageUp go through the pages
hide=a,b     leaves out: inputs, model, pages, controls, reading
fix=1        controls are shown and can't be changed
present=0    back to normal
Escape ends the large type only: what a link hides or fixes stays so.
A picture can be a control too: where controls are fixed or hidden it can be read
by pointer and keyboard, and takes no change.
Nothing of this draws anything when it isn't in use.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from bert_core.serving.rooms import View
from ui import components, going, rooms, state

#: What belongs to the frame, and stays in use whatever a link fixes.
_FRAME = ":not(.st-key-bw_room *, .st-key-bw_tour *, .st-key-bw_lesson *, .st-key-leave_presenter *)"
#: What a link can hide -> selectors of it.
PARTS = {
    "inputs": '[data-testid="stMain"] [data-testid="stTextInput"]' + _FRAME,
    "model": '[data-testid="stSidebar"] [data-testid="stSelectbox"]',
    "pages": '[data-testid="stSidebar"], [data-testid="stExpandSidebarButton"]',
    "controls": ", ".join(f'[data-testid="stMain"] [data-testid="{name}"]{_FRAME}' for name in (
        "stButtonGroup", "stSelectbox", "stSlider", "stNumberInput", "stCheckbox", "stRadio", "stMultiSelect",
        "stTextArea", "stFileUploader", "stButton", "stFormSubmitButton")),
    "reading": ".bw-below",
}
#: Components: they draw pictures, and take clicks and keys.
PICTURES = ('[data-testid="stMain"] [data-testid^="stBidiComponent"]'
            ':not(.st-key-c_ready *, .st-key-c_presenter *, [class*="st-key-c_store"] *)')
_CHOICE_OF_MODEL = ", ".join(f'[data-testid="stSidebar"] [data-testid="{name}"]'
                             for name in ("stSelectbox", "stTextInput", "stButton"))
#: Type of the page in pixels: usual, as .streamlit/config.toml says, and large.
USUAL_TYPE, LARGE_TYPE = 18, 23
#: Large type where there is little room, and where that is: an old projector's 720 lines, a phone.
LOW_TYPE, LOW = 19, "(max-width: 640px), (max-height: 800px)"
#: Pixels that a chart may be high there, so that it is seen whole.
LOW_CHART = 460
#: Telephones and tablets, which have none of the keys: there the sidebar leads on.
_KEYLESS = ("(max-width: 640px) or ((max-height: 500px) and (max-width: 950px)) or "
            "((max-width: 1100px) and (pointer: coarse))")
_LARGE = f"html {{ font-size: {LARGE_TYPE}px !important; }}" + """
.bw-below { display: none !important; }
@media not (""" + _KEYLESS + """) {
  [data-testid="stSidebar"], [data-testid="stExpandSidebarButton"] { display: none !important; } }
@media """ + _KEYLESS + """ {
  .bw-presenter { display: none; }
  .stApp:has([data-testid="stExpandSidebarButton"]) .bw-head h1 { padding-left: 2.4rem; } }
[data-testid="stMainBlockContainer"] { padding-top: 1rem; max-width: 1800px; }
.stApp .st-key-c_effect { padding-top: 1.4rem; } /* they rest below the hint of the keys */
@media """ + LOW + f""" {{ html {{ font-size: {LOW_TYPE}px !important; }} }}""" + """
/* an old projector: of 720 lines 19 are more than 23 of 1,080, and the picture needs the rest */
@media (max-height: 800px) {
  .stApp .bw-head h1 { font-size: 1.6rem; padding: 0; }
  /* the fields keep their names */
  :is(.st-key-text, .st-key-pair, .st-key-readers, .st-key-experiment, .st-key-film, :not(:has(.st-key-beside)) >
    [data-testid="stColumn"] .st-key-_compare_example) [data-testid="stWidgetLabel"] { display: none; }
  .cmp-total .cmp-models { display: none; } /* the bar at the page's end has them */
  [data-testid="stMainBlockContainer"] > [data-testid="stVerticalBlock"] { gap: .55rem; } }
@media (max-height: 1000px) { html { --bw-aside: none; } .bw-eyebrow, .bw-lead { display: none; } }"""


@dataclass(frozen=True)
class Presentation:
    """How the frame is changed for this visitor."""

    large: bool = False
    hidden: tuple[str, ...] = ()
    fixed: bool = False


PLAIN = Presentation()
#: What the last address had that means nothing here, once that was said.
_SAID = "_said_unknown_parts"
#: Whether the window is LOW, as the browser said.
_LOW = "_low_window"


def presentation() -> Presentation:
    """What the address or the session asks for."""
    params = st.query_params
    if "present" in params or "hide" in params or "fix" in params:
        asked = [part for part in params.get("hide", "").split(",") if part]
        unknown = {key: raw for key in ("present", "fix") if (raw := params.get(key, "")) not in ("0", "1")}
        unknown["hide"] = ",".join(part for part in asked if part not in PARTS)
        for key, raw in unknown.items():
            if raw and st.session_state.get(_SAID, {}).get(key) != raw:  # the address has it still at every later run
                state.drop(key, raw)
        st.session_state[_SAID] = unknown
        st.session_state["_presentation"] = Presentation(
            params.get("present") == "1", tuple(part for part in asked if part in PARTS), params.get("fix") == "1")
    return st.session_state.get("_presentation", PLAIN)


def keep_view(page: str) -> None:
    """Remember what the page on screen shows, for a link to it.

    In a page's first run the widgets still hold what the page before left; the
    address alone is its own then.
    """
    view = going.present_view(page)
    if last_view().page != page:
        view = replace(view, widgets=())
    st.session_state["_last_view"] = view


def last_view() -> View:
    """The page that was on screen last, of those that `keep_view` was told of."""
    return st.session_state.get("_last_view", View())


def end_large() -> None:
    """Back to the usual type; what is hidden or fixed stays so; for use in a callback."""
    st.session_state["_presentation"] = replace(presentation(), large=False)
    if "present" in st.query_params:
        del st.query_params["present"]


def leave() -> None:
    """Back to normal; for use in a callback."""
    st.session_state["_presentation"] = PLAIN
    for name in ("present", "hide", "fix"):
        if name in st.query_params:
            del st.query_params[name]


def draw(page: str, pages: tuple[str, ...]) -> None:
    """Change the frame, if this visitor asked for it.

    Args:
        page: name of the page on screen.
        pages: all pages in their order.
    """
    if page not in rooms.NOT_SHOWN:
        keep_view(page)
    shown = presentation()
    low = shown.large and st.session_state.get(_LOW, False)
    st.session_state[components.CHARTS] = components.Charts(
        (LOW_TYPE if low else LARGE_TYPE) / USUAL_TYPE if shown.large else 1.0, LOW_CHART if low else None)
    if shown == PLAIN:
        return
    hidden = "".join(f"{PARTS[part]} {{ display: none !important; }}" for part in shown.hidden)
    style = (_LARGE if shown.large else "") + hidden
    if style:
        st.html(f"<style>{style}</style>")
    controls = ", ".join((PARTS["controls"], PARTS["inputs"], _CHOICE_OF_MODEL)) if shown.fixed else ""
    pictures = PICTURES if shown.fixed or "controls" in shown.hidden else ""
    if shown.large or pictures:
        data = components.pack({"keys": shown.large, "controls": controls, "pictures": pictures,
                                "room": LOW if shown.large else "", "low": low})
        components.mount("presenter", "presenter", data, on_event=_turn(page, pages), isolated=False)


def _turn(page: str, pages: tuple[str, ...]):
    """What a key does: a page on, a page back, or out of the large type; and how much room the window has."""
    def receive(message: dict[str, Any]) -> None:
        if "low" in message:
            st.session_state[_LOW] = bool(components.number(message, "low", 2))
            return
        key = components.word(message, "key", ("next", "previous", "leave"))
        if key == "leave":
            end_large()
            return
        at = pages.index(page) if page in pages else 0
        going.to(View(pages[(at + (1 if key == "next" else -1)) % len(pages)]))
    return receive

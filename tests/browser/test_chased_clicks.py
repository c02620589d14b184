"""A click does what it says also where another run follows it at once, as under a hand that types on.

The newer run ends the click's own before that has drawn the button; what the
button's line did in the script was lost then, without a word.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

from bench._visitors import PATIENCE, Visitor

CHASES = 5


class Tab(Visitor):
    """A tab that clicks a button of a form and changes something else in the same moment."""

    def __init__(self, address: str, page: str, **query: str):
        super().__init__(address, page, **query)
        self.ids: dict[str, str] = {}

    def note(self, element: Element) -> None:
        super().note(element)
        for kind in ("button", "text_input"):
            if element.HasField(kind):
                self.ids[getattr(element, kind).label] = getattr(element, kind).id

    async def click_and_type(self, button: str, fields: dict[str, str], text: str) -> str:
        """Send both runs; what the page says until one of them is drawn to its end."""
        filled = [WidgetState(id=self.ids[label], string_value=value) for label, value in fields.items()]
        click = WidgetState(id=self.ids[button], trigger_value=True)
        for widgets in ([*filled, click], [*filled, WidgetState(id=self.ids["Sentence"], string_value=text)]):
            message = BackMsg()
            message.rerun_script.page_script_hash = self.page_hash
            message.rerun_script.query_string = "view=Room"
            message.rerun_script.widget_states.widgets.extend(widgets)
            await self.socket.send(message.SerializeToString())
            await asyncio.sleep(0.005)  # the first has begun
        return await asyncio.wait_for(self._said(), PATIENCE)

    async def _said(self) -> str:
        said = ""
        async for raw in self.socket:
            message = ForwardMsg.FromString(raw)
            kind = message.WhichOneof("type")
            if kind == "delta":
                self.note(message.delta.new_element)
                said += message.delta.new_element.html.body
            elif kind == "script_finished" and message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY:
                return said
        raise RuntimeError("the server closed before the page was drawn")


async def chased(address: str, button: str, fields: dict[str, str]) -> list[str]:
    """What the page says after each of CHASES clicks."""
    tab = Tab(address, "class", view="Room")
    await tab.open()
    said = [await tab.click_and_type(button, fields, f"Sentence {n}.") for n in range(CHASES)]
    await tab.close()
    return said


def said_by(address: str, button: str, **fields: str) -> list[str]:
    with ThreadPoolExecutor(1) as own:  # Playwright's loop may be running in this thread
        return own.submit(asyncio.run, chased(address, button, fields)).result()


def test_no_click_is_lost_on_a_form_that_another_run_draws_anew(address):
    for said in said_by(address, "Take control", **{"Code": "ABCDE", "Teacher's key": "none"}):
        assert "there is no room ABCDE" in said
    for said in said_by(address, "Join", **{"Room code": "ZZZZZ"}):
        assert "there is no room ZZZZZ" in said

"""A room whose teacher shows a classifier of their own."""

from __future__ import annotations

from dataclasses import replace

from bert_core.load import load_model
from tests.payloads import is_ready, page, visit
from ui import rooms


def test_a_class_reads_with_what_its_teacher_fine_tuned(checkpoint):
    room = rooms.registry().open()
    name = "mine:topic-head-0123abcd-e2"
    made = replace(load_model(checkpoint("BertForSequenceClassification")), name=name)
    teacher = page("cls", text="A fine dog.", classifier=name)
    teacher.session_state["_teaching"] = room
    teacher.session_state["_own_models"] = {name: made.info.tasks}
    teacher.session_state["_makers"] = {name: lambda: made}
    is_ready(teacher.run())
    follower = visit("tokens", room=room[0])
    is_ready(follower)
    assert (follower.session_state["_page"], follower.session_state["classifier"]) == ("cls", name)
    assert name in is_ready(follower)["status"]
    assert [one.proto.body for one in follower.get("html") if "LABEL_" in one.proto.body]  # its answer
    follower.button(key="_let_go").click().run()
    follower.switch_page("pages/tokens.py").run()
    follower.selectbox(key="model").set_value(name).run()  # theirs for the rest of the visit
    assert name in is_ready(follower)["status"]
    assert name not in visit("cls", text="A fine dog.").selectbox(key="model").options
    rooms.registry().close(*room)

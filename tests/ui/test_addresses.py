"""Links restore what they say, and say what they can't restore."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from bert_core.load import LoadError
from tests.payloads import drawn, is_ready, visit
from ui import settings, state


def test_a_link_restores_sentence_pair_view_and_controls():
    at = visit("masking", text="Paris is big.", pair="So is Rome.", k="9", mask="1,3")
    ready = is_ready(at)
    assert ready["text"] == "Paris is big."
    assert ready["lines"] == []
    gaps = drawn(at, "gaps")
    assert gaps["selected"] == [1, 3]
    assert [len(card["lists"][0]["rows"]) >= 9 for card in gaps["cards"]] == [True, True]
    assert at.text_input(key="pair").value == "So is Rome."


@pytest.mark.parametrize(("key", "value"), [
    ("view", "nonsense"), ("k", "99"), ("k", "many"), ("mask", "1,400"), ("mask", "x"), ("mask", "0"), ("mask", "-3"),
])
def test_a_value_that_cannot_be_used_is_dropped_and_said(key, value):
    lines = is_ready(visit("masking", text="Paris is big.", **{key: value}))["lines"]
    assert len(lines) == 1
    assert f"“{value}”" in lines[0]
    assert f"“{key}”" in lines[0]


def test_a_shorter_text_leaves_out_what_is_no_longer_there():
    at = visit("masking", text="one two three four five")
    at.query_params["mask"] = "2,5"
    at.run()
    assert drawn(at, "gaps")["selected"] == [2, 5]
    at.session_state["_set_mask"] = "2,5"
    at.text_input(key="text").set_value("one two").run()
    assert drawn(at, "gaps")["selected"] == [2]
    assert is_ready(at)["lines"] == []


def test_an_unknown_model_is_one_clear_line_and_no_traceback():
    at = visit("masking", model="no/such-model-here")
    assert not at.exception
    assert any("no/such-model-here" in element.proto.body for element in at.get("html"))
    assert drawn(at, "ready")["status"].startswith("No picture")


def test_a_model_without_the_head_says_so():
    at = visit("masking", model="twin-gpt")
    assert not at.exception
    assert any("twin-gpt has no trained masked-LM head" in element.proto.body for element in at.get("html"))


def test_folders_can_be_bounded_or_switched_off(monkeypatch, tmp_path, tiny_bert):
    monkeypatch.setenv("BOTH_WAYS_FOLDERS", "off")
    with pytest.raises(LoadError, match="switched off"):
        settings.check_model_name(tiny_bert)
    with pytest.raises(LoadError, match="switched off"):
        settings.check_model_name("../secrets")
    assert settings.check_model_name("owner/model") == "owner/model"
    monkeypatch.setenv("BOTH_WAYS_FOLDERS", str(tmp_path))
    with pytest.raises(LoadError):
        settings.check_model_name(str(tmp_path / ".." / "elsewhere" / "model"))
    assert settings.check_model_name(str(tmp_path / "model"))


@pytest.mark.parametrize("name", ["x" * 400, "a\x00b", "two\nlines"])
def test_a_name_that_is_no_name_is_refused(name):
    with pytest.raises(LoadError, match="no model's name"):
        settings.check_model_name(name)


@pytest.mark.parametrize("pause", ["fast", "1e9ms", "", "-1ms"])
def test_a_bad_pause_falls_back_to_the_default(monkeypatch, pause):
    monkeypatch.setenv("BOTH_WAYS_PAUSE", pause)
    assert settings.typing_pause() == "120ms"


def choose_with_old_value():
    import streamlit as st

    from ui import controls

    st.session_state.setdefault("layer", 6)
    st.session_state.setdefault("way", "gone")
    st.write(controls.slider("Layer", 1, 4, "layer", 2), controls.choice("Way", ["a", "b"], "way"))


def test_a_stale_choice_is_forgotten():
    at = AppTest.from_function(choose_with_old_value).run()
    assert not at.exception
    assert at.slider[0].value == 2
    assert at.segmented_control[0].value == "a"


def test_the_default_sentence_has_a_gap():
    assert "[MASK]" in state.DEFAULT_TEXT

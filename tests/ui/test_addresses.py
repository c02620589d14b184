"""Links restore what they say, and say what they can't restore."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from bert_core.load import LoadError
from bert_core.serving.local import LocalEngine
from bert_core.trace import TraceRequest
from tests.payloads import PATIENCE, ROOT, drawn, is_ready, page, plain_line, said, visit
from ui import settings, shell, state
from ui.views import masking
from ui.views.task_models import put


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
    ("view", "nonsense"), ("k", "99"), ("k", "many"), ("k", "3.5"),
    ("mask", "1,400"), ("mask", "x"), ("mask", "0"), ("mask", "-3"),
])
def test_a_value_that_cannot_be_used_is_dropped_and_said(key, value):
    lines = is_ready(visit("masking", text="Paris is [MASK].", **{key: value}))["lines"]
    assert len(lines) == 1
    assert f"“{value}”" in lines[0]
    assert f"“{key}”" in lines[0]


@pytest.mark.parametrize(("name", "view", "key", "value"), [
    ("masking", "80/10/10", "seed", "1.5"), ("masking", "80/10/10", "draws", "15"),
    ("tokens", "Compare", "pieces", "150"),
])
def test_a_number_between_the_steps_is_dropped_and_said(name, view, key, value):
    (line,) = is_ready(visit(name, view=view, **{key: value}))["lines"]
    assert f"“{value}” for “{key}”" in line


@pytest.mark.parametrize("values", [["x", "token"], ["token", "x"]])
def test_every_value_of_a_choice_of_many_is_looked_at(values):
    at = page("embeddings", view="Switch off and shuffle")
    at.query_params["off"] = values
    (line,) = is_ready(at.run())["lines"]
    assert "“x” for “off”" in line


def test_a_shorter_text_leaves_out_what_is_no_longer_there():
    at = visit("masking", text="one two three four five")
    at.query_params["mask"] = "2,5"
    at.run()
    assert drawn(at, "gaps")["selected"] == [2, 5]
    at.session_state["_set_mask"] = "2,5"
    at.text_input(key="text").set_value("one two").run()
    assert drawn(at, "gaps")["selected"] == [2]
    assert is_ready(at)["lines"] == []


def test_a_model_that_may_not_be_fetched_is_one_clear_line_and_no_traceback(monkeypatch):
    monkeypatch.setenv("BOTH_WAYS_HUB", "off")
    at = visit("tokens", model="no/such-model-here")
    assert "no/such-model-here: downloads are switched off" in plain_line(at)
    at.button(key="instead").click().run()
    assert is_ready(at)["status"].startswith("twin-bert ·")


def test_a_model_without_the_head_says_so_and_offers_one_that_has_it():
    at = visit("masking", model="twin-gpt", text="The [MASK] barked.")
    assert "twin-gpt has no trained masked-LM head" in plain_line(at)
    at.button(key="instead").click().run()
    assert is_ready(at)["status"].startswith("twin-bert ·")
    assert not [button for button in at.button if button.key == "instead"]


@pytest.fixture
def root(monkeypatch, tmp_path) -> Path:
    """The folder below which visitors may open models."""
    (tmp_path / "models").mkdir()
    monkeypatch.setenv("BOTH_WAYS_FOLDERS", str(tmp_path / "models"))
    return tmp_path / "models"


def test_a_folder_below_the_root_opens_on_a_page(root, tiny_bert):
    shutil.copytree(tiny_bert, root / "mine")
    at = visit("masking", model=str(root / "mine"), text="the dog [MASK]")
    assert is_ready(at)["status"].startswith("mine ·")


@pytest.mark.parametrize("name", ["models/mine", "./models/mine", "models//mine/", "models/../models/mine",
                                  "{root}/mine"])
def test_a_folder_is_one_model_however_it_is_written(root, tiny_bert, monkeypatch, name):
    shutil.copytree(tiny_bert, root / "mine")
    monkeypatch.chdir(root.parent)
    name = name.format(root=root)
    assert settings.one_spelling(name) == "models/mine"
    at = visit("masking", model=name, text="the dog [MASK]")
    is_ready(at)
    assert list(at.session_state["_own_models"]) == ["models/mine"]
    monkeypatch.setenv("BOTH_WAYS_MODEL", str(root / "mine"))
    assert settings.one_spelling(name) == str(root / "mine")


@pytest.mark.parametrize("name", ["twin-bert", "someone/tiny", "./someone/tiny", "~nobody/x", "mine:topic", "/etc",
                                  "./twin-bert"])
def test_what_is_no_folder_here_stays_as_it_is_written(root, monkeypatch, name):
    monkeypatch.chdir(root.parent)
    assert settings.one_spelling(name) == name


def test_a_folder_that_is_called_as_a_shipped_model_is_not_taken_for_it(root, monkeypatch):
    monkeypatch.chdir(root.parent)
    (root.parent / "twin-bert").mkdir()
    assert settings.one_spelling("./twin-bert") == str(root.parent / "twin-bert")


@pytest.mark.parametrize("name", ["{root}/../elsewhere/mine", "{root}/link", "{root}x/mine", "/etc", "~", "~nobody/x",
                                  "../secrets", "bert_core/loading", "assets", "..\\x"])
def test_no_folder_outside_the_root_is_opened(root, tiny_bert, name):
    shutil.copytree(tiny_bert, root.parent / "elsewhere" / "mine")
    shutil.copytree(tiny_bert, f"{root}x/mine")
    (root / "link").symlink_to(root.parent / "elsewhere" / "mine")
    with pytest.raises(LoadError, match="only below the folder that this server keeps"):
        settings.check_model_name(name.format(root=root))


def test_a_link_to_a_folder_elsewhere_is_one_clear_line_on_a_page(root, tiny_bert, tmp_path):
    elsewhere = shutil.copytree(tiny_bert, tmp_path / "elsewhere")  # no test before has opened this one where it may
    assert "only below the folder that this server keeps" in plain_line(visit("masking", model=str(elsewhere)))


def test_the_engine_of_the_pages_asks_before_it_loads(root, tiny_bert, tiny_gpt):
    engine = LocalEngine(tiny_gpt, check=settings.check_model_name)
    with pytest.raises(LoadError, match="only below"):
        engine.run(TraceRequest("the dog", model=tiny_bert))
    assert engine.loaded().name == tiny_gpt


def test_without_a_setting_the_root_is_the_models_folder(monkeypatch, tiny_bert):
    monkeypatch.delenv("BOTH_WAYS_FOLDERS", raising=False)
    monkeypatch.setenv("BOTH_WAYS_HUB", "off")
    assert settings.folders_root() == ROOT / "models"
    assert settings.check_model_name("models/mine") == "models/mine"
    with pytest.raises(LoadError, match="only below"):
        settings.check_model_name(tiny_bert)


def test_folders_can_be_switched_off(monkeypatch, tiny_bert):
    monkeypatch.setenv("BOTH_WAYS_FOLDERS", "off")
    for name in (tiny_bert, "../secrets", "assets"):
        with pytest.raises(LoadError, match="switched off"):
            settings.check_model_name(name)


@pytest.mark.parametrize("name", ["x" * 400, "a\x00b", "two\nlines"])
def test_a_name_that_is_no_name_is_refused(name):
    with pytest.raises(LoadError, match="no model's name"):
        settings.check_model_name(name)


@pytest.mark.parametrize("pause", ["fast", "1e9ms", "", "-1ms"])
def test_a_bad_pause_falls_back_to_the_default(monkeypatch, pause):
    monkeypatch.setenv("BOTH_WAYS_PAUSE", pause)
    assert settings.typing_pause() == "120ms"


@pytest.mark.parametrize(("asked", "kept"), [("", 300), ("7", 7), ("0", 1), ("99999", 86_400), ("1e9", 300)])
def test_runs_are_kept_for_a_bounded_time(monkeypatch, asked, kept):
    monkeypatch.setenv("BOTH_WAYS_RUN_KEEP", asked)
    assert settings.run_keep() == kept


def choose_with_old_value():
    import streamlit as st

    from ui import controls

    st.session_state.setdefault("layer", 6)
    st.session_state.setdefault("way", "gone")
    st.write(controls.slider("Layer", 1, 4, "layer", 2), controls.choice("Way", ["a", "b"], "way"))


def test_a_stale_choice_is_forgotten():
    at = AppTest.from_function(choose_with_old_value, default_timeout=PATIENCE).run()
    assert not at.exception
    assert at.slider[0].value == 2
    assert at.segmented_control[0].value == "a"


def test_the_default_sentence_has_a_gap():
    assert "[MASK]" in state.DEFAULT_TEXT


@pytest.mark.parametrize(("key", "name"), [("text", "sentence"), ("pair", "second sentence")])
def test_of_a_link_s_text_the_field_takes_what_fits_and_says_so(key, name):
    most = shell.MOST_IN_ADDRESS[key]
    long = "dog " * (most // 4) + "and more"
    at = visit("tokens", **{"text": "A dog.", key: long})
    assert f"The {name} has all that its field takes, here {most:,} characters" in said(at)
    assert at.text_input(key=key).value == long[:most]
    assert "its field takes" not in said(visit("tokens", **{"text": "A dog.", key: long[:most - 12]}))


@pytest.mark.parametrize(("letter", "size"), [("狗", 9), ("é", 6), ("🐕", 12)])
def test_a_script_that_is_longer_in_an_address_is_cut_sooner(letter, size):
    """A link of both fields can be opened again, whatever they are written in."""
    at = visit("tokens", text="A dog.")
    at.text_input(key="text").set_value(letter * 20_000).run()
    fits = shell.MOST_IN_ADDRESS["text"] // size
    assert at.text_input(key="text").value == letter * fits
    assert f"here {fits:,} characters" in said(at)


@pytest.mark.parametrize("key", ["text", "pair"])
def test_a_long_example_is_cut_and_said_too(monkeypatch, key):
    example = {"text": "No gap here.", "pair": None, key: "dog " * 20_000}
    monkeypatch.setattr(masking, "TO_TRY", ("one",))
    monkeypatch.setattr(masking.task_models, "put", lambda *_: put(example["text"], example["pair"]))
    at = visit("masking", text="No gap.")
    at.button(key="try_masking_0").click().run()
    assert "all that its field takes" in said(at)
    assert at.text_input(key=key).value == "dog " * (shell.MOST_IN_ADDRESS[key] // 4)

"""Models that a visitor made: kept by name, and made again when others pushed them out."""

from types import SimpleNamespace

import pytest

from bert_core import LoadError
from bert_core.load import load_model
from bert_core.training.live.classifier import epoch_model
from bert_core.training.live.folder import RunFolder
from bert_core.training.live.specs import FinetuneSpec
from ui import state
from ui.views import finetune_runs


class Engine:
    """Knows the models that were registered, as LocalEngine does."""

    def __init__(self):
        self.known = {}

    def loaded(self, name):
        if name not in self.known:
            raise LoadError(f"{name!r} is no shipped model, no folder and no hub id")
        return self.known[name]

    def register(self, model):
        self.known[model.name] = model


@pytest.fixture
def engine(monkeypatch):
    found = Engine()
    monkeypatch.setattr(state, "engine", lambda: found)
    monkeypatch.setattr(state.st, "session_state", {})
    return found


def made(name):
    return SimpleNamespace(name=name, info=SimpleNamespace(tasks=("classify",)))


def test_a_model_that_others_pushed_out_is_made_again(engine):
    state.keep_own(made("mine:topic"), again=lambda: made("mine:topic"))
    assert state._loaded("mine:topic").name == "mine:topic"
    assert list(engine.known) == ["mine:topic"]


def test_a_model_whose_run_is_gone_says_so(engine, tmp_path, tiny_bert):
    gone, base = RunFolder(tmp_path / "gone"), load_model(tiny_bert)
    state.keep_own(made("mine:topic"), again=lambda: epoch_model(gone, 0, base, "mine:topic"))
    with pytest.raises(LoadError, match="has to be trained again"):
        state._loaded("mine:topic")


def test_nobody_elses_model_is_made(engine):
    with pytest.raises(LoadError, match="no shipped model"):
        state._loaded("mine:somebody")


def test_only_the_last_models_are_remembered(engine):
    for n in range(state.MOST_OWN_MODELS + 3):
        state.keep_own(made(f"mine:{n}"), again=lambda: made("x"))
    assert list(state.own_models()) == [f"mine:{n}" for n in range(3, state.MOST_OWN_MODELS + 3)]
    assert set(state.st.session_state["_makers"]) == set(state.own_models())


def test_what_was_made_is_lent_and_what_was_only_loaded_is_not(engine):
    state.keep_own(made("models/theirs"))
    state.keep_own(made("mine:topic"), again=lambda: made("mine:topic"))
    lent = state.lend(["models/theirs", "mine:topic", "mine:nobody"])
    assert list(lent) == ["mine:topic"]
    state.st.session_state.clear()  # who follows
    state.borrow(lent)
    assert state.own_models() == {"mine:topic": ("classify",)}
    assert state._loaded("mine:topic").name == "mine:topic"


def test_a_teacher_who_reloaded_lends_again_what_the_engine_still_had(engine):
    state.keep_own(made("mine:topic"))  # loaded by the name in the address, before the room is taken back
    assert state.lend(["mine:topic"]) == {}
    state.borrow({"mine:topic": state.Lent(("classify",), lambda: made("mine:topic"))})
    assert list(state.lend(["mine:topic"])) == ["mine:topic"]


def test_what_one_has_is_not_borrowed_once_more(engine):
    state.keep_own(made("mine:topic"), again=lambda: made("mine:topic"))
    for n in range(state.MOST_OWN_MODELS - 1):
        state.keep_own(made(f"mine:{n}"), again=lambda: made("x"))
    state.borrow(state.lend(["mine:topic"]))
    assert next(iter(state.own_models())) == "mine:topic"  # still the oldest


def test_a_download_that_waits_for_its_click_keeps_no_model_of_its_own(monkeypatch, tmp_path, tiny_bert):
    made, run = [], SimpleNamespace(folder=RunFolder(tmp_path), spec=FinetuneSpec(base=tiny_bert))
    monkeypatch.setattr(finetune_runs.state, "loaded", load_model)
    monkeypatch.setattr(finetune_runs.classifier, "epoch_model", lambda *about: made.append(about) or about)
    monkeypatch.setattr(finetune_runs.classifier, "to_zip", lambda model: f"zip of {model[1]} {model[3]}".encode())
    make = finetune_runs.zip_later(run, 4, "mine:topic")
    assert made == []
    assert make() == b"zip of 4 mine:topic"
    assert made[0][0] is run.folder

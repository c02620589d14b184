"""Both pages draw for anything that a link or a visitor brings, before any trainer is asked."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120
ODD = ["", "[MASK]", "[MASK] [MASK] [MASK] [MASK]", "<script>alert(1)</script>", "漢字 😀 שלום", "a\u0007b", "x" * 160]


def open_page(name: str, **parameters: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=PATIENCE)
    for key, value in parameters.items():
        app.query_params[key] = value
    app.run()
    return app.switch_page(f"pages/{name}.py").run()


@pytest.fixture(scope="module")
def pretrain() -> AppTest:
    return open_page("pretrain")


@pytest.mark.parametrize("sentence", ODD)
def test_pre_train_draws_any_sentence(pretrain, sentence):
    pretrain.text_input(key="film").set_value(sentence).run()
    assert not pretrain.exception


def test_an_experiment_changes_the_run_and_asks_first(pretrain):
    pretrain.selectbox(key="experiment").set_value("One way").run()
    assert not pretrain.exception
    assert [radio.key for radio in pretrain.radio] == ["ask_One way"]
    pretrain.selectbox(key="experiment").set_value("As in the paper").run()
    assert not pretrain.radio


@pytest.mark.parametrize("parameters", [
    {"run": "x"}, {"run": "0" * 32}, {"over": "1" * 32}, {"layer": "0", "head": "77", "frame": "9"}, {"size": "9"},
])
def test_pre_train_survives_any_link(parameters):
    assert not open_page("pretrain", **parameters).exception


@pytest.mark.parametrize("parameters", [{}, {"task": "Who does it?", "way": "Head only"}, {"task": "no"}, {"tune": "z"},
                                        {"task": "Your own table"}])
def test_fine_tune_survives_any_link(parameters):
    app = open_page("finetune", **parameters)
    assert not app.exception
    train = app.button(key="train")
    assert train.disabled == (parameters.get("task") == "Your own table")

"""Checkpoints as others make them, with something odd about them: what the pages say of such a model is true."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file, save_file
from streamlit.testing.v1 import AppTest
from tokenizers import Tokenizer

from bert_core.load import load_model
from bert_core.trace import TraceRequest, run_batch
from tests.payloads import drawn, is_ready, plain_line, said, visit

TEXT = "the dog barked"


@pytest.fixture
def own(tmp_path, monkeypatch) -> Callable[..., Path]:
    """own(folder, name) -> a copy of a checkpoint, to be changed, where visitors may open it."""
    monkeypatch.setenv("BOTH_WAYS_FOLDERS", str(tmp_path))
    return lambda folder, name="own": Path(shutil.copytree(folder, tmp_path / name))


def look(folder: Path | str, page: str, view: str, **parameters: object) -> AppTest:
    return visit(page, model=str(folder), view=view, **parameters)


@pytest.mark.parametrize(("page", "view"), [
    ("embeddings", "Neighbours"), ("embeddings", "The sum"), ("code", "Stages"), ("code", "Walk"), ("code", "Script")])
def test_a_piece_that_only_the_tokenizer_knows_is_one_line(own, tiny_bert, page, view):
    folder = own(tiny_bert)
    fast = Tokenizer.from_file(str(folder / "tokenizer.json"))
    count = fast.get_vocab_size()
    fast.add_tokens(["xylophone"])
    fast.save(str(folder / "tokenizer.json"))
    at = look(folder, page, view, text="a xylophone barked", token=2)
    assert plain_line(at).startswith(f"vocabulary id {count} is outside 0 to {count - 1}")


# --- names of classes ------------------------------------------------------------


def logits(folder: str) -> np.ndarray:
    return run_batch(load_model(folder), [TraceRequest(TEXT)])[0].logits


@pytest.mark.parametrize("chosen", [0, 1])
def test_two_classes_of_one_name_are_two_choices(checkpoint, monkeypatch, chosen):
    folder = checkpoint("BertForSequenceClassification", id2label={0: "neg", 1: "neg", 2: "pos"})
    monkeypatch.setenv("BOTH_WAYS_MODEL", folder)
    at = visit("cls", view="The head", text=TEXT, **{"class": f"neg ({chosen})"})
    assert at.button_group(key="class").options == ["neg (0)", "neg (1)", "pos"]
    (summed,) = [line for line in said(at).splitlines() if "Sum of the last strip" in line]
    assert f"the run itself gave {logits(folder)[chosen]:+.4f}".replace("-", "−") in summed
    bars = drawn(visit("cls", view="Answer", text=TEXT), "verdict")["sides"][0]["bars"]
    assert [bar["label"] for bar in bars] == ["neg (0)", "neg (1)", "pos"]
    assert sum(bar["value"] for bar in bars) == pytest.approx(1)


def test_of_many_classes_the_opened_one_is_said_and_how_many_are_not(checkpoint, monkeypatch):
    folder = checkpoint("BertForSequenceClassification", id2label={n: f"class {n}" for n in range(40)})
    monkeypatch.setenv("BOTH_WAYS_MODEL", folder)
    least, *_, best = np.argsort(logits(folder)).tolist()
    at = visit("cls", view="The head", text=TEXT, **{"class": f"class {least}"})
    words = said(at).partition("Logits: ")[2].partition(";")[0]
    assert words.startswith(f"class {best} ")
    assert f", 34 more, and class {least} " in words


# --- what a model hasn't got --------------------------------------------------------


@pytest.mark.parametrize(("name", "kinds", "line"), [
    ("BERT", ["token", "segment", "position"], ""),
    ("RoBERTa", ["token", "segment", "position"], "has one segment vector, the same for every token of both sentences"),
    ("DistilBERT", ["token", "position"], "has no segment embeddings: two vectors are added, token and position"),
])
@pytest.mark.parametrize("view", ["The sum", "Switch off and shuffle"])
def test_only_embeddings_that_are_there_can_be_switched_off(family, monkeypatch, view, name, kinds, line):
    monkeypatch.setenv("BOTH_WAYS_MODEL", family(name))
    at = visit("embeddings", view=view, text=TEXT, pair="a cat")
    is_ready(at)
    assert at.button_group(key="off").options == kinds
    assert line in said(at)
    assert ("segment vector" in said(at) or "no segment" in said(at)) == bool(line)


@pytest.mark.parametrize("name", ["GPT-2", "ModernBERT"])
def test_embeddings_that_can_not_be_switched_off_are_not_offered(family, monkeypatch, name):
    monkeypatch.setenv("BOTH_WAYS_MODEL", family(name))
    at = visit("embeddings", view="Switch off and shuffle", text=TEXT)
    assert "runs through transformers" in plain_line(at)
    assert at.button(key="instead").label == "Read with twin-bert"
    assert [group.key for group in at.button_group] == ["view"]


def test_a_head_that_is_not_laid_open_leads_on(family, monkeypatch):
    monkeypatch.setenv("BOTH_WAYS_MODEL", family("ModernBERT", "ModernBertForSequenceClassification"))
    at = visit("cls", view="The head", text=TEXT)
    assert "does not give the operands of its head" in plain_line(at)
    at.button(key="instead").click().run()
    assert is_ready(at)["status"].startswith("twin-bert-sst2 ·")


# --- weights that no training makes ---------------------------------------------------


def with_weights(folder: Path, change: Callable) -> Path:
    file = folder / "model.safetensors"
    save_file({name: change(name, tensor) for name, tensor in load_file(file).items()}, file, {"format": "pt"})
    return folder


@pytest.mark.parametrize(("page", "view"), [
    ("masking", "The head"), ("masking", "Neurons"), ("masking", "Fill the gap"), ("attention", "Through the layers"),
    ("attention", "All heads"), ("meaning", "By layer"), ("code", "Stages"), ("code", "Walk"), ("code", "Script")])
def test_numbers_that_overflow_are_one_line(own, tiny_bert, page, view):
    folder = with_weights(own(tiny_bert), lambda name, tensor: tensor + 1e38 * ("0.output.dense.weight" in name))
    at = look(folder, page, view, text="the dog [MASK]")
    assert plain_line(at).startswith(f"{folder}: its numbers overflow on this input")
    assert at.button(key="instead").label == "Read with twin-bert"


def test_numbers_that_overflow_in_transformers_code_are_one_line_too(own, family):
    folder = with_weights(own(family("DeBERTa")), lambda name, tensor: tensor + 1e38 * ("0.output.dense.w" in name))
    assert "its numbers overflow on this input" in plain_line(look(folder, "attention", "All heads", text=TEXT))


@pytest.mark.parametrize(("page", "view"), [("attention", "Through the layers"), ("compare", "Side by side")])
def test_vectors_of_no_length_have_no_shares(own, tiny_bert, page, view):
    folder = with_weights(own(tiny_bert), lambda name, tensor: 0 * tensor)
    parameters = {"follow": "true"} if page == "compare" else {}
    at = look(folder, page, view, text="the dog [MASK]", **parameters)
    assert "in layer 1 all that is added up has length 0" in said(at)
    assert "nan" not in said(at)


def test_positions_that_are_all_the_same_go_along_with_no_sinusoid(own, tiny_bert):
    folder = with_weights(own(tiny_bert), lambda name, tensor: 0 * tensor)
    at = look(folder, "family", "Wrong claims", text=TEXT)
    assert "37 × 15 numbers, all the same." in said(at)
    assert " nan" not in said(at)


# --- its own name -----------------------------------------------------------------------


def test_the_name_of_a_folder_is_no_markdown_on_a_button(own, tiny_classifier):
    folder = own(tiny_classifier, "*star*_u_[x](y) $x^2$ :red[hi] `b`")
    label = look(folder, "cls", "Answer", text=TEXT).button(key="to_attention").label
    assert label.endswith(r"\*star\*\_u\_\[x\]\(y\) \$x\^2\$ \:red\[hi\] \`b\`")

"""Models that stand on another: shared tensors and low-rank updates give the model that they stand for."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from bert_core import load
from bert_core.load import LoadError, load_model
from bert_core.loading import shared
from bert_core.trace import TraceRequest, run_batch
from tests.checkpoints import VOCABULARY

UPDATED = "bert.encoder.layer.1.attention.self.value.weight"


@pytest.fixture
def shelf(tiny_bert, tiny_classifier, tmp_path, monkeypatch):
    """A shelf of shipped models: a base, and a classifier of two low-rank factors and a head."""
    shutil.copytree(tiny_bert, tmp_path / "base")
    shutil.move(tmp_path / "base" / "tokenizer.json", tmp_path / "tokenizer.json")
    task = tmp_path / "task"
    task.mkdir()
    generator = torch.Generator().manual_seed(1)
    own = {f"{UPDATED}.low_rank_in": torch.randn(2, 15, generator=generator),
           f"{UPDATED}.low_rank_out": torch.randn(15, 2, generator=generator)}
    whole = load_file(f"{tiny_classifier}/model.safetensors")
    head = {name: whole[name] for name in ("classifier.weight", "classifier.bias")}
    save_file(own | head, task / "model.safetensors")
    config = json.loads(Path(tiny_classifier, "config.json").read_text())
    config |= {"shared_from": "base", "shared_tensors": ["bert."], "low_rank_scale": 0.5}
    (task / "config.json").write_text(json.dumps(config))
    monkeypatch.setattr(load, "SHIPPED", tmp_path)
    return tmp_path, own


def test_a_low_rank_update_is_the_sum_that_it_stands_for(shelf, tmp_path):
    folder, own = shelf
    task = load_model("task", torch.float32)
    base = load_file(folder / "base" / "model.safetensors")
    change = own[f"{UPDATED}.low_rank_out"] @ own[f"{UPDATED}.low_rank_in"]
    torch.testing.assert_close(task.model.weights[UPDATED], base[UPDATED] + 0.5 * change)
    untouched = UPDATED.replace("value", "key")
    assert torch.equal(task.model.weights[untouched], base[untouched])
    assert task.model.heads == {"classification", "pooler"}
    assert run_batch(task, [TraceRequest("a good film")])[0].logits.shape == (2,)


@pytest.mark.parametrize(("said", "scale"), [({}, 1), ({"low_rank_scale": 3}, 3), ({"low_rank_scale": -0.5}, -0.5)])
def test_an_update_counts_as_often_as_is_said_or_once(shelf, said, scale):
    folder, own = shelf
    config = json.loads((folder / "task" / "config.json").read_text())
    config.pop("low_rank_scale")
    (folder / "task" / "config.json").write_text(json.dumps(config | said))
    change = own[f"{UPDATED}.low_rank_out"] @ own[f"{UPDATED}.low_rank_in"]
    base = load_file(folder / "base" / "model.safetensors")[UPDATED]
    torch.testing.assert_close(load_model("task").model.weights[UPDATED], base + scale * change)


def test_heads_of_the_base_are_not_the_tasks(shelf):
    assert load_model("base").info.tasks == ("fill-mask", "nsp")
    assert load_model("task").info.tasks == ("classify",)


def test_the_list_of_models_reads_headers_alone(shelf):
    folder, _ = shelf
    listed = {model["name"]: model for model in load.models()}
    assert set(listed) == {"base", "task"}
    for name in listed:
        assert listed[name]["parameters"] == load_model(name).info.parameters
        assert listed[name]["shipped"]
        assert load_model(name).info.shipped


def test_a_base_that_is_not_there_and_an_update_of_nothing_are_said(shelf):
    folder, own = shelf
    config = json.loads((folder / "task" / "config.json").read_text())
    (folder / "task" / "config.json").write_text(json.dumps(config | {"shared_from": "elsewhere"}))
    with pytest.raises(LoadError, match="its base model 'elsewhere' is not shipped"):
        load_model("task")
    (folder / "task" / "config.json").write_text(json.dumps(config | {"shared_tensors": ["bert.embeddings."]}))
    with pytest.raises(LoadError, match="updates a tensor that neither its own file nor a base model gives"):
        load_model("task")


@pytest.mark.parametrize("lost", [".low_rank_in", ".low_rank_out"])
def test_half_an_update_is_said(shelf, lost):
    folder, own = shelf
    tensors = load_file(folder / "task" / "model.safetensors")
    tensors.pop(UPDATED + lost)
    save_file(tensors, folder / "task" / "model.safetensors")
    with pytest.raises(LoadError, match=f"{UPDATED}{lost} is missing: a low-rank update has two factors"):
        load_model("task")


@pytest.mark.parametrize(("name", "into", "out"), [
    (UPDATED, (2, 15), (1, 2)), (UPDATED, (2, 1), (15, 2)), (UPDATED, (2, 15), (15, 3)), (UPDATED, (15,), (15,)),
    (UPDATED, (1, 2, 15), (15, 1)), (UPDATED, (), (15,)), ("bert.pooler.dense.bias", (), (15,)),
])
def test_an_update_that_does_not_fit_its_matrix_is_said(shelf, name, into, out):
    """The first two would be added to every row, or to every column."""
    folder, own = shelf
    tensors = load_file(folder / "task" / "model.safetensors")
    changed = {f"{name}.low_rank_in": torch.ones(into), f"{name}.low_rank_out": torch.ones(out)}
    save_file(tensors | changed, folder / "task" / "model.safetensors")
    with pytest.raises(LoadError, match=f"the low-rank factors of {name} have shapes .*; it has .15,"):
        load_model("task")


def test_an_update_of_nothing_is_said_without_a_base_too(tiny_bert, tmp_path):
    folder = Path(shutil.copytree(tiny_bert, tmp_path / "model"))
    update = {"some.low_rank_in": torch.ones(2, 15), "some.low_rank_out": torch.ones(15, 2)}
    save_file(load_file(folder / "model.safetensors") | update, folder / "model.safetensors")
    with pytest.raises(LoadError, match="some.low_rank_.* updates a tensor that neither"):
        load_model(str(folder))


WORDS = "bert.embeddings.word_embeddings.weight"


def test_a_task_stands_on_the_very_table_of_its_base(shelf):
    base, task = load_model("base"), load_model("task")
    assert task.model.weights[WORDS] is base.model.weights[WORDS]
    assert load_model("task", torch.float64).model.weights[WORDS].dtype == torch.float64
    untouched = UPDATED.replace("value", "key")
    assert task.model.weights[untouched] is base.model.weights[untouched]
    assert not torch.equal(task.model.weights[UPDATED], base.model.weights[UPDATED])


def test_an_updated_matrix_is_made_anew_and_packed_once(shelf):
    """Nothing keeps it: what runs on it is the packed copy, and its sum is the same each time."""
    task = load_model("task").model
    assert task.weights[UPDATED] is not task.weights[UPDATED]
    assert torch.equal(task.weights[UPDATED], task.weights[UPDATED])
    assert len(task.weights) == len(list(task.weights))


def test_a_table_of_its_own_or_of_another_file_is_read(shelf):
    folder, own = shelf
    base = load_model("base")
    before = base.model.weights[WORDS].clone()
    vocabulary, width = before.shape
    update = {f"{WORDS}.low_rank_in": torch.ones(1, width), f"{WORDS}.low_rank_out": torch.ones(vocabulary, 1)}
    head = {n: t for n, t in load_file(folder / "task" / "model.safetensors").items() if n.startswith("classifier")}
    save_file(own | update | head, folder / "task" / "model.safetensors")
    torch.testing.assert_close(load_model("task").model.weights[WORDS], before + 0.5)
    whole = load_file(folder / "base" / "model.safetensors")
    save_file(whole | {WORDS: whole[WORDS] + 1}, folder / "base" / "model.safetensors")
    os.utime(folder / "base" / "model.safetensors", ns=(1, 1))
    torch.testing.assert_close(load_model("base").model.weights[WORDS], before + 1)
    assert torch.equal(base.model.weights[WORDS], before)


def test_training_starts_from_the_sum_in_float32_and_from_the_rest_as_it_is_stored(shelf):
    folder, _ = shelf
    base = load_file(folder / "base" / "model.safetensors")
    save_file({name: tensor.half() for name, tensor in base.items()}, folder / "base" / "model.safetensors")
    config = load.parse_config(json.loads((folder / "task" / "config.json").read_text()))
    stored = load.stored_tensors(folder / "task", config)
    found = shared.read_merged(stored, list(shared.visible(stored)), 0.5)
    task = load_model("task").model.weights
    assert found.keys() == task.keys()
    assert {name: found[name].dtype for name in (UPDATED, WORDS)} == {UPDATED: torch.float32, WORDS: torch.float16}
    for name in found:
        torch.testing.assert_close(found[name].float(), task[name], rtol=0, atol=0)


def turned_words(folder: Path) -> str:
    """A vocabulary of its own in a folder: all pieces but the special ones the other way round; its first word."""
    turned = [*VOCABULARY[:5], *reversed(VOCABULARY[5:])]
    (folder / "vocab.txt").write_text("\n".join(turned) + "\n", encoding="utf-8")
    return turned[5]


def test_an_update_reads_with_the_tokenizer_of_the_shelf_unless_it_has_its_own(shelf, tmp_path):
    folder, _ = shelf
    strange = Path(shutil.copytree(folder / "task", tmp_path / "else" / "where"))
    first = VOCABULARY[5]
    assert load_model(str(strange)).tokenizer.id_of(first) == 5
    last = turned_words(strange)
    assert load_model(str(strange)).tokenizer.id_of(last) == 5


def test_a_shipped_model_may_have_a_tokenizer_of_its_own(shelf):
    folder, _ = shelf
    values = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    values["normalizer"] = None
    (folder / "task" / "tokenizer.json").write_text(json.dumps(values), encoding="utf-8")
    assert "[UNK]" in load_model("task").tokenizer.encode("The dog").tokens
    assert "[UNK]" not in load_model("base").tokenizer.encode("The dog").tokens


def test_two_shipped_files_of_one_moment_are_two(shelf):
    folder, _ = shelf
    shutil.copytree(folder / "base", folder / "other")
    whole = load_file(folder / "base" / "model.safetensors")
    save_file(whole | {WORDS: whole[WORDS] + 1}, folder / "other" / "model.safetensors")
    for name in ("base", "other"):
        os.utime(folder / name / "model.safetensors", ns=(1, 1))
    base, other = load_model("base"), load_model("other")
    assert torch.equal(other.model.weights[WORDS], base.model.weights[WORDS] + 1)

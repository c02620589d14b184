"""Checkpoints that are refused in one line: heads without their pooler, JSON of the wrong types."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from safetensors.torch import load_file, save_file

from bert_core import hub, load
from bert_core.load import LoadError, load_model


@pytest.mark.parametrize(("fixture", "head"), [("tiny_bert", "nsp"), ("tiny_classifier", "classification")])
def test_a_head_without_the_pooler_that_it_reads_is_refused(fixture, head, request, tmp_path):
    folder = Path(shutil.copytree(request.getfixturevalue(fixture), tmp_path / "model"))
    tensors = {n: t for n, t in load_file(folder / "model.safetensors").items() if ".pooler." not in n}
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(LoadError, match=f"the {head} head reads the pooler's output, and the weights have no pooler"):
        load_model(str(folder))


def test_heads_that_read_no_pooler_need_none(tiny_ner, checkpoint):
    assert "pooler" not in load_model(tiny_ner).model.heads
    assert load_model(checkpoint("BertForMaskedLM")).model.heads == {"mlm"}


@pytest.mark.parametrize("family", [[], {}, None, 3])
def test_a_family_that_is_no_word_is_said(family, tiny_bert, tmp_path):
    folder = Path(shutil.copytree(tiny_bert, tmp_path / "model"))
    values = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(values | {"model_type": family}))
    with pytest.raises(LoadError, match="model_type is .*; it must be a word"):
        load_model(str(folder))


@pytest.mark.parametrize("changes", [
    {"low_rank_scale": None}, {"low_rank_scale": "x"}, {"low_rank_scale": []}, {"low_rank_scale": float("nan")},
    {"low_rank_scale": 10**400}, {"shared_tensors": 5}, {"shared_tensors": None}, {"shared_tensors": "bert."},
    {"shared_tensors": [3]},
])
def test_how_a_task_stands_on_its_base_is_said_in_the_right_types(changes, tiny_bert, tmp_path, monkeypatch):
    for name in ("base", "task"):
        shutil.copytree(tiny_bert, tmp_path / name)
    values = json.loads((tmp_path / "task" / "config.json").read_text()) | {"shared_from": "base"}
    (tmp_path / "task" / "config.json").write_text(json.dumps(values | changes))
    monkeypatch.setattr(load, "SHIPPED", tmp_path)
    with pytest.raises(LoadError, match=f"config: {next(iter(changes))} is .*; it must be a "):
        load_model("task")


@pytest.mark.parametrize("index", [[], 5, None, {"weight_map": {"a": 5}}, {"weight_map": {"a": []}},
                                   {"weight_map": []}, {}, {"weight_map": {"a": "x" * 300}}])
def test_a_damaged_index_in_the_cache_is_left_to_loading(index, tiny_bert, tmp_path, monkeypatch):
    import huggingface_hub

    folder = Path(shutil.copytree(tiny_bert, tmp_path / "model"))
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *_, **__: str(folder))
    assert hub.cached("someone/tiny") == folder
    with pytest.raises(LoadError):
        load_model("someone/tiny")


@pytest.mark.parametrize("name", ["google-bert/bert-base-uncased.git", "bert--base", "gpt2-"])
def test_a_name_that_the_hubs_client_refuses_is_one_line(name, monkeypatch):
    monkeypatch.setenv("BOTH_WAYS_HUB", "on")
    assert not load.HUB_ID.fullmatch(name)
    assert hub.cached(name) is None
    with pytest.raises(LoadError, match="no names of this form"):
        hub.size(name)


def test_a_file_that_is_no_weights_has_a_bound_of_its_own(monkeypatch):
    import huggingface_hub

    files = [SimpleNamespace(filename="model.safetensors", file_size=5, will_download=True),
             SimpleNamespace(filename="vocab.txt", file_size=2**30, will_download=True)]
    monkeypatch.setenv("BOTH_WAYS_HUB", "on")
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *_, **__: files)
    with pytest.raises(LoadError, match=r"vocab.txt has 1.0 GiB, and of files that are no weights at most 64 MiB"):
        hub.size("someone/tiny")

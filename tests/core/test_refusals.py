"""Checkpoints that are refused in one line: heads without their pooler, JSON of the wrong types."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
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
    {"low_rank_scale": 10**400}, {"low_rank_scale": -10**7}, {"shared_tensors": 5}, {"shared_tensors": None},
    {"shared_tensors": "bert."}, {"shared_tensors": [3]},
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
    (folder / "model.safetensors").unlink()
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


# --- a stranger's folder -------------------------------------------------------


@pytest.fixture
def folder(tiny_bert, tmp_path) -> Path:
    """A copy of the tiny BERT that a test may damage."""
    return Path(shutil.copytree(tiny_bert, tmp_path / "model"))


def change_weights(folder: Path, change) -> None:
    """Save the weights again as change(tensors) says."""
    save_file(change(load_file(folder / "model.safetensors")), folder / "model.safetensors")


@pytest.mark.parametrize("name", ["pipe", "additional_chat_templates/pipe"])
def test_a_pipe_in_a_folder_is_refused_because_reading_it_would_never_end(name, folder):
    (folder / name).parent.mkdir(exist_ok=True)
    os.mkfifo(folder / name)
    with pytest.raises(LoadError, match=f"^{folder}: pipe is no regular file"):
        load_model(str(folder))


def test_a_device_in_the_place_of_a_file_is_refused_and_a_dead_link_is_not(folder):
    (folder / "README.md").symlink_to(folder / "gone")
    load_model(str(folder))
    (folder / "tokenizer_config.json").unlink()
    (folder / "tokenizer_config.json").symlink_to("/dev/null")
    with pytest.raises(LoadError, match="tokenizer_config.json is no regular file"):
        load_model(str(folder))


@pytest.mark.parametrize(("changes", "message"), [
    ({"pad_token_id": 117}, "pad_token_id is 117; vocab_size is only 117"),
    ({"is_decoder": "false"}, "is_decoder is 'false'; it must be true or false"),
    ({"tie_word_embeddings": 0}, "tie_word_embeddings is 0; it must be true or false"),
    ({"initializer_range": "x"}, "initializer_range is 'x'; it must be a small number"),
    ({"tie_word_embeddings": False}, "the weights lack cls.predictions.decoder.weight"),
    ({"hidden_act": "magic"}, "config: hidden_act 'magic' is unknown; known: gelu"),
])
def test_a_setting_that_would_make_another_model_is_refused(changes, message, folder):
    values = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(values | changes))
    with pytest.raises(LoadError, match=message):
        load_model(str(folder))


def test_a_folder_without_its_settings_is_said(folder):
    (folder / "config.json").unlink()
    with pytest.raises(LoadError, match=f"^{folder}: the folder has no config.json$"):
        load_model(str(folder))


def test_padding_may_be_the_last_piece(folder):
    values = json.loads((folder / "config.json").read_text()) | {"pad_token_id": 116}
    (folder / "config.json").write_text(json.dumps(values))
    assert load_model(str(folder)).config.pad_token_id == 116


def test_an_encoder_without_its_word_head_needs_no_decoder(tiny_classifier, tmp_path):
    folder = Path(shutil.copytree(tiny_classifier, tmp_path / "model"))
    values = json.loads((folder / "config.json").read_text()) | {"tie_word_embeddings": False}
    (folder / "config.json").write_text(json.dumps(values))
    assert load_model(str(folder)).model.heads == {"pooler", "classification"}


@pytest.mark.parametrize("twice", ["bert.embeddings.LayerNorm.gamma", "embeddings.LayerNorm.weight"])
def test_one_tensor_in_two_spellings_is_refused(twice, folder):
    change_weights(folder, lambda tensors: tensors | {twice: torch.zeros(15)})
    with pytest.raises(LoadError, match=r"hold bert\.embeddings\.LayerNorm\.weight twice, in an older spelling too"):
        load_model(str(folder))


def test_one_tensor_in_two_shards_is_refused(folder):
    whole = load_file((folder / "model.safetensors").rename(folder / "first.safetensors"))
    save_file({"bert.pooler.dense.bias": whole["bert.pooler.dense.bias"] + 1}, folder / "more.safetensors")
    index = {"weight_map": {"x": "first.safetensors", "y": "more.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(LoadError, match=r"bert\.pooler\.dense\.bias stands in two files, first\.safetensors and more"):
        load_model(str(folder))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_weights_that_are_not_finite_are_refused(number, dtype, folder):
    name = "bert.encoder.layer.0.output.dense.weight"

    def spoilt(tensors):
        weights = tensors[name].to(dtype)
        weights[2, 3] = number
        return tensors | {name: weights}

    change_weights(folder, spoilt)
    with pytest.raises(LoadError, match=f"{name} holds NaN or infinity; nothing can be computed from that"):
        load_model(str(folder))


@pytest.mark.parametrize("dtype", [torch.int8, torch.bool, torch.complex64, torch.float8_e4m3fn])
def test_numbers_that_are_no_weights_are_not_taken_for_some(dtype, folder):
    name = "bert.encoder.layer.0.output.dense.weight"
    change_weights(folder, lambda tensors: tensors | {name: tensors[name].to(dtype)})
    with pytest.raises(LoadError, match=f"{name} holds {str(dtype).removeprefix('torch.')}; weights are float64, "):
        load_model(str(folder))


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("unable to mmap 9 bytes: Cannot allocate memory (12)")])
def test_a_model_without_memory_enough_for_it_is_one_line(error, folder, monkeypatch):
    def fail(*_):
        raise error

    monkeypatch.setattr(load, "read_model", fail)
    with pytest.raises(LoadError, match=f"^{folder}: there is not memory enough for it; choose a smaller model$"):
        load_model(str(folder))


def test_a_fault_of_ours_is_not_taken_for_a_lack_of_memory(folder, monkeypatch):
    def fail(*_):
        raise RuntimeError("a kernel is missing")

    monkeypatch.setattr(load, "read_model", fail)
    with pytest.raises(RuntimeError, match="^a kernel is missing$"):
        load_model(str(folder))

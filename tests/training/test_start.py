"""Where a run starts: what may stand in the start's folder."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from bert_core.cli import main
from bert_core.load import load_model
from bert_core.training.start import read_start, start_weights

WORD, DECODER = "bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"


@pytest.fixture
def folder(tiny_bert, tmp_path) -> Path:
    """A checkpoint of this test's own."""
    return Path(shutil.copytree(tiny_bert, tmp_path / "start"))


def changed(folder, change, **settings):
    """The folder with other tensors and other settings."""
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | settings), encoding="utf-8")
    return str(folder)


def test_a_start_without_a_tensor_of_its_encoder_is_refused(tiny_bert):
    loaded = load_model(tiny_bert)
    found = {n: w.clone() for n, w in loaded.model.weights.items()}
    bias = torch.zeros(loaded.config.vocab_size)
    _, fresh = start_weights(loaded.config, {n: w for n, w in found.items() if "cls." not in n}, "clm", bias, 0)
    assert all(name.startswith("cls.") for name in fresh)
    del found["bert.encoder.layer.0.attention.self.query.weight"]
    with pytest.raises(ValueError, match=r"lack bert.encoder.layer.0.attention.self.query.weight \(1 of"):
        start_weights(loaded.config, found, "mlm", bias, 0)


@pytest.mark.parametrize("tied", [True, False])
def test_a_decoder_of_its_own_is_not_dropped_in_silence(folder, tied):
    def add(tensors):
        tensors[DECODER] = tensors[WORD] + 1

    with pytest.raises(ValueError, match="a decoder of its own beside its word table"):
        read_start(changed(folder, add, tie_word_embeddings=tied))


def test_a_decoder_that_is_the_word_table_is_a_start_under_either_name(folder):
    word = load_file(folder / "model.safetensors")[WORD]
    for change in (lambda t: t.update({DECODER: t[WORD].clone()}), lambda t: t.pop(WORD)):
        config, found, _ = read_start(changed(folder, change))
        assert config.tie_word_embeddings
        assert torch.equal(found[WORD], word.float())


def test_an_encoder_alone_starts_a_tied_run_whatever_its_config_says(folder):
    def encoder(tensors):
        for name in [name for name in tensors if name.startswith("cls.")]:
            del tensors[name]

    config, found, _ = read_start(changed(folder, encoder, tie_word_embeddings=False))
    weights, _ = start_weights(config, found, "mlm", torch.zeros(config.vocab_size), 0)
    assert config.tie_word_embeddings  # what is written in the end opens: no decoder beside the word table
    assert DECODER not in weights


def test_a_run_that_is_refused_leaves_no_folder(tmp_path, capsys):
    out, mine = tmp_path / "new", tmp_path / "mine"
    mine.mkdir()
    for folder in (out, mine):
        flags = ("--corpus", str(tmp_path / "nope"), "--objective", "mlm", "--init", "twin-bert", "--out", str(folder))
        assert main(["pretrain", *flags]) == 2
    assert "nope" in capsys.readouterr().err
    assert not out.exists()
    assert mine.is_dir()

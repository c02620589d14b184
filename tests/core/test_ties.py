"""A decoder that stands in the file of a tied model: the same as the word table, another, or in its place."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from bert_core.load import LoadError, build, load_model
from bert_core.loading.files import read_json
from bert_core.trace import TraceRequest, run_batch
from bert_core.training.folder import export
from tests.core.reference import open_reference

FAMILIES = ("BERT", "BERT, causal", "RoBERTa", "DistilBERT", "ELECTRA, generator", "ALBERT")


@pytest.fixture(params=FAMILIES)
def folder(request, family, tmp_path) -> Path:
    """A copy of a tiny tied checkpoint that a test may change."""
    return Path(shutil.copytree(family(request.param), tmp_path / "model"))


def change(folder: Path, edit) -> None:
    """Save the weights again after edit(weights, name of the word table, name of the decoder, name of its bias)."""
    names = load_model(str(folder)).model.names
    weights = load_file(folder / "model.safetensors")
    edit(weights, f"{names.word}.weight", names.decoder, names.mlm_bias)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


def check(folder: Path) -> None:
    """Every logit equals transformers' at float64."""
    ours, theirs = load_model(str(folder), torch.float64), open_reference(str(folder))
    trace = run_batch(ours, [TraceRequest("the dog [MASK] in paris", all_logits=True)])[0]
    with torch.no_grad():
        out = theirs(torch.tensor([trace.encoding.input_ids]))
    expected = out.get("prediction_logits", out.get("logits"))[0]
    mine = trace.lm_logits if trace.has("lm_logits") else trace.mlm_logits
    torch.testing.assert_close(torch.tensor(mine), expected, rtol=0, atol=1e-10)


def another(weights, word, decoder, bias):
    weights[decoder] = weights[word].flip(0).contiguous()


def test_a_decoder_that_differs_is_one_of_its_own(folder):
    before = load_model(str(folder))
    change(folder, another)
    loaded = load_model(str(folder))
    assert not loaded.config.tie_word_embeddings
    assert loaded.info.parameters == before.info.parameters + before.config.vocab_size * before.config.table_width
    check(folder)


def test_a_decoder_that_differs_is_exported(folder, tmp_path):
    change(folder, another)
    loaded = load_model(str(folder))
    export(loaded, tmp_path / "out")
    assert read_json(tmp_path / "out" / "config.json")["tie_word_embeddings"] is False
    check(tmp_path / "out")
    ids = torch.tensor([[1, 2, 3]])
    with torch.no_grad():
        before, after = (open_reference(str(one))(ids) for one in (folder, tmp_path / "out"))
    name = "prediction_logits" if "prediction_logits" in before else "logits"
    torch.testing.assert_close(after[name], before[name], rtol=0, atol=1e-10)


def test_a_decoder_that_is_the_same_stays_tied(folder):
    before = load_model(str(folder))

    def copy(weights, word, decoder, bias):
        weights[decoder] = weights[word].clone()

    change(folder, copy)
    loaded = load_model(str(folder))
    assert loaded.config.tie_word_embeddings
    assert set(loaded.model.weights) == set(before.model.weights)
    check(folder)


def test_a_decoder_alone_is_the_word_table_too(folder):
    before = load_model(str(folder))

    def rename(weights, word, decoder, bias):
        weights[decoder] = weights.pop(word)

    change(folder, rename)
    loaded = load_model(str(folder))
    assert loaded.config.tie_word_embeddings
    assert loaded.info.parameters == before.info.parameters
    assert all(torch.equal(loaded.model.weights[name], tensor) for name, tensor in before.model.weights.items())
    check(folder)


def test_of_two_biases_that_differ_the_decoders_own_counts(folder):
    def two(weights, word, decoder, bias):
        weights[decoder.removesuffix("weight") + "bias"] = weights[bias] + 1

    change(folder, two)
    check(folder)


def test_a_decoder_of_another_shape_is_refused(folder):
    def cut(weights, word, decoder, bias):
        weights[decoder] = weights[word][:-1].clone()

    change(folder, cut)
    with pytest.raises(LoadError, match="has shape .* config.json says"):
        load_model(str(folder))


def test_the_same_holds_for_tensors_in_memory(folder):
    loaded = load_model(str(folder))
    weights, names = dict(loaded.model.weights), loaded.model.names
    word = f"{names.word}.weight"
    for other, tied in ((weights[word].clone(), True), (weights[word] + 1, False)):
        model = build(loaded.config, weights | {names.decoder: other}, torch.float32, "cpu")
        assert model.config.tie_word_embeddings is tied
        assert (names.decoder in model.weights) is not tied
    alone = {names.decoder if name == word else name: tensor for name, tensor in weights.items()}
    assert torch.equal(build(loaded.config, alone, torch.float32, "cpu").weights[word], weights[word])

"""Architectures that the explorer can't show are refused in one line, before their weights are read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from bert_core.adapters.load import check_bounds
from bert_core.load import LoadError, load_model
from bert_core.trace import TraceRequest, run_batch
from tests.adapters.families import Family, make_family


@pytest.mark.parametrize(("config", "family", "lacks"), [
    ("ViTConfig", "vit", "vocab_size"), ("CanineConfig", "canine", "vocab_size"),
    ("CLIPConfig", "clip", "vocab_size"), ("Gemma3Config", "gemma3", "vocab_size"),
    ("FNetConfig", "fnet", "num_attention_heads"), ("MambaConfig", "mamba", "num_attention_heads"),
    ("PerceiverConfig", "perceiver", "hidden_size"),
])
def test_a_config_without_the_sizes_of_an_encoder_of_text_is_refused(config, family, lacks, tmp_path):
    import transformers

    getattr(transformers, config)().save_pretrained(tmp_path)
    save_file({"any": torch.ones(3)}, tmp_path / "model.safetensors")  # no weights of it: nobody asks for them
    with pytest.raises(LoadError, match=f"{family} is no encoder of text that can be shown: its config lacks {lacks}"):
        load_model(str(tmp_path))


def test_a_config_without_padding_is_none_to_refuse(tmp_path):
    sizes = {"n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 41, "n_ctx": 41, "rotary_dim": 2,
             "bos_token_id": 0, "eos_token_id": 0}
    family = Family("CodeGen", "CodeGenForCausalLM", "byte-level BPE, no specials", sizes, False)
    loaded = load_model(str(make_family(tmp_path, family)))
    trace = run_batch(loaded, [TraceRequest("the dog"), TraceRequest("the dog barked all night")])[0]
    assert loaded.config.pad_token_id == 0
    assert trace.attention_probs.shape == (2, 4, len(trace), len(trace))


@pytest.mark.parametrize(("changes", "key"), [
    ({"attention_types": [[["global"], 10**12]]}, "attention_types"),
    ({"attention_types": [[["global"], 10**7], [["local"], 10**7]]}, "attention_types"),
    ({"attention_types": [[["global"], 10**7], [["local"], -10**7]]}, "attention_types"),
    ({"text_config": {"num_hidden_layers": 10**4}}, "num_hidden_layers"),
    ({"some": [{"vocab_size": 10**9}]}, "vocab_size"),
])
def test_an_absurd_size_is_found_at_any_depth(changes, key):
    with pytest.raises(LoadError, match=f"config: {key} is 10+; that is no model"):
        check_bounds({"model_type": "gpt_neo", **changes})


@pytest.fixture
def gpt2(family, tmp_path) -> Path:
    """A copy of the tiny GPT-2 that a test may damage."""
    return Path(shutil.copytree(family("GPT-2"), tmp_path / "model"))


def edit_config(folder: Path, **changes) -> None:
    values = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(values | changes), encoding="utf-8")


@pytest.mark.parametrize(("key", "value", "file"), [
    ("configuration_files", ["config.4.0.0.json"], "config.4.0.0.json"),
    ("transformers_weights", "other.safetensors", "other.safetensors"),
])
def test_files_that_were_not_checked_are_not_read_in_the_place_of_those_that_were(key, value, file, gpt2):
    """transformers would: a config with a trillion layers, weights that no header was read of."""
    shutil.copy(gpt2 / ("config.json" if file.endswith("json") else "model.safetensors"), gpt2 / file)
    edit_config(gpt2, **{key: value})
    with pytest.raises(LoadError, match=f"config: {key} names other files; only config.json and the usual weights"):
        load_model(str(gpt2))


@pytest.mark.parametrize("architectures", [5, [5], "GPT2LMHeadModel", {"a": "b"}])
def test_architectures_that_are_no_list_of_words_are_said(architectures, gpt2):
    edit_config(gpt2, architectures=architectures)
    with pytest.raises(LoadError, match=f"^{gpt2}: .*architectures"):
        load_model(str(gpt2))


def test_a_config_that_describes_more_than_the_weights_hold_is_refused_before_it_is_built(gpt2):
    edit_config(gpt2, n_positions=2**20)
    with pytest.raises(LoadError, match=r"config.json describes 15,[0-9,]+ parameters; the weights hold 11,400$"):
        load_model(str(gpt2))


def test_attention_of_another_shape_is_refused(tmp_path):
    sizes = {"hidden_size": 15, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 23,
             "max_position_embeddings": 43, "attention_window": [4, 4], "pad_token_id": 1}
    folder = make_family(tmp_path, Family("Longformer", "LongformerForMaskedLM", "byte-level BPE", sizes, False))
    with pytest.raises(LoadError, match=r"longformer gives attention of shape .*, not \(1, 2, 3, 8, 8\)"):
        load_model(str(folder))


def test_a_stack_that_shortens_its_text_is_refused(tmp_path):
    sizes = {"d_model": 16, "n_head": 4, "d_head": 4, "d_inner": 23, "block_sizes": [1, 1], "num_decoder_layers": 1}
    folder = make_family(tmp_path, Family("Funnel", "FunnelForMaskedLM", "WordPiece", sizes, False))
    with pytest.raises(LoadError, match="funnel gives no attention"):
        load_model(str(folder))


@pytest.mark.parametrize(("name", "second"), [("unknown: MPNet", 0), ("unknown: ERNIE", 1)])
def test_the_second_sentence_is_another_segment_where_there_are_segments(family, name, second):
    assert max(load_model(family(name)).tokenizer.encode("he", "she").token_type_ids) == second


def test_a_folder_is_no_shipped_model_and_says_what_it_lacks(gpt2):
    loaded = load_model(str(gpt2))
    assert not loaded.info.shipped
    assert loaded.gaps["mlm_logits"] == "it is causal: it predicts the next token"


def test_padding_beyond_the_table_is_not_looked_up(gpt2):
    edit_config(gpt2, pad_token_id=10**6)
    loaded = load_model(str(gpt2))
    short, long = TraceRequest("dog"), TraceRequest("the dog barked all night")
    together, alone = run_batch(loaded, [short, long])[0], run_batch(loaded, [short])[0]
    np.testing.assert_allclose(together.hidden_states, alone.hidden_states, rtol=0, atol=1e-5)


@pytest.mark.parametrize("changes", [
    {"cross_attention_layers": list(range(200))}, {"label2id": {f"label {n}": n for n in range(20_000)}},
    {"eos_token_id": [2**24, 2**24]}, {"max_length": 10**20}, {"rope_scaling": {"factor": 1e30}},
])
def test_numbers_that_are_no_sizes_or_small_ones_pass(changes):
    check_bounds({"model_type": "gpt_neo", **changes})


def test_another_familys_weights_that_are_not_finite_are_refused(tmp_path, family):
    folder = Path(shutil.copytree(family("GPT-2"), tmp_path / "model"))
    weights = load_file(folder / "model.safetensors")
    weights["transformer.wpe.weight"][1, 2] = float("nan")
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(LoadError, match="transformer.wpe.weight holds NaN or infinity"):
        load_model(str(folder))


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.bool, torch.complex64, torch.float8_e4m3fn])
@pytest.mark.parametrize("spelled", ["transformer.h.1.ln_1.weight", "h.1.ln_1.weight", "h.1.ln_1.gamma"])
def test_another_familys_numbers_that_are_no_weights_are_not_taken_for_some(spelled, dtype, gpt2):
    weights = load_file(gpt2 / "model.safetensors")
    tensor = weights.pop("transformer.h.1.ln_1.weight")
    if not spelled.startswith("transformer."):
        weights = {name.removeprefix("transformer."): tensor for name, tensor in weights.items()}
    save_file(weights | {spelled: tensor.to(dtype)}, gpt2 / "model.safetensors", {"format": "pt"})
    with pytest.raises(LoadError, match=f": {spelled} holds {str(dtype).removeprefix('torch.')}; weights are float64,"):
        load_model(str(gpt2))


def test_numbers_that_are_no_parameters_may_be_of_any_kind(gpt2):
    """Older files hold the causal mask, as bytes."""
    before = load_model(str(gpt2))
    weights = load_file(gpt2 / "model.safetensors")
    masks = {f"transformer.h.{n}.attn.bias": torch.ones(1, 1, 40, 40).tril().byte() for n in range(2)}
    save_file(weights | masks, gpt2 / "model.safetensors", {"format": "pt"})
    request = TraceRequest("the dog barked")
    traces = [run_batch(loaded, [request])[0] for loaded in (before, load_model(str(gpt2)))]
    np.testing.assert_array_equal(traces[0].lm_logits, traces[1].lm_logits)


def test_numbers_that_are_no_weights_are_found_below_the_prefix_of_a_head_that_is_not_declared(gpt2):
    edit_config(gpt2, architectures=["GPT2Model"])
    weights, name = load_file(gpt2 / "model.safetensors"), "transformer.h.1.ln_1.weight"
    save_file(weights | {name: weights[name].to(torch.int8)}, gpt2 / "model.safetensors", {"format": "pt"})
    with pytest.raises(LoadError, match=f"{name} holds int8"):
        load_model(str(gpt2))


def test_a_tensor_that_is_missing_is_named_and_never_made_up(gpt2):
    weights = load_file(gpt2 / "model.safetensors")
    del weights["transformer.h.1.ln_1.weight"]
    save_file(weights, gpt2 / "model.safetensors", {"format": "pt"})
    with pytest.raises(LoadError, match="the weights lack .*h.1.ln_1.weight; is this the checkpoint"):
        load_model(str(gpt2))


@pytest.mark.parametrize(("name", "kind"), [
    ("BERT", "relative_key"), ("RoBERTa", "relative_key_query"), ("BERT", "other"), ("unknown: ERNIE", "relative_key"),
])
def test_positions_that_transformers_no_longer_has_are_refused(name, kind, family, tmp_path):
    """Their tables would be dropped without a word."""
    folder = Path(shutil.copytree(family(name), tmp_path / "model"))
    edit_config(folder, position_embedding_type=kind)
    with pytest.raises(LoadError, match=f"config: position_embedding_type is '{kind}', which neither this explorer"):
        load_model(str(folder))


def add_tensors(folder: Path, **tensors: torch.Tensor) -> None:
    weights = load_file(folder / "model.safetensors")
    save_file(weights | tensors, folder / "model.safetensors", {"format": "pt"})


@pytest.mark.parametrize(("family_name", "tensor"), [
    ("unknown: ERNIE", "ernie.encoder.layer.7.attention.self.query.weight"),
    ("unknown: ERNIE", "encoder.layer.1.attention.self.distance_embedding.weight"),
    ("unknown: ERNIE", "ernie.embeddings.task_type_embeddings.weight"), ("GPT-2", "transformer.h.2.ln_1.weight"),
])
def test_a_part_of_the_encoder_that_would_not_run_is_refused(family_name, tensor, family, tmp_path):
    folder = Path(shutil.copytree(family(family_name), tmp_path / "model"))
    add_tensors(folder, **{tensor: torch.ones(3, 5)})
    with pytest.raises(LoadError, match=f"the weights hold {tensor}, which the declared architecture does not have"):
        load_model(str(folder))


@pytest.mark.parametrize("tensor", [
    "ernie.pooler.dense.weight", "cls.seq_relationship.weight", "classifier.1.weight",
    "ernie.embeddings.position_ids", "ernie.encoder.layer.0.attention.self.rotary_emb.inv_freq",
    "ernie.embeddings.word_embeddings._weight", "ernie.encoder.layer.0.attn.masked_bias",
])
def test_what_no_model_of_this_class_reads_may_lie_in_the_file(tensor, family, tmp_path):
    folder = Path(shutil.copytree(family("unknown: ERNIE"), tmp_path / "model"))
    add_tensors(folder, **{tensor: torch.ones(3, 5)})
    assert load_model(str(folder)).model.heads == {"mlm"}


def test_numbers_in_the_encoder_that_can_be_no_weights_may_lie_in_the_file(family, tmp_path):
    folder = Path(shutil.copytree(family("unknown: ERNIE"), tmp_path / "model"))
    add_tensors(folder, **{"ernie.encoder.layer.0.attention.self.seen": torch.ones(3, 5).byte()})
    assert load_model(str(folder)).model.heads == {"mlm"}


@pytest.mark.parametrize("architecture", ["XLNetLMHeadModel", "XLNetForSequenceClassification"])
def test_a_model_without_a_longest_input_is_refused_as_one(architecture, tmp_path):
    import transformers

    config = transformers.XLNetConfig(d_model=16, n_layer=2, n_head=4, d_inner=23, vocab_size=29)
    getattr(transformers, architecture)(config).save_pretrained(tmp_path)
    with pytest.raises(LoadError, match="xlnet has no longest input; the explorer shows models that have one"):
        load_model(str(tmp_path))


@pytest.mark.parametrize(("name", "stem"), [
    ("BERT", "Bert"), ("RoBERTa", "Roberta"), ("ELECTRA, discriminator", "Electra"), ("DistilBERT", "DistilBert"),
    ("ALBERT", "Albert"),
])
def test_multiple_choice_is_refused_as_such(name, stem, family):
    with pytest.raises(LoadError, match=f"{stem}ForMultipleChoice chooses .*; multiple choice is not supported here"):
        load_model(family(name, f"{stem}ForMultipleChoice"))

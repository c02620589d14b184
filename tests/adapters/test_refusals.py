"""Architectures that the explorer can't show are refused in one line, before their weights are read."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import save_file

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

"""Which way a model of another family reads is looked up in its attention, whatever its name and config say."""

from __future__ import annotations

import pytest
import torch

from bert_core.adapters import load as adapted
from bert_core.adapters.foreign import ForeignModel
from bert_core.adapters.probe import Probed, probe
from bert_core.cli import main
from bert_core.load import load_model
from bert_core.trace import TraceRequest, run_batch
from tests.adapters.families import Family, make_family

_SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 23,
          "max_position_embeddings": 41, "pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 0}
_GROUPED = {**_SIZES, "num_key_value_heads": 4}
#: Decoders with another head than a next token's, or none -> what their config says.
DECODERS = {
    "GemmaForSequenceClassification": {**_GROUPED, "head_dim": 4},
    "Gemma2ForTokenClassification": {**_GROUPED, "head_dim": 4, "sliding_window": 2},
    "MistralForSequenceClassification": {**_GROUPED, "sliding_window": 2},
    "StableLmForSequenceClassification": _GROUPED, "OlmoModel": _GROUPED,
    "FalconForSequenceClassification": _SIZES,
    "GPTBigCodeForTokenClassification": {"n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 41},
    "BertGenerationDecoder": {**_SIZES, "is_decoder": True},
}


def seen_ahead(loaded) -> float:
    """The most attention, of all layers and heads, that a token gives to a later one."""
    trace = run_batch(loaded, [TraceRequest("the dog barked all night")])[0]
    return float(torch.tensor(trace.attention_probs).triu(1).max())


@pytest.mark.parametrize("architecture", DECODERS)
def test_a_decoder_is_causal_whatever_stands_on_it(architecture, tmp_path):
    family = Family(architecture, architecture, "byte-level BPE, no specials", DECODERS[architecture], False)
    loaded = load_model(str(make_family(tmp_path, family)))
    assert loaded.config.attention_kind == "causal"
    assert seen_ahead(loaded) == 0
    assert loaded.gaps["mlm_logits"] == "it is causal: it predicts the next token"


def test_an_encoder_that_was_made_a_decoder_is_causal(family):
    loaded = load_model(family("unknown: ERNIE", "ErnieModel", is_decoder=True))
    assert (loaded.config.attention_kind, loaded.model.heads) == ("causal", {"pooler"})
    assert seen_ahead(loaded) == 0


@pytest.mark.parametrize(("name", "changes"), [
    ("XLM", {"causal": True}), ("FlauBERT", {"causal": True}), ("unknown: ERNIE", {"is_decoder": True}),
])
def test_a_masked_lm_head_on_causal_attention_is_no_head(name, changes, family, capsys):
    folder = family(name, **changes)
    loaded = load_model(folder)
    assert (loaded.config.attention_kind, loaded.model.heads) == ("causal", frozenset())
    for part in ("mlm_positions", "mlm_logits"):
        assert loaded.gaps[part].startswith("its attention is causal, so its masked-LM head")
    assert main(["fill-mask", "le [MASK] dort", "--model", folder]) == 2
    out, err = capsys.readouterr()
    assert (out, "no trained masked-language-model head" in err) == ("", True)


@pytest.mark.parametrize("command", ["next", "score"])
def test_a_next_token_head_that_has_seen_its_answer_is_no_head(command, family, capsys):
    folder = family("unknown: ERNIE", "ErnieForCausalLM")
    loaded = load_model(folder)
    assert (loaded.config.attention_kind, loaded.model.heads) == ("bidirectional", frozenset())
    assert loaded.gaps["lm_logits"].startswith("its attention reads both ways, so its next-token head")
    assert seen_ahead(loaded) > 0
    assert main([command, "the dog", "--model", folder]) == 2
    assert capsys.readouterr().out == ""


def test_a_next_token_head_on_causal_attention_stays_one(family):
    loaded = load_model(family("unknown: ERNIE", "ErnieForCausalLM", is_decoder=True))
    assert (loaded.config.attention_kind, loaded.model.heads) == ("causal", {"lm"})


def test_a_window_of_attention_that_looks_ahead_is_no_causal_one(family):
    loaded = load_model(family("ModernBERT", local_attention=2, global_attn_every_n_layers=3))
    assert (loaded.config.attention_kind, loaded.model.heads) == ("bidirectional", {"mlm"})


@pytest.mark.parametrize("places", [3, 8])
def test_a_model_of_few_places_is_asked_with_few_tokens(places, family):
    module = load_model(family("unknown: ERNIE", max_position_embeddings=41)).model.module
    config = adapted.translate(module.config, None, unused=41 - places)
    asked = []
    module.register_forward_pre_hook(lambda _, __, given: asked.append(given["input_ids"].shape[1]), with_kwargs=True)
    model = ForeignModel(config, module, frozenset({"mlm"}), {}, 0, adapted._arguments(module))
    assert probe(model) == Probed(is_causal=False, has_probabilities=True, shares="padded")
    assert asked == ([2, 2, 1] if places < 8 else [8, 8, 4])  # alone, together with its half, and that alone

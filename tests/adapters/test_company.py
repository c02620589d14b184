"""Whatever else goes through its pass, a text has the numbers that it has alone; and what is no attention is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from bert_core.adapters import probe as probing
from bert_core.cli import main
from bert_core.load import Loaded, load_model, with_dtype
from bert_core.serving.local import LocalEngine
from bert_core.tasks.answers import answer_windows
from bert_core.trace import MissingPart, Trace, TraceRequest, run_batch
from tests.adapters.families import Family, make_family

_SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 23,
          "max_position_embeddings": 41, "pad_token_id": 0}
_MOBILE = {**_SIZES, "embedding_size": 8, "intra_bottleneck_size": 16, "true_hidden_size": 16}
_DECODER = {**_SIZES, "bos_token_id": 0, "eos_token_id": 0, "num_key_value_heads": 4}
_GPT2 = {"n_embd": 15, "n_layer": 2, "n_head": 3, "n_positions": 41, "bos_token_id": 0, "eos_token_id": 0}
_SQUEEZE = {**_SIZES, "intermediate_size": 32, "embedding_size": 16,
            **{f"{name}_groups": 4 for name in ("q", "k", "v", "intermediate", "output")}}
_BPE = "byte-level BPE, no specials"
#: Architecture -> its tokenizer, its config, and which of its rows may share a pass.
KINDS = {
    "MobileBertForMaskedLM": ("WordPiece", _MOBILE, "equal"),
    "MobileBertForQuestionAnswering": ("WordPiece", _MOBILE, "equal"),
    "NystromformerForMaskedLM": ("WordPiece", _SIZES, "equal"),
    "GPT2ForSequenceClassification": (_BPE, _GPT2, "alone"),
    "LlamaForSequenceClassification": (_BPE, {**_DECODER, "pad_token_id": None}, "alone"),
    "IBertForMaskedLM": ("byte-level BPE", {**_SIZES, "pad_token_id": 1, "max_position_embeddings": 43}, "padded"),
    "MistralForCausalLM": (_BPE, {**_DECODER, "sliding_window": 3}, "padded"),
    "Gemma2ForCausalLM": (_BPE, {**_DECODER, "head_dim": 4, "sliding_window": 3}, "padded"),
    "GPT2LMHeadModel": (_BPE, _GPT2, "padded"),
    "SqueezeBertForMaskedLM": ("WordPiece", _SQUEEZE, "padded"),
}
TEXTS = ("the dog", "a cat slept while we walked home all night", "a dog", "he")


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Callable[[str], str]:
    """made(architecture) -> folder of a tiny checkpoint of KINDS, written once."""
    folders: dict[str, str] = {}

    def make(architecture: str) -> str:
        if architecture not in folders:
            tokenizer, config, _ = KINDS[architecture]
            family = Family(architecture, architecture, tokenizer, config, False)
            folders[architecture] = str(make_family(tmp_path_factory.mktemp("kind"), family))
        return folders[architecture]

    return make


def counted(loaded: Loaded, monkeypatch) -> list[tuple[int, int]]:
    """(B, T) of each pass that the model will run."""
    shapes, forward = [], loaded.model.module.forward

    def forwards(*args, **given):
        shapes.append(tuple(given["input_ids"].shape))
        return forward(*args, **given)

    monkeypatch.setattr(loaded.model.module, "forward", forwards)
    return shapes


def same(one: Trace, other: Trace, atol: float = 2e-5) -> None:
    assert one.arrays.keys() == other.arrays.keys()
    for name in one.arrays:
        if one.arrays[name].dtype.kind == "f":
            np.testing.assert_allclose(one.arrays[name], other.arrays[name], rtol=2e-5, atol=atol, err_msg=name)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("architecture", KINDS)
def test_a_text_has_the_numbers_that_it_has_alone(architecture, dtype, made, monkeypatch):
    loaded = with_dtype(load_model(made(architecture)), dtype)
    assert loaded.model.shares == KINDS[architecture][2]
    requests = [TraceRequest(text, all_logits=True) for text in TEXTS]
    alone = [run_batch(loaded, [request])[0] for request in requests]
    passes = counted(loaded, monkeypatch)
    for one, trace in zip(alone, run_batch(loaded, requests), strict=True):
        same(one, trace)
        assert one.token_embeddings.shape == (len(one), loaded.model.module.get_input_embeddings().weight.shape[1])
    lengths = [len(trace) for trace in alone]
    if loaded.model.shares == "alone":
        expected = [(1, length) for length in lengths]
    elif loaded.model.shares == "padded" and dtype != torch.float64:
        expected = [(4, max(lengths))]
    else:
        expected = [(lengths.count(length), length) for length in dict.fromkeys(lengths)]
    assert passes == expected


def test_an_engine_gives_each_visitor_the_numbers_of_their_own_text(made):
    requests = [TraceRequest(text, parts=("hidden_states",)) for text in TEXTS]
    engines = [LocalEngine(made("MobileBertForMaskedLM"), cache_bytes=0, pack=False) for _ in range(2)]
    alone = [engines[0].run(request) for request in requests]
    for one, trace in zip(alone, engines[1].run_many(requests), strict=True):
        same(one, trace)
    for engine in engines:
        engine.close()


def test_windows_of_a_long_context_are_read_as_each_alone(made):
    name = made("MobileBertForQuestionAnswering")
    engine = LocalEngine(name, cache_bytes=0, pack=False)
    windows = answer_windows(engine, "who slept", "the dog barked all night in the garden . " * 9 + "a cat")
    assert len({len(window.trace) for window in windows}) > 1
    for window in windows:
        same(engine.run(replace(window.trace.request, model=None)), window.trace)
    engine.close()


def test_a_model_that_mixes_its_rows_runs_each_alone(family, monkeypatch):
    """As Nystromformer's landmarks are, which are scaled by the largest of a batch."""
    def mixed(*args, **given):
        out = forward(*args, **given)
        out["hidden_states"] = tuple(one + out.hidden_states[0].mean() for one in out.hidden_states)
        return out

    model = replace(load_model(family("unknown: MPNet")).model, gaps={})
    forward = model.module.forward
    assert probing.probe(model).shares == "padded"
    monkeypatch.setattr(model.module, "forward", mixed)
    assert probing.probe(model).shares == "alone"


# --- attention that is none ------------------------------------------------------


def test_scores_are_not_shown_as_attention(made, tmp_path, capsys):
    folder = made("SqueezeBertForMaskedLM")
    loaded = load_model(folder)
    trace = run_batch(loaded, [TraceRequest("the dog [MASK]")])[0]
    reason = "what transformers gives out for this architecture are no probabilities"
    with pytest.raises(MissingPart, match=f"gives no attention_probs: {reason}"):
        _ = trace.attention_probs
    assert loaded.gaps["attention_probs"] == reason
    assert loaded.model.heads == {"mlm"}
    assert trace.mlm_logits.shape == (1, loaded.config.vocab_size)
    assert main(["fill-mask", "the dog [MASK]", "--model", folder, "--json"]) == 0
    assert main(["trace", "the dog", "--model", folder, "--out", str(tmp_path / "x.npz")]) == 0
    assert "attention_probs" not in np.load(tmp_path / "x.npz")
    assert capsys.readouterr().err == ""


def test_which_way_it_reads_is_known_without_its_attention(family, monkeypatch):
    monkeypatch.setattr(probing, "_are_probabilities", lambda probs: False)
    found = [probing.probe(replace(load_model(family(name)).model, gaps={})) for name in ("GPT-2", "unknown: MPNet")]
    assert [one.is_causal for one in found] == [True, False]
    assert not any(one.has_probabilities for one in found)


@pytest.mark.parametrize(("rows", "are"), [
    ([[0.25, 0.75], [1.0, 0.0]], True), ([[0.252, 0.752], [1.0, 0.0]], True), ([[0.27, 0.75], [1.0, 0.0]], False),
    ([[1.5, -0.5], [1.0, 0.0]], False), ([[0.0, 0.0], [1.0, 0.0]], False), ([[float("nan"), 1.0], [1.0, 0.0]], True),
])
def test_rows_of_attention_lie_between_0_and_1_and_add_up_to_1(rows, are):
    assert probing._are_probabilities(torch.tensor(rows)) is are


@pytest.mark.parametrize("name", ["unknown: ERNIE", "ModernBERT", "unknown: OPT", "XLM"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_attention_of_other_families_is_kept_in_half_precision_too(name, dtype, family):
    loaded = load_model(family(name), dtype)
    assert "attention_probs" not in loaded.gaps
    assert loaded.model.shares == "padded"

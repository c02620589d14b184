"""Each stage beside transformers' class: equal at float64, under 1e-5 at float32."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest
import torch
from transformers import BertForPreTraining, BertLMHeadModel

from bert_core.kernels import pack_linear, product_parts
from bert_core.load import load_model
from bert_core.measures import parity

#: Sentences and pairs, with several gaps and words that are cut.
INPUTS = [("the dog barked all night", None), ("she [MASK] the [MASK] in paris", "it was not good"), ("", None)]


@pytest.mark.parametrize(("text", "pair"), INPUTS)
@pytest.mark.parametrize("index", [0, 1])
def test_stages_equal_transformers_in_double_precision(tiny_bert, text, pair, index):
    loaded = load_model(tiny_bert, dtype=torch.float64)
    runs = parity.compare_stages(loaded, loaded.tokenizer.encode(text, pair), index)
    assert {run.stage for run in runs} == set(parity.STAGES)
    for run in runs:
        assert run.ours.shape == run.theirs.shape, run.stage
        assert run.largest_difference < 1e-10, run.stage


@pytest.mark.parametrize("name", ["twin-bert", "twin-gpt"])
def test_shipped_models_stay_under_a_hundred_thousandth(name):
    loaded = load_model(name)
    encoding = loaded.tokenizer.encode("She poured the [MASK] into her cup and drank it slowly.", "Then she left.")
    runs = parity.compare_stages(loaded, encoding, loaded.config.num_hidden_layers - 1)
    assert {run.stage for run in runs} >= {"embeddings", "attention", "feed_forward", "layer_norm", "mlm", "losses"}
    assert {run.stage: run.largest_difference for run in runs if run.largest_difference >= 1e-5} == {}


def test_packed_kernels_change_the_rounding_only():
    loaded = load_model("twin-bert")
    encoding = loaded.tokenizer.encode(" ".join(["She poured the tea into her cup."] * 12))
    assert parity.kernel_difference(loaded, encoding) == 0.0
    weights = loaded.model.weights
    linears = {name: pack_linear(weights[f"{name}.weight"], weights[f"{name}.bias"])
               for names in product_parts(loaded.model).values() for name in names}
    packed = replace(loaded, model=replace(loaded.model, fast_linear=linears))
    assert parity.kernel_difference(packed, encoding) < 1e-4
    runs = parity.compare_stages(packed, encoding)
    assert {run.stage: run.largest_difference for run in runs if run.largest_difference >= 1e-5} == {}


def test_a_causal_model_is_compared_under_its_mask(tiny_gpt):
    loaded = load_model(tiny_gpt, dtype=torch.float64)
    encoding = loaded.tokenizer.encode("the cat slept in the garden")
    runs = {run.stage: run for run in parity.compare_stages(loaded, encoding, 1)}
    assert runs["attention"].largest_difference < 1e-10
    both_ways = replace(loaded, model=replace(loaded.model, config=replace(loaded.config, is_decoder=False)))
    other = {run.stage: run for run in parity.compare_stages(both_ways, encoding, 1)}
    assert (runs["attention"].ours - other["attention"].ours).abs().max() > 1e-3


def test_a_broken_stage_would_show(tiny_bert):
    loaded = load_model(tiny_bert, dtype=torch.float64)
    broken = replace(loaded, model=replace(loaded.model, config=replace(loaded.config, hidden_act="relu")))
    encoding = loaded.tokenizer.encode("the dog slept")
    ours = {run.stage: run.ours for run in parity.compare_stages(broken, encoding)}
    theirs = {run.stage: run.theirs for run in parity.compare_stages(loaded, encoding)}
    assert (ours["feed_forward"] - theirs["feed_forward"]).abs().max() > 1e-3
    assert (ours["embeddings"] - theirs["embeddings"]).abs().max() == 0


def losses_of(loaded, text, pair=None, index=0) -> parity.StageRun:
    runs = parity.compare_stages(loaded, loaded.tokenizer.encode(text, pair), index)
    return next(run for run in runs if run.stage == "losses")


def test_loss_of_a_pair_is_that_of_transformers_whole_model(tiny_bert):
    loaded = load_model(tiny_bert, dtype=torch.float64)
    encoding = loaded.tokenizer.encode("the dog slept", "it was good")
    ids, segments = torch.tensor([encoding.input_ids]), torch.tensor([encoding.token_type_ids])
    reference = BertForPreTraining.from_pretrained(tiny_bert, dtype=torch.float64).eval()
    made = reference(ids, token_type_ids=segments, labels=ids, next_sentence_label=torch.tensor([0]))
    run = losses_of(loaded, "the dog slept", "it was good")
    following = -made.seq_relationship_logits.log_softmax(-1)[0, 0].item()
    for terms in (run.ours, run.theirs):
        assert terms.tolist() == pytest.approx([made.loss.item() - following, following, made.loss.item()], abs=1e-10)


def test_a_changed_next_sentence_head_changes_its_term_alone(tiny_bert):
    loaded = load_model(tiny_bert, dtype=torch.float64)
    bias = "cls.seq_relationship.bias"
    moved = loaded.model.weights[bias] + torch.tensor([1.0, 0.0], dtype=torch.float64)
    other = replace(loaded, model=replace(loaded.model, weights={**loaded.model.weights, bias: moved}))
    before, after = (losses_of(one, "the dog slept", "it was good").ours for one in (loaded, other))
    assert after[0] == before[0]
    assert before[1] - after[1] > 1e-2
    assert float(before[2] - after[2]) == pytest.approx(float(before[1] - after[1]))


def test_loss_of_a_causal_model_is_that_of_transformers_whole_model(tiny_gpt):
    loaded = load_model(tiny_gpt, dtype=torch.float64)
    ids = torch.tensor([loaded.tokenizer.encode("the dog slept in the garden").input_ids])
    made = BertLMHeadModel.from_pretrained(tiny_gpt, dtype=torch.float64).eval()(ids, labels=ids)
    run = losses_of(loaded, "the dog slept in the garden")
    exact = torch.nn.functional.cross_entropy(made.logits[0, :-1], ids[0, 1:]).item()
    assert run.ours.item() == pytest.approx(exact, abs=1e-10)
    assert run.theirs.item() == made.loss.item() == pytest.approx(exact, rel=1e-6)  # it rounds logits to float32
    assert parity.counterparts("losses", causal=True) == ("BertLMHeadModel",)


def test_without_second_sentence_or_head_only_the_masked_term_is_there(tiny_bert, tiny_gpt):
    assert losses_of(load_model(tiny_bert), "the dog slept").shape == (1,)
    assert losses_of(load_model(tiny_gpt), "the dog slept", "it was good").shape == (1,)


def test_heads_that_are_not_there_are_left_out(tiny_ner):
    loaded = load_model(tiny_ner)
    runs = parity.compare_stages(loaded, loaded.tokenizer.encode("the dog"))
    assert {run.stage for run in runs}.isdisjoint({"mlm", "nsp", "losses"})


def test_layer_and_family_are_checked(tiny_bert):
    loaded = load_model(tiny_bert)
    with pytest.raises(ValueError, match="layer 3 of .*: it has 2"):
        parity.compare_stages(loaded, loaded.tokenizer.encode("x"), 2)
    other = replace(loaded, model=replace(loaded.model, config=replace(loaded.config, model_type="roberta")))
    with pytest.raises(ValueError, match="is a roberta"):
        parity.compare_stages(other, loaded.tokenizer.encode("x"))


def test_source_of_the_counterparts_is_that_of_the_installed_package():
    for names in (*parity.COUNTERPARTS.values(), *parity.CAUSAL_COUNTERPARTS.values()):
        for name in names:
            source = parity.reference_source(name)
            assert source.startswith("def forward(")
            assert '"""' not in source
            assert ast.get_docstring(ast.parse(source).body[0]) is None
    assert "softmax" not in parity.reference_source("BertPooler")
    assert parity.reference_version().count(".") == 2

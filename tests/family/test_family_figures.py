"""The treemap adds up, and wrong claims are shown wrong by numbers computed here."""

from __future__ import annotations

import pytest
import torch

from bert_core import model
from bert_core.facts import known_sizes
from bert_core.figures import family, family_claims
from bert_core.load import load_model
from bert_core.trace import TraceRequest, run_batch

CONFIGS = {size.name: size.config for size in known_sizes()}


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_every_node_is_the_sum_of_those_below(name):
    nodes = family.anatomy_info(CONFIGS[name])
    below: dict[str, int] = {}
    for node in nodes:
        below[node.parent] = below.get(node.parent, 0) + node.count
    assert all(below[node.key] == node.count for node in nodes if node.key in below)
    assert len({node.key for node in nodes}) == len(nodes)


def test_treemap_draws_the_counts():
    drawn = family.anatomy_figure(family.anatomy_info(CONFIGS["bert-large-uncased"])).data[0]
    values = dict(zip(drawn.ids, drawn.values, strict=True))
    assert values["all"] == 335_141_888
    assert drawn.branchvalues == "total"


def test_colours_stand_for_kinds_that_add_up():
    nodes = family.anatomy_info(CONFIGS["bert-base-uncased"])
    kinds = {kind.name: kind.count for kind in family.anatomy_kinds(nodes)}
    assert sum(kinds.values()) == nodes[0].count
    assert list(kinds)[:3] == ["feed-forward", "attention", "word embeddings"]
    assert (kinds["feed-forward"], kinds["attention"]) == (12 * 4_723_968, 12 * 2_363_904)


def test_table_folds_equal_layers_and_keeps_the_sum():
    rows = family.anatomy_table(CONFIGS["bert-base-uncased"])
    assert sum(row.total for row in rows) == 109_482_240
    assert {row.times for row in rows} == {1, 12}


def test_edited_sizes_must_fit_together():
    config = family.edited_config(3, 60, 5, 1000)
    assert (config.intermediate_size, config.head_size) == (240, 12)
    with pytest.raises(ValueError, match="not a multiple"):
        family.edited_config(3, 64, 5, 1000)


def test_attention_map_shows_the_last_layer(tiny_bert):
    trace = run_batch(load_model(tiny_bert), [TraceRequest("the dog barked")])[0]
    heat = family.attention_figure(trace).data[0]
    assert heat.z.shape == (len(trace), len(trace))
    assert heat.z[1][2] == pytest.approx(trace.attention_probs[-1, :, 1, 2].mean())
    assert (heat.zmin, heat.zmax) == (0, 1)


def test_each_claim_has_its_evidence(tiny_bert):
    claims = {claim.key: claim for claim in family_claims.claims(load_model(tiny_bert), "the dog slept")}
    assert "37 × 15 numbers" in claims["sinusoidal"].evidence
    assert "words and signs: 3; pieces: 3" in claims["tokens"].evidence
    assert "(5 × 15) matrix" in claims["parallel"].evidence
    assert "39.4 % fewer" in claims["distil"].evidence
    assert "config says 'gelu', here the form with erf." in claims["gelu"].evidence
    assert claims["name"].evidence == ""
    assert all(claim.evidence or claim.page or claim.key == "name" for claim in claims.values())


@pytest.mark.parametrize("name", family_claims.GELU_FORMS)
def test_a_gelu_is_said_in_the_form_that_it_is_computed_in(name):
    x = torch.linspace(-3, 3, 61)
    approximate = "none" if "erf" in family_claims.GELU_FORMS[name] else "tanh"
    assert torch.equal(model._ACTIVATIONS[name](x), torch.nn.functional.gelu(x, approximate=approximate))


def test_sinusoids_are_those_of_the_2017_paper():
    table = family_claims.sinusoid_table(4, 6)
    assert table.shape == (4, 6)
    assert table[0].tolist() == [0, 1, 0, 1, 0, 1]
    assert table[1, 0] == pytest.approx(0.841470985)
    assert family_claims.sinusoid_table(4, 5).shape == (4, 5)


def test_unknown_evidence_is_an_error(tiny_bert):
    with pytest.raises(ValueError, match="no evidence called 'rumour'"):
        family_claims.evidence("rumour", load_model(tiny_bert), "x")

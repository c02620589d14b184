"""What a visitor may ask the trainer for survives its way there, and nothing else gets through."""

import pytest

from bert_core.training.live.specs import FinetuneSpec, PretrainSpec, from_json, to_json


@pytest.mark.parametrize("spec", [PretrainSpec(), PretrainSpec(causal=True, rate=0.5), FinetuneSpec(way="last")])
def test_specs_survive_the_trip(spec):
    assert from_json(to_json(spec)) == spec


@pytest.mark.parametrize("changes", [
    {"steps": 0}, {"steps": 10**9}, {"steps": True}, {"width": 100}, {"layers": 5}, {"lr": float("nan")}, {"lr": 5.0},
    {"rate": 1.0}, {"split": "50/50"}, {"nsp": 1}, {"seed": -1}, {"text": "/etc/passwd"}, {"batch": 1000},
])
def test_a_spec_out_of_bounds_is_refused_with_its_value(changes):
    with pytest.raises(ValueError, match=next(iter(changes))):
        PretrainSpec(**changes)


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, "9" * 5_000, '{"kind": "sing"}',
                                  '{"kind": ["pretrain"]}', '{"kind": "pretrain", "shell": "x"}'])
def test_what_is_no_spec_is_refused(text):
    with pytest.raises(ValueError, match="spec|kind|knows no"):
        from_json(text)

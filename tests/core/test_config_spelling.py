"""config.json is written in the spelling of its family, so that transformers reads the same sizes."""

from __future__ import annotations

import json

from bert_core.config import BertConfig
from bert_core.load import load_model
from bert_core.training.folder import export
from tests.adapters.families import Family, make_family


def test_an_exported_distilbert_keeps_its_width_and_activation(tmp_path):
    import transformers

    sizes = {"dim": 15, "n_layers": 2, "n_heads": 3, "hidden_dim": 23, "max_position_embeddings": 41,
             "activation": "relu"}
    source = make_family(tmp_path / "source", Family("", "DistilBertForMaskedLM", "WordPiece", sizes))
    ours = load_model(str(source))
    export(ours, tmp_path / "out")
    theirs = transformers.AutoConfig.from_pretrained(tmp_path / "out")
    assert {name: getattr(theirs, name) for name in sizes} == sizes
    assert load_model(str(tmp_path / "out")).config == ours.config
    _, report = transformers.DistilBertForMaskedLM.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["mismatched_keys"]


def test_berts_spelling_stays(tiny_bert):
    with open(f"{tiny_bert}/config.json") as file:
        written = BertConfig.from_dict(json.load(file)).to_dict()
    assert (written["hidden_size"], written["intermediate_size"], written["hidden_act"]) == (15, 23, "gelu")
    assert not {"dim", "hidden_dim", "activation"} & written.keys()

"""A tokenizer.json may give segment ids that its model has no vector for: one line of error, as for word ids."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from bert_core.load import load_model
from bert_core.measures import parity
from bert_core.trace import TraceRequest, prepare

COMMANDS = (("nsp", "the dog", "a cat"), ("fill-mask", "the [MASK]"), ("embed", "the dog"), ("score", "the dog"))


def lying(folder: str, out: Path, index: int) -> str:
    """A copy of a checkpoint whose tokenizer gives its first token another segment, of one text and of two."""
    shutil.copytree(folder, out)
    values = json.loads((out / "tokenizer.json").read_text(encoding="utf-8"))
    for form in ("single", "pair"):
        values["post_processor"][form][0]["SpecialToken"]["type_id"] = index
    (out / "tokenizer.json").write_text(json.dumps(values), encoding="utf-8")
    return str(out)


@pytest.mark.parametrize("name", ["BERT", "unknown: ERNIE"])
def test_a_segment_that_no_model_has_is_one_line(name, family, refused, tmp_path):
    model = lying(family(name), tmp_path / "model", 7)
    said = "error: the tokenizer's segment id 7 is outside 0 to 1\n"
    for command in COMMANDS[name != "BERT":]:  # no adapter has a head for nsp
        assert refused(*command, "--model", model) == said
    assert refused("trace", "the dog", "--model", model, "--out", str(tmp_path / "out.npz")) == said
    assert not (tmp_path / "out.npz").exists()


def test_segments_that_were_asked_for_stand_in_for_the_tokenizers(family, tmp_path):
    loaded = load_model(lying(family("BERT"), tmp_path / "model", 7))
    length = len(loaded.tokenizer.encode("the dog"))
    found = prepare(loaded, TraceRequest("the dog", segments=(1,) * length))
    assert found.encoding.token_type_ids == (1,) * length


def test_a_model_without_segments_asks_its_tokenizer_for_none(family, run, tmp_path):
    model = lying(family("DistilBERT"), tmp_path / "model", 7)
    code, _, error = run("fill-mask", "the [MASK]", "--model", model)
    assert (code, error) == (0, "")


def test_the_code_page_says_so_too(family, tmp_path):
    loaded = load_model(lying(family("BERT"), tmp_path / "model", 7))
    with pytest.raises(ValueError, match="segment id 7 is outside 0 to 1"):
        parity.to_inputs(loaded, loaded.tokenizer.encode("the dog"))

"""Special tokens that no file of the folder names: RoBERTa's kin keep them in transformers' code."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from bert_core import load_engine, tasks
from bert_core.load import load_model
from bert_core.tokenizer import special_tokens

ROBERTAS = {"cls": "<s>", "sep": "</s>", "mask": "<mask>", "pad": "<pad>", "unk": "<unk>"}
ALBERTS = {"cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]", "pad": "<pad>", "unk": "<unk>"}


def without_names(folder: str, place: Path, settings: dict | None) -> str:
    """A copy whose tokenizer_config.json is as older hub folders have it, or not there."""
    shutil.copytree(folder, place)
    (place / "tokenizer_config.json").unlink()
    if settings is not None:
        (place / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return str(place)


@pytest.mark.parametrize("settings", [None, {"model_max_length": 512}])
@pytest.mark.parametrize(("name", "specials"), [("RoBERTa", ROBERTAS), ("CamemBERT", ROBERTAS),
                                                ("XLM-RoBERTa", ROBERTAS), ("ALBERT", ALBERTS)])
def test_a_folder_that_names_no_specials_has_its_familys(family, tmp_path, name, specials, settings):
    from transformers import AutoTokenizer

    folder = without_names(family(name), tmp_path / "model", settings)
    own, theirs = load_model(folder).tokenizer, AutoTokenizer.from_pretrained(folder)
    assert own.specials == specials == {role: getattr(theirs, f"{role}_token") for role in specials}
    expected = theirs(f"the {own.mask_token} dog", "a cat")["input_ids"]
    assert list(own.encode("the [MASK] dog", "a cat").input_ids) == expected
    (gap,) = tasks.fill_mask(load_engine(folder), "the [MASK] dog", top=1)
    assert len(gap.predictions) == 1


def test_what_begins_and_ends_no_text_is_no_start_and_no_end(family):
    folder = Path(family("GPT-2"))
    fast = Tokenizer.from_file(str(folder / "tokenizer.json"))
    fast.add_special_tokens(["<s>", "</s>", "<pad>"])
    fast.add_tokens(["<mask>"])  # a word like others
    assert special_tokens(folder / "no such folder", fast) == {"pad": "<pad>"}

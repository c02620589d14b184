"""Exported folders open in transformers and give the same numbers."""

from __future__ import annotations

import errno
import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from bert_core import model as core
from bert_core.cli import main
from bert_core.config import BertConfig
from bert_core.load import SHIPPED, load_model, shipped_names
from bert_core.training.folder import export, fitting_class
from bert_core.training.taskdata import collate
from tests.checkpoints import save_tokenizer, wordpiece

SENTENCES = ("The dog barked all night.", "Paris is good, is it not?")


def ours(loaded, inputs) -> dict[str, torch.Tensor]:
    """Every output our heads give, by transformers' field names."""
    hidden = core.encode(loaded.model, inputs)[1]
    heads, found = loaded.model.heads, {"last_hidden_state": hidden}
    if heads & {"mlm", "lm"}:
        found["prediction_logits" if "nsp" in heads else "logits"] = core.mlm_logits(loaded.model, hidden)
    if "nsp" in heads:
        found["seq_relationship_logits"] = core.nsp_logits(loaded.model, core.pooled_output(loaded.model, hidden))
    if "classification" in heads:
        found["logits"] = core.classification_logits(loaded.model, hidden)
    if "token_classification" in heads:
        found["logits"] = core.token_classification_logits(loaded.model, hidden)
    if "question_answering" in heads:
        found["start_logits"], found["end_logits"] = core.question_answering_logits(loaded.model, hidden)
    return found


def check(name: str, folder: Path, architecture: str) -> None:
    """Export, open with transformers strictly, compare size, tokenizer and every output."""
    import transformers

    assert main(["export", name, str(folder)]) == 0
    loaded = load_model(name)
    model, report = getattr(transformers, architecture).from_pretrained(
        folder, output_loading_info=True, attn_implementation="eager", dtype=torch.float32)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    assert not report["mismatched_keys"]
    assert loaded.info.parameters == sum(p.numel() for p in model.parameters())
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    encoded = [loaded.tokenizer.encode(text) for text in SENTENCES]
    for text, own in zip(SENTENCES, encoded, strict=True):
        assert tokenizer(text)["input_ids"] == list(own.input_ids)
    inputs = collate([(e.input_ids, e.token_type_ids) for e in encoded], loaded.config.pad_token_id)
    inputs = inputs._replace(causal=torch.full((len(encoded),), loaded.config.is_decoder))
    with torch.no_grad():
        theirs = model.eval()(input_ids=inputs.input_ids, token_type_ids=inputs.token_type_ids,
                              attention_mask=inputs.attention_mask.long())
        mine = ours(loaded, inputs)
    compared = [key for key in mine if key in theirs]
    assert compared
    for key in compared:
        valid = inputs.attention_mask if theirs[key].shape[:2] == inputs.attention_mask.shape else ...
        assert (mine[key][valid] - theirs[key][valid]).abs().max() < 1e-4, key


@pytest.mark.parametrize(("fixture", "architecture"), [
    ("tiny_bert", "BertForPreTraining"), ("tiny_gpt", "BertLMHeadModel"),
    ("tiny_classifier", "BertForSequenceClassification"), ("tiny_ner", "BertForTokenClassification"),
    ("tiny_qa", "BertForQuestionAnswering"),
])
def test_export_opens_in_transformers(fixture, architecture, request, tmp_path):
    check(request.getfixturevalue(fixture), tmp_path / "out", architecture)


def test_a_next_sentence_head_keeps_the_pooler_that_it_reads(checkpoint, tmp_path):
    import transformers

    name, folder = checkpoint("BertForNextSentencePrediction"), tmp_path / "out"
    assert main(["export", name, str(folder)]) == 0
    _, report = transformers.BertForNextSentencePrediction.from_pretrained(folder, output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    assert load_model(str(folder)).model.heads == load_model(name).model.heads >= {"nsp", "pooler"}


@pytest.mark.parametrize("name", shipped_names())
def test_shipped_models_export(name, tmp_path):
    check(name, tmp_path / "out", load_model(name).config.architectures[0])


def test_export_never_overwrites(tiny_bert, tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("keep")
    assert main(["export", tiny_bert, str(tmp_path)]) == 2
    assert "not empty" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    for taken in (tmp_path / "mine.txt", tmp_path / "mine.txt" / "below"):
        assert main(["export", tiny_bert, str(taken)]) == 2
        assert "a file stands there" in capsys.readouterr().err


def test_an_export_that_found_no_room_is_none_and_may_be_tried_again(tiny_bert, tmp_path, monkeypatch, capsys):
    def full(*_) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    out = tmp_path / "out"
    with monkeypatch.context() as during:
        during.setattr("bert_core.training.folder.write_tensors", full)
        assert main(["export", tiny_bert, str(out)]) == 2
    assert "No space left" in capsys.readouterr().err
    assert not out.exists()
    assert main(["export", tiny_bert, str(out)]) == 0
    assert main(["export", tiny_bert, ""]) == 2
    assert "must be a path" in capsys.readouterr().err


def test_shipped_weights_are_within_their_bounds():
    files = [path for path in SHIPPED.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= 150e6
    assert max(path.stat().st_size for path in files) < 100e6


def test_a_pair_has_its_segments_in_transformers(tiny_bert, tmp_path):
    import transformers

    loaded = load_model(tiny_bert)
    export(loaded, tmp_path / "out")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    theirs, mine = tokenizer("the dog", "a cat"), loaded.tokenizer.encode("the dog", "a cat")
    assert theirs["input_ids"] == list(mine.input_ids)
    assert theirs["token_type_ids"] == list(mine.token_type_ids)
    assert set(mine.token_type_ids) == {0, 1}


@pytest.mark.parametrize(("name", "architecture"), [
    ("ELECTRA, discriminator", "ElectraForPreTraining"), ("ALBERT, older files", "AlbertForPreTraining"),
    ("RoBERTa", "RobertaForMaskedLM"), ("CamemBERT", "CamembertForMaskedLM"), ("XLM-RoBERTa", "XLMRobertaForMaskedLM"),
    ("ALBERT", "AlbertForMaskedLM"), ("DistilBERT", "DistilBertForMaskedLM"), ("HerBERT", "BertForMaskedLM"),
])
def test_an_export_names_the_class_that_its_tensors_fill(name, architecture, family, tmp_path):
    import transformers

    source, out = family(name), tmp_path / "out"
    loaded = load_model(source)
    export(loaded, out)
    assert load_model(str(out)).config.architectures == (architecture,)
    model, report = getattr(transformers, architecture).from_pretrained(out, output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    before, after = (transformers.AutoTokenizer.from_pretrained(one) for one in (source, out))
    for role in ("bos", "eos", "cls", "sep", "mask", "pad", "unk"):
        assert getattr(after, f"{role}_token") == getattr(before, f"{role}_token"), role
    for text in SENTENCES:
        assert after(text)["input_ids"] == before(text)["input_ids"]


@pytest.mark.parametrize(("name", "architecture", "outputs"), [
    ("ELECTRA, discriminator", "ElectraForPreTraining", ("logits",)),
    ("ALBERT, older files", "AlbertForPreTraining", ("prediction_logits", "sop_logits")),
    ("ALBERT", "AlbertModel", ("last_hidden_state", "pooler_output")),
    ("RoBERTa", "RobertaModel", ("last_hidden_state", "pooler_output")),
])
def test_an_export_gives_what_its_source_gives_in_transformers(name, architecture, outputs, family, tmp_path, capsys):
    """Also of a head that the explorer does not read."""
    import transformers

    source, out = family(name, architecture), tmp_path / "out"
    capsys.readouterr()  # what made the fixture
    assert main(["export", source, str(out), "--json"]) == 0
    said = capsys.readouterr()
    assert (said.err, "left_out" in said.out) == ("", False)
    ids = torch.tensor([load_model(source).tokenizer.encode("the dog", "a cat").input_ids])
    with torch.no_grad():
        before, after = (getattr(transformers, architecture).from_pretrained(one).eval()(ids) for one in (source, out))
    for output in outputs:
        torch.testing.assert_close(after[output], before[output], rtol=0, atol=1e-6)


def without(folder: str, out: Path, start: str, declared: str) -> Path:
    """A copy of a checkpoint that lacks the tensors of one part and declares a class."""
    shutil.copytree(folder, out)
    weights = load_file(out / "model.safetensors")
    save_file({name: tensor for name, tensor in weights.items() if not name.startswith(start)},
              out / "model.safetensors", {"format": "pt"})
    config = json.loads((out / "config.json").read_text(encoding="utf-8"))
    (out / "config.json").write_text(json.dumps(config | {"architectures": [declared]}), encoding="utf-8")
    return out


@pytest.mark.parametrize(("name", "lacks", "declared", "written", "lost"), [
    ("ALBERT, older files", "sop_classifier.", "AlbertForPreTraining", "AlbertForMaskedLM", "the pooler"),
    ("ALBERT, older files", "nothing", "AlbertForMaskedLM", "AlbertForMaskedLM",
     "the head for the order of two sentences and the pooler"),
    ("ELECTRA, discriminator", "nothing", "ElectraModel", "ElectraModel", "the discriminator's head"),
    ("ELECTRA, discriminator", "discriminator_predictions.", "ElectraForPreTraining", "ElectraModel", ""),
    ("BERT", "cls.seq_relationship.", "BertForPreTraining", "BertForMaskedLM", "the pooler"),
])
def test_what_the_written_class_lacks_is_said(name, lacks, declared, written, lost, family, tmp_path, capsys):
    import transformers

    source = without(family(name), tmp_path / "source", lacks, declared)
    capsys.readouterr()  # what made the fixture
    assert main(["export", str(source), str(tmp_path / "out")]) == 0
    expected = f"warning: {lost} of {source} not written: {written} has no such part\n" if lost else ""
    assert capsys.readouterr().err == expected
    _, report = getattr(transformers, written).from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]


def test_a_second_head_without_a_declared_class_is_not_written(family, tmp_path, capsys):
    source = without(family("ELECTRA, discriminator"), tmp_path / "source", "nothing", "")
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    (source / "config.json").write_text(json.dumps(config | {"architectures": None}), encoding="utf-8")
    assert main(["export", str(source), str(tmp_path / "out")]) == 0
    assert capsys.readouterr().err.endswith("not written: config.json declares no class that has it\n")


@pytest.mark.parametrize(("declared", "heads", "expected"), [
    ("BertForPreTraining", {"mlm", "pooler"}, "BertForMaskedLM"), ("BertForPreTraining", {"lm", "nsp", "pooler"}, None),
    ("BertForPreTraining", {"nsp", "pooler"}, "BertForNextSentencePrediction"), ("BertLMHeadModel", {"lm"}, None),
    ("BertForSequenceClassification", {"pooler"}, "BertModel"), ("BertForMaskedLM", {"lm"}, None),
    ("BertForTokenClassification", {"token_classification"}, None), ("BertModel", {"pooler"}, None),
    ("SomethingElse", {"mlm"}, None),
])
def test_a_class_is_renamed_only_where_a_head_of_it_is_missing(declared, heads, expected):
    config = BertConfig(architectures=(declared,))
    assert fitting_class(config, frozenset(heads)) == (expected or declared,)


def test_no_class_is_named_where_none_was_declared():
    assert fitting_class(BertConfig(), frozenset({"mlm"})) == ()


def test_a_word_piece_tokenizer_of_an_albert_has_no_other_names(family, tmp_path):
    size = wordpiece().get_vocab_size()
    folder = tmp_path / "model"
    shutil.copytree(family("ALBERT", vocab_size=size), folder)
    for file in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        (folder / file).unlink(missing_ok=True)
    save_tokenizer(folder)
    export(load_model(str(folder)), tmp_path / "out")
    settings = json.loads((tmp_path / "out" / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert not {"bos_token", "eos_token"} & settings.keys()

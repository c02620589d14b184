"""Strict loading: what a folder may hold, and one clear message for everything else."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from bert_core import hub, load
from bert_core.load import MAX_NAME, LoadError, build, load_model, locate, shipped_names, with_dtype
from bert_core.loading import word_pieces
from bert_core.loading.errors import MAX_MESSAGE
from bert_core.loading.files import read_json
from bert_core.trace import TraceRequest, run_batch
from bert_core.training.folder import find_tokenizer
from tests.checkpoints import VOCABULARY, make_bert


@pytest.fixture
def folder(tiny_bert, tmp_path) -> Path:
    """A copy of the tiny BERT that a test may damage."""
    return Path(shutil.copytree(tiny_bert, tmp_path / "model"))


def edit_config(folder: Path, **changes) -> None:
    values = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**values, **changes}))


def rewrite(folder: Path, change) -> None:
    """Save the weights again as change(name, tensor) -> (name, tensor) or None."""
    tensors = load_file(folder / "model.safetensors")
    changed = [change(name, tensor) for name, tensor in tensors.items()]
    save_file(dict(entry for entry in changed if entry is not None), folder / "model.safetensors")


def name_shards(folder: Path, name: str) -> None:
    """An index that says that all weights lie in the file `name`, and no single file."""
    (folder / "model.safetensors").unlink(missing_ok=True)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"x": name}}))


def logits(folder: Path | str):
    trace = run_batch(load_model(str(folder)), [TraceRequest("the dog [MASK] all night")])[0]
    return torch.tensor(trace.mlm_logits)


def test_legacy_names_load_to_the_same_model(folder, tiny_bert):
    def old(name, tensor):
        name = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        return name, tensor

    rewrite(folder, old)
    assert any(name.endswith("gamma") for name in load_file(folder / "model.safetensors"))
    torch.testing.assert_close(logits(folder), logits(tiny_bert))


def test_an_encoder_saved_without_prefix_loads(folder, tiny_bert):
    rewrite(folder, lambda name, t: (name.removeprefix("bert."), t) if name.startswith("bert.") else None)
    edit_config(folder, architectures=["BertModel"])
    loaded = load_model(str(folder))
    assert loaded.model.heads == {"pooler"}
    assert "no masked-LM head" in loaded.gaps["mlm_logits"]
    request = TraceRequest("the dog")
    mine, whole = (run_batch(load_model(str(one)), [request])[0] for one in (folder, tiny_bert))
    np.testing.assert_allclose(mine.hidden_states, whole.hidden_states, rtol=1e-5, atol=1e-5)


def test_old_buffers_and_a_copied_decoder_are_no_parameters(folder, tiny_bert):
    tensors = load_file(folder / "model.safetensors")
    tensors["bert.embeddings.position_ids"] = torch.arange(37)[None]
    tensors["cls.predictions.decoder.weight"] = tensors["bert.embeddings.word_embeddings.weight"].clone()
    tensors["cls.predictions.decoder.bias"] = tensors.pop("cls.predictions.bias")
    save_file(tensors, folder / "model.safetensors")
    assert load_model(str(folder)).info.parameters == load_model(tiny_bert).info.parameters
    torch.testing.assert_close(logits(folder), logits(tiny_bert))


def test_shards_load_like_one_file(folder, tiny_bert):
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    halves = (dict(list(tensors.items())[::2]), dict(list(tensors.items())[1::2]))
    files = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    for half, file in zip(halves, files, strict=True):
        save_file(half, folder / file)
    index = {"weight_map": {name: file for half, file in zip(halves, files, strict=True) for name in half}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    torch.testing.assert_close(logits(folder), logits(tiny_bert))


def test_the_one_file_counts_where_an_index_was_left_beside_it(folder, tiny_bert):
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"x": "gone.safetensors"}}))
    torch.testing.assert_close(logits(folder), logits(tiny_bert))


def test_an_index_cant_lead_out_of_its_folder(folder, tmp_path):
    (tmp_path / "secret.safetensors").write_bytes((folder / "model.safetensors").read_bytes())
    for name in ("../secret.safetensors", str(tmp_path / "secret.safetensors"), "..", "config.json"):
        name_shards(folder, name)
        with pytest.raises(LoadError, match="no safetensors file of this folder"):
            load_model(str(folder))


def damage(kind: str, folder: Path) -> None:
    """One way in which a checkpoint can be wrong."""
    weights = folder / "model.safetensors"
    if kind == "truncated":
        weights.write_bytes(weights.read_bytes()[:-100])
    elif kind == "empty":
        weights.write_bytes(b"")
    elif kind == "pickle in disguise":
        torch.save({"a": torch.ones(2)}, weights)
    elif kind == "only a pickle":
        weights.unlink()
        torch.save({"a": torch.ones(2)}, folder / "pytorch_model.bin")
    elif kind == "a folder for weights":
        weights.unlink()
        weights.mkdir()
    elif kind == "no weights":
        weights.unlink()
    elif kind == "a layer is missing":
        rewrite(folder, lambda name, t: None if "layer.1.output.dense.weight" in name else (name, t))
    elif kind == "a layer too many":
        edit_config(folder, num_hidden_layers=1)
    elif kind == "half a head":
        rewrite(folder, lambda name, t: None if name == "cls.seq_relationship.weight" else (name, t))
    elif kind == "another shape":
        edit_config(folder, intermediate_size=29)
    elif kind == "foreign":
        rewrite(folder, lambda name, t: (f"transformer.h.{name}", t))
    elif kind == "a name of two lines":
        rewrite(folder, lambda name, t: (name.replace("cls.seq", "two\n\u2028lines"), t))
    elif kind == "a long name":
        rewrite(folder, lambda name, t: (name.replace("cls.seq", "x" * 10**6), t))
    elif kind == "a shard with a long name":
        name_shards(folder, "x" * 300 + ".safetensors")
    elif kind == "a shard with control characters":
        name_shards(folder, "\x1b[31m\ud800\n.safetensors")
    elif kind == "a folder for a vocabulary":
        (folder / "tokenizer.json").unlink()
        (folder / "vocab.txt").mkdir()
    else:
        raise AssertionError(kind)


@pytest.mark.parametrize(("kind", "message"), [
    ("truncated", "damaged or no safetensors"), ("empty", "damaged or no safetensors"),
    ("pickle in disguise", "damaged or no safetensors"), ("only a pickle", "only pickled weights"),
    ("a folder for weights", "damaged or no safetensors"), ("no weights", "model.safetensors is missing"),
    ("a layer is missing", "the weights lack bert.encoder.layer.1"),
    ("a layer too many", "which the declared architecture does not have"),
    ("half a head", "nsp head is incomplete: cls.seq_relationship.weight"),
    ("another shape", "config.json says"), ("foreign", "the weights lack bert.embeddings"),
    ("a name of two lines", "the weights hold two  lines_"), ("a long name", "the weights hold xxx.*…$"),
    ("a shard with a long name", "name too long"), ("a folder for a vocabulary", "vocab.txt"),
    ("a shard with control characters", r": �\[31m� .safetensors is missing"),
])
def test_a_wrong_checkpoint_gets_one_clear_line(kind, message, folder):
    damage(kind, folder)
    with pytest.raises(LoadError, match=message) as caught:
        load_model(str(folder))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) <= MAX_MESSAGE
    assert str(caught.value).startswith(f"{folder}: ")


@pytest.mark.parametrize("text", ["", "[]", "{", "null", '{"model_type": 3}', '{"vocab_size": "many"}',
                                  '{"hidden_size": 0}', '{"hidden_size": 16, "num_attention_heads": 3}',
                                  '{"num_hidden_layers": true}', '{"id2label": {"a": "b"}}', '{"hidden_act": "magic"}',
                                  '{"hidden_size": %s}' % ("9" * 4000), '{"num_labels": 65537}',
                                  '{"type_vocab_size": -1}', '{"layer_norm_eps": "x"}', '{"pad_token_id": 1e9}',
                                  '{"model_type": "no-such-model"}', '{"model_type": "t5"}', "[" * 100_000])
def test_a_wrong_config_gets_one_clear_line(text, folder):
    (folder / "config.json").write_text(text)
    with pytest.raises(LoadError) as caught:
        load_model(str(folder))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) <= MAX_MESSAGE


@pytest.mark.parametrize("content", [b"\xff\xfe", b"{", b'{"a": %s}' % (b"9" * 5000), b"[" * 100_000])
def test_a_file_that_is_no_json_is_named(content, tmp_path):
    (tmp_path / "some.json").write_bytes(content)
    with pytest.raises(LoadError, match=r"^some\.json can't be read"):
        read_json(tmp_path / "some.json")


@pytest.mark.parametrize("model_type", ["bert", "roberta", "albert", "gpt2", "deberta-v2"])
@pytest.mark.parametrize("changes", [
    {"vocab_size": 10**6, "hidden_size": 10**6, "num_attention_heads": 1}, {"num_hidden_layers": 10**9},
    {"n_layer": 10**9, "num_hidden_layers": 10**9}, {"vocab_size": 10**12}, {"intermediate_size": 2**24},
    {"num_labels": 10**7},
])
def test_a_config_that_asks_for_a_trillion_allocates_nothing(model_type, changes, folder):
    edit_config(folder, model_type=model_type, **changes)
    with pytest.raises(LoadError):
        load_model(str(folder))


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\xfe", b'{"version": "1.0", "model": {"type": "WordPiece"}}'])
def test_a_wrong_tokenizer_gets_one_clear_line(content, folder):
    (folder / "tokenizer.json").write_bytes(content)
    with pytest.raises(LoadError, match=r"tokenizer.json can't be read"):
        load_model(str(folder))


@pytest.mark.parametrize(("where", "name"), [(".", "models/twin-bert"), ("models/twin-bert", "."), (".", "link")])
def test_a_shipped_models_own_folder_opens_however_it_is_named(tiny_bert, tmp_path, monkeypatch, where, name):
    """Its tokenizer stands beside the shipped models, not in it."""
    shutil.copytree(tiny_bert, tmp_path / "models" / "twin-bert")
    shutil.move(tmp_path / "models" / "twin-bert" / "tokenizer.json", tmp_path / "models")
    (tmp_path / "link").symlink_to(tmp_path / "models" / "twin-bert")
    monkeypatch.setattr(load, "SHIPPED", tmp_path / "models")
    monkeypatch.chdir(tmp_path / where)
    assert load_model(name).tokenizer.encode("the dog").tokens == ("[CLS]", "the", "dog", "[SEP]")
    assert find_tokenizer(Path(name), load_model(name).config) == tmp_path / "models" / "tokenizer.json"


def test_a_tokenizer_of_another_model_is_refused(folder):
    values = json.loads((folder / "tokenizer.json").read_text())
    values["model"]["vocab"]["one too many"] = 117
    (folder / "tokenizer.json").write_text(json.dumps(values))
    with pytest.raises(LoadError, match="the tokenizer has id 117; the model knows 117 pieces"):
        load_model(str(folder))


def test_no_tokenizer_gets_one_clear_line(folder):
    for file in ("tokenizer.json", "tokenizer_config.json"):
        (folder / file).unlink()
    with pytest.raises(LoadError, match="the folder has no tokenizer.json and no other tokenizer files"):
        load_model(str(folder))


@pytest.mark.parametrize("name", ["", "no spaces here", "a/b/c", "../x", "a\0b", "-x", "http://x", "a" * 300, "ü/x",
                                  "~no-such-user", "bert--base", "gpt2-", "a/b.git", "a/b..c", "a/b."])
def test_a_name_that_is_none_is_refused_before_anything_is_asked(name):
    with pytest.raises(LoadError):
        locate(name)


@pytest.mark.parametrize(("name", "message"), [
    ("", "no model name given"), ("a\nb", r"'a\\nb' is no model's name: it holds control characters"),
    ("a/b/c", r"'a/b/c' is no shipped model, no folder and no hub id \(owner/model\)"),
])
def test_what_is_wrong_with_a_name_is_said(name, message):
    with pytest.raises(LoadError, match=f"^{message}$"):
        locate(name)


@pytest.mark.parametrize(("more", "message"), [("", "downloads are switched off"), ("b", "no hub id")])
def test_a_hub_id_has_a_longest_length(more, message, monkeypatch):
    monkeypatch.setenv("BOTH_WAYS_HUB", "off")
    with pytest.raises(LoadError, match=message):
        locate("a" * 48 + "/" + "b" * 47 + more)


@pytest.mark.parametrize("name", ["models/file.txt", "models/gone", "models/itself", "file.txt"])
def test_what_is_on_this_disk_and_no_folder_is_not_looked_for_on_the_hub(name, tmp_path, monkeypatch):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "file.txt").write_text("no model", encoding="utf-8")
    (tmp_path / "file.txt").write_text("no model", encoding="utf-8")
    (tmp_path / "models" / "gone").symlink_to(tmp_path / "nothing")
    (tmp_path / "models" / "itself").symlink_to(tmp_path / "models" / "itself")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hub, "download", lambda name: pytest.fail(f"{name} was fetched"))
    with pytest.raises(LoadError, match=f"{name} is no folder that can be read"):
        locate(name)


def test_a_folder_may_be_named_from_the_home(tiny_bert, monkeypatch):
    monkeypatch.setenv("HOME", str(Path(tiny_bert).parent))
    assert locate(f"~/{Path(tiny_bert).name}") == Path(tiny_bert)


def test_a_name_of_a_folder_has_a_longest_length(tiny_bert):
    longest = tiny_bert + "/" * (MAX_NAME - len(tiny_bert))
    assert locate(longest) == Path(tiny_bert)
    with pytest.raises(LoadError, match="is no shipped model, no folder and no hub id"):
        locate(longest + "/")


def test_without_shipped_models_a_folder_still_loads(tiny_bert, tmp_path, monkeypatch):
    monkeypatch.setattr(load, "SHIPPED", tmp_path / "nowhere")
    assert shipped_names() == ()
    assert load_model(tiny_bert).info.tasks == ("fill-mask", "nsp")


def test_a_hub_id_without_network_says_that_the_shipped_ones_stay(monkeypatch):
    monkeypatch.setenv("BOTH_WAYS_HUB", "off")
    with pytest.raises(LoadError, match="owner/model: downloads are switched off here; choose a shipped model"):
        load_model("owner/model")


def test_the_setting_of_the_pages_does_not_bind_who_runs_python(tiny_bert, tmp_path, monkeypatch):
    monkeypatch.setenv("BOTH_WAYS_FOLDERS", str(tmp_path))
    info = load_model(tiny_bert).info
    assert (info.tasks, info.shipped) == (("fill-mask", "nsp"), False)


def test_code_in_a_folder_never_runs(folder):
    ran = folder / "ran"
    (folder / "modeling_evil.py").write_text(f"open({str(ran)!r}, 'w')\n")
    edit_config(folder, model_type="evil", auto_map={"AutoConfig": "modeling_evil.C", "AutoModel": "modeling_evil.M"})
    with pytest.raises(LoadError):
        load_model(str(folder))
    assert not ran.exists()


@pytest.mark.parametrize("name", ["tiny_ner", "tiny_qa"])
def test_a_pooler_that_the_head_does_not_read_is_no_part_of_the_model(name, request, tmp_path):
    whole = request.getfixturevalue(name)
    folder = shutil.copytree(whole, tmp_path / "task")
    pooler = {"bert.pooler.dense.weight": torch.randn(15, 15), "bert.pooler.dense.bias": torch.randn(15)}
    save_file(load_file(folder / "model.safetensors") | pooler, folder / "model.safetensors")
    loaded = load_model(str(folder))
    assert "pooler" not in loaded.model.heads
    assert loaded.info.parameters == load_model(whole).info.parameters
    assert loaded.gaps["pooled_output"] == "its head reads every token, not a pooled [CLS]"
    assert not run_batch(loaded, [TraceRequest("the dog")])[0].has("pooled_output")


def test_an_untied_decoder_is_used_and_counted(checkpoint):
    from tests.core.reference import open_reference

    folder = checkpoint("BertForMaskedLM", tie_word_embeddings=False)
    ours, theirs = load_model(folder, torch.float64), open_reference(folder)
    trace = run_batch(ours, [TraceRequest("the [MASK]")])[0]
    expected = theirs(torch.tensor(trace.input_ids)[None]).logits[0, 2].detach()
    torch.testing.assert_close(torch.tensor(trace.mlm_logits[0]), expected, rtol=0, atol=1e-10)
    used = [p for name, p in theirs.named_parameters() if name != "cls.predictions.bias"]  # the decoder has its own
    assert ours.info.parameters == sum(p.numel() for p in used)


def test_another_precision_is_the_same_model(tiny_bert):
    loaded = load_model(tiny_bert)
    double = with_dtype(loaded, torch.float64)
    assert double.model.dtype == torch.float64
    assert loaded.model.dtype == torch.float32
    assert torch.equal(double.model.weights["bert.pooler.dense.bias"].float(),
                       loaded.model.weights["bert.pooler.dense.bias"])


def test_what_was_packed_for_one_precision_is_not_kept_for_another(tiny_bert):
    loaded = load_model(tiny_bert)
    packed = replace(loaded, model=replace(loaded.model, fast_linear={"bert.pooler.dense": None}))
    assert with_dtype(packed, torch.float64).model.fast_linear == {}


def test_tensors_in_memory_of_another_block_are_refused(tiny_bert):
    model = load_model(tiny_bert).model
    assert build(model.config, model.weights, torch.float32, "cpu").heads == model.heads
    other = replace(model.config, extra={"position_embedding_type": "relative_key"})
    with pytest.raises(LoadError, match="model_type 'bert' has a different block from BERT's"):
        build(other, model.weights, torch.float32, "cpu")


def test_eight_models_are_shipped():
    """Tests elsewhere go through these: none of them is left out because its folder isn't there."""
    assert shipped_names() == ("twin-bert", "twin-gpt", "twin-rtl", "twin-bert-cola", "twin-bert-ner",
                               "twin-bert-squad", "twin-bert-sst2", "twin-bert-stsb")


def test_a_list_of_words_that_is_too_large_is_not_read(folder, monkeypatch):
    for file in ("tokenizer.json", "tokenizer_config.json"):
        (folder / file).unlink()
    (folder / "vocab.txt").write_text("[UNK]\n[CLS]\n[SEP]\nword\n")
    monkeypatch.setattr(word_pieces, "MAX_JSON", 8)
    with pytest.raises(LoadError, match="vocab.txt is larger than"):
        load_model(str(folder))


@pytest.mark.parametrize("settings", [
    {}, {"do_lower_case": False}, {"strip_accents": False}, {"do_lower_case": False, "strip_accents": True},
    {"tokenize_chinese_chars": False},
])
def test_a_list_of_words_is_read_as_its_settings_say(settings, tmp_path):
    from transformers import BertTokenizer

    pieces = (*VOCABULARY, "é", "Dog", "\u2028", "\x85", "中国", "中", "国", "##é", "##É")
    make_bert(tmp_path, vocab_size=len(pieces))
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    text = "the Dog é aé É 中国 dog"
    expected = BertTokenizer.from_pretrained(tmp_path)(text)["input_ids"]
    assert list(load_model(str(tmp_path)).tokenizer.encode(text).input_ids) == expected


def test_a_tokenizer_that_panics_is_an_error_of_the_text(folder):
    """Oniguruma gives up on such a pattern; the library panics outside of Exception."""
    values = json.loads((folder / "tokenizer.json").read_text())
    values["pre_tokenizer"] = {"type": "Split", "pattern": {"Regex": "(a|aa)+$"}, "behavior": "Isolated",
                               "invert": False}
    (folder / "tokenizer.json").write_text(json.dumps(values))
    (folder / "tokenizer_config.json").unlink()  # it would have BERT's own steps take the place of these
    with pytest.raises(ValueError, match="can't split this text"):
        load_model(str(folder)).tokenizer.encode("a" * 40 + "b")


def test_the_rows_of_one_text_are_tokenised_once(tiny_bert, monkeypatch):
    loaded, cut = load_model(tiny_bert), []
    encode = loaded.tokenizer.encode
    monkeypatch.setattr(loaded.tokenizer, "encode", lambda *text: cut.append(text) or encode(*text))
    traces = run_batch(loaded, [TraceRequest("the dog barked", masked=(n,)) for n in (1, 2, 3)]
                       + [TraceRequest("the dog barked", "we slept")])
    assert cut == [("the dog barked", None), ("the dog barked", "we slept")]
    assert [trace.encoding.mask_positions for trace in traces] == [(1,), (2,), (3,), ()]

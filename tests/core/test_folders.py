"""What stands in a folder besides the weights: word lists, special tokens, dead buffers, settings of another block."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import stat
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from bert_core import tokenizer
from bert_core.adapters.foreign import ForeignModel
from bert_core.load import LoadError, load_model
from bert_core.loading import files
from bert_core.loading.check import canonical_names, is_ours
from bert_core.loading.files import read_headers, read_json, read_tensors, write_tensors
from bert_core.model import Model
from bert_core.request import TraceRequest, prepare
from bert_core.tokenizer import read_tokenizer, special_tokens
from tests.checkpoints import VOCABULARY


@pytest.fixture
def folder(tiny_bert, tmp_path) -> Path:
    """A copy of the tiny BERT that a test may damage."""
    return Path(shutil.copytree(tiny_bert, tmp_path / "model"))


@pytest.fixture
def words(tmp_path) -> Path:
    """A folder of the form of 2018: vocab.txt alone."""
    (tmp_path / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    return tmp_path


# --- vocab.txt and special tokens ----------------------------------------------


def test_a_list_of_words_gives_berts_own_steps(words):
    found = read_tokenizer(words, 37, True)
    both = found.encode("The DOG [MASK]", "he slept")
    assert both.tokens == ("[CLS]", "the", "dog", "[MASK]", "[SEP]", "he", "slept", "[SEP]")
    assert both.token_type_ids == (0, 0, 0, 0, 0, 1, 1, 1)
    assert both.special == (True, False, False, False, True, False, False, True)
    assert found.decode(found.encode("the catly slept").input_ids) == "the catly slept"
    assert read_tokenizer(words, 37, False).encode("he", "she").token_type_ids == (0,) * 5


def test_a_folder_that_names_no_specials_has_berts(words):
    assert read_tokenizer(words, 37, True).specials == {
        "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]", "pad": "[PAD]", "unk": "[UNK]"}


def test_a_list_of_words_keeps_its_letters_where_it_says_so(words):
    (words / "tokenizer_config.json").write_text('{"do_lower_case": false}', encoding="utf-8")
    assert read_tokenizer(words, 37, True).encode("the Dog").tokens == ("[CLS]", "the", "[UNK]", "[SEP]")


@pytest.mark.parametrize("lacking", ["[UNK]", "[CLS]", "[SEP]"])
def test_a_list_of_words_without_its_specials_is_none(words, lacking):
    (words / "vocab.txt").write_text("\n".join(w for w in VOCABULARY if w != lacking), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"vocab.txt lacks \{lacking}: it is no WordPiece"):
        read_tokenizer(words, 37, True)


def test_a_list_of_words_in_another_encoding_is_said(words):
    (words / "vocab.txt").write_bytes(b"[UNK]\n[CLS]\n[SEP]\n\xff\xfe\n")
    with pytest.raises(ValueError, match="vocab.txt can't be read"):
        read_tokenizer(words, 37, True)


def test_a_tokenizer_that_is_too_large_is_not_read(folder, monkeypatch):
    monkeypatch.setattr(tokenizer, "MAX_JSON", 8)
    with pytest.raises(ValueError, match="tokenizer.json is larger than"):
        read_tokenizer(folder, 37, True)


def test_the_map_of_specials_counts_before_the_settings_and_what_is_no_piece_is_left_out(folder):
    fast = read_tokenizer(folder, 37, True).backend
    (folder / "special_tokens_map.json").write_text(json.dumps(
        {"mask_token": {"content": "dog"}, "sep_token": "no such piece", "pad_token": 3}), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"mask_token": "cat", "unk_token": "he"}), "utf-8")
    assert special_tokens(folder, fast) == {"mask": "dog", "unk": "he", "cls": "[CLS]", "pad": "[PAD]"}


def test_padding_and_cutting_of_the_folder_are_not_ours(folder):
    fast = tokenizer.FastTokenizer.from_file(str(folder / "tokenizer.json"))
    fast.enable_padding(length=20)
    fast.enable_truncation(4)
    fast.save(str(folder / "tokenizer.json"))
    found = read_tokenizer(folder, 37, True).encode("the dog barked all night")
    assert (len(found), found.dropped, found.tokens[-1]) == (7, 0, "[SEP]")


@pytest.mark.parametrize(("limit", "kept", "dropped"), [(5, 5, 2), (6, 6, 1), (7, 7, 0)])
def test_at_the_limit_nothing_is_dropped_and_one_beyond_it_is(folder, limit, kept, dropped):
    found = read_tokenizer(folder, limit, True).encode("the dog barked all night ")
    assert (len(found), found.dropped, found.truncated) == (kept, dropped, dropped > 0)
    assert found.cut_at == ((None, None) if not dropped else (found.offsets[-2][1], None))


def test_a_limit_without_room_for_a_word_is_refused(folder):
    with pytest.raises(ValueError, match="a limit of 2 tokens leaves no room"):
        read_tokenizer(folder, 2, True)
    assert read_tokenizer(folder, 3, True).encode("the dog").tokens == ("[CLS]", "the", "[SEP]")


def test_masks_and_unknown_pieces_are_content_and_typed_specials_are_not(folder):
    found = read_tokenizer(folder, 37, True).encode("[MASK] 中 [SEP] dog [PAD]")
    assert found.tokens == ("[CLS]", "[MASK]", "[UNK]", "[SEP]", "dog", "[PAD]", "[SEP]")
    assert found.content == (1, 2, 4)


@pytest.mark.parametrize("name", ["BERT", "RoBERTa", "GPT-2"])
def test_pieces_of_a_long_text_are_all_there_at_their_places(family, name):
    text = "the [MASK] dog [MASK] slept " + "dog " * 60
    spans = load_model(family(name)).tokenizer.spans(text)
    assert "".join(text[one.start:one.end] for one in spans).replace(" ", "") == text.replace(" ", "")
    assert all(one.word is not None for one in spans)


def test_a_mask_in_the_second_sentence_is_the_familys_own(family):
    own = load_model(family("RoBERTa")).tokenizer
    found = own.encode("the dog", "a [MASK] cat")
    (place,) = found.mask_positions
    assert (found.sequence_ids[place], found.tokens[place]) == (1, "<mask>")
    assert found.pair[slice(*found.offsets[place])].strip() == "[MASK]"


def test_two_sentences_are_one_segment_where_the_model_has_one(checkpoint):
    loaded = load_model(checkpoint("BertForPreTraining", type_vocab_size=1))
    found = prepare(loaded, TraceRequest("the dog", "we slept")).encoding
    assert found.sequence_ids.count(1) == 2
    assert set(found.token_type_ids) == {0}


def test_a_piece_that_was_added_later_and_has_no_row_is_refused_when_it_is_typed(folder):
    """The library gives it the next id, which the model's table doesn't reach."""
    fast = tokenizer.FastTokenizer.from_file(str(folder / "tokenizer.json"))
    fast.add_tokens(["xylophone"])
    fast.save(str(folder / "tokenizer.json"))
    loaded = load_model(str(folder))
    assert loaded.tokenizer.largest_id == 116
    assert prepare(loaded, TraceRequest("the dog")).encoding.input_ids[0] == loaded.tokenizer.id_of("[CLS]")
    with pytest.raises(ValueError, match="vocabulary id 117 is outside 0 to 116"):
        prepare(loaded, TraceRequest("the xylophone"))


# --- weights -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bert.embeddings.token_type_ids", "embeddings.position_ids", "position_ids",
                                  "discriminator_predictions.dense.weight", "sop_classifier.classifier.bias",
                                  "sequence_summary.summary.weight"])
def test_buffers_and_heads_of_no_use_are_left_on_disk(folder, name):
    tensors = load_file(folder / "model.safetensors")
    save_file(tensors | {name: torch.ones(1, 37)}, folder / "model.safetensors")
    assert set(load_model(str(folder)).model.weights) == set(tensors)


@pytest.mark.parametrize("tied", [True, False])
def test_of_two_biases_the_decoders_own_counts(tiny_bert, tied):
    config = load_model(tiny_bert).config.__class__(tie_word_embeddings=tied)
    found = canonical_names({"cls.predictions.bias": 1.0, "cls.predictions.decoder.bias": 2.0}, config)
    assert found == {"cls.predictions.bias": 2.0}
    assert canonical_names({"cls.predictions.decoder.bias": 2.0}, config) == {"cls.predictions.bias": 2.0}


@pytest.mark.parametrize(("changes", "ours"), [
    ({}, True), ({"position_embedding_type": "absolute"}, True), ({"position_embedding_type": "relative_key"}, False),
    ({"num_hidden_groups": 1}, True), ({"num_hidden_groups": 2}, False), ({"inner_group_num": 3}, False),
    ({"inner_group_num": 1}, True),
    ({"add_cross_attention": False}, True), ({"add_cross_attention": True}, False),
    ({"position_embedding_type": None}, True), ({"model_type": "gpt2"}, False),
])
def test_a_setting_of_another_block_is_not_run_as_berts(changes, ours):
    from bert_core.config import BertConfig

    assert is_ours(BertConfig.from_dict({"model_type": "bert", **changes})) is ours


def test_json_is_read_up_to_its_bound_and_not_beyond(tmp_path, monkeypatch):
    file = tmp_path / "some.json"
    file.write_text('{"a": 1}')
    monkeypatch.setattr(files, "MAX_JSON", 8)
    assert read_json(file) == {"a": 1}
    file.write_text('{"a": 1} ')
    with pytest.raises(LoadError, match=r"some\.json is larger than"):
        read_json(file)


def test_a_bert_with_a_block_of_its_own_runs_through_transformers(checkpoint):
    found = load_model(checkpoint("BertLMHeadModel", is_decoder=True, add_cross_attention=True))
    assert isinstance(found.model, ForeignModel)
    plain = load_model(checkpoint("BertLMHeadModel", is_decoder=True, add_cross_attention=False))
    assert isinstance(plain.model, Model)


@pytest.mark.parametrize(("text", "message"), [
    (b'"words"', "holds no JSON object"), (b"\xff\xfe{}", "can't be read"), (b"{", "can't be read"),
])
def test_json_that_is_no_object_is_said(tmp_path, text, message):
    (tmp_path / "config.json").write_bytes(text)
    with pytest.raises(LoadError, match=f"config.json {message}"):
        read_json(tmp_path / "config.json")


def test_weights_are_written_whole_with_what_is_said_of_them(tmp_path):
    path = tmp_path / "model.safetensors"
    table = torch.arange(15.0).reshape(3, 5)
    write_tensors({"turned": table.T}, path, {"step": "7"})
    assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors"]
    assert torch.equal(read_tensors(read_headers(tmp_path), ["turned"])["turned"], table.T)
    assert b'"step":"7"' in path.read_bytes()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no umask")
@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o007, 0o660)])
def test_who_may_read_weights_is_the_umasks_to_say(tmp_path, umask, mode):
    path, before = tmp_path / "model.safetensors", os.umask(umask)
    try:
        write_tensors({"a": torch.ones(3)}, path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == mode


#: A process that ends while safetensors has its file open, under a name that the library chooses.
STOPPED_HALFWAY = """
import os, pathlib, sys
from safetensors import torch
from bert_core.loading.files import write_tensors

def stop_halfway(tensors, path, metadata):
    path.with_name(".tmpA1b2C3").write_bytes(b"half")
    os._exit(9)

torch.save_file = stop_halfway
write_tensors({}, pathlib.Path(sys.argv[1]))
"""


def test_what_a_killed_process_left_goes_with_the_next_file(tmp_path):
    path = tmp_path / "model.safetensors"
    write_tensors({"a": torch.ones(3)}, path)
    assert subprocess.run([sys.executable, "-c", STOPPED_HALFWAY, path], check=False).returncode == 9
    assert torch.equal(load_file(path)["a"], torch.ones(3))
    assert list(tmp_path.rglob(".tmp*"))
    write_tensors({"a": torch.ones(5)}, path)
    assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors"]


def test_weights_that_may_not_be_read_are_not_called_damaged(folder, monkeypatch):
    """As another user meets them, of whom safetensors says that the file isn't there."""
    def refuse(file, framework):
        raise FileNotFoundError(f"No such file or directory: {file}")

    monkeypatch.setattr(files.os, "access", lambda file, mode: False)
    monkeypatch.setattr(files, "safe_open", refuse)
    with pytest.raises(LoadError, match="model.safetensors may not be read by this user"):
        load_model(str(folder))


@pytest.mark.parametrize("suffix", ["bin", "pt", "pth", "ckpt", "pkl", "h5"])
def test_pickled_weights_alone_are_named_as_such(folder, suffix):
    (folder / "model.safetensors").rename(folder / f"pytorch_model.{suffix}")
    with pytest.raises(LoadError, match="only pickled weights"):
        load_model(str(folder))


def test_a_file_that_cant_be_written_leaves_nothing_behind(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        write_tensors({"a": torch.ones(3)}, tmp_path / "taken")
    with pytest.raises(OSError, match="weights can't be written"):
        write_tensors({"a": torch.ones(3)}, tmp_path / "nowhere" / "weights")
    assert [file.name for file in tmp_path.iterdir()] == ["taken"]


@pytest.mark.parametrize(("held", "is_replaced"), [(2, True), (4, False)])
def test_a_file_that_another_has_open_is_replaced_as_soon_as_it_is_closed(tmp_path, monkeypatch, held, is_replaced):
    """As on Windows: three tries, and the file is open during the first `held` of them."""
    tries, replace = itertools.count(1), os.replace

    def refuse(part, path):
        if next(tries) <= held:
            raise PermissionError("open")
        replace(part, path)

    monkeypatch.setattr(files, "_PAUSES", (0.0, 0.0))
    monkeypatch.setattr(files.os, "replace", refuse)
    path = tmp_path / "model.safetensors"
    with nullcontext() if is_replaced else pytest.raises(OSError, match="can't be written"):
        write_tensors({"a": torch.ones(3)}, path)
    assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors"] * is_replaced
    assert next(tries) == 4


@pytest.mark.parametrize("hurt", [lambda file: file.write_bytes(b"{"), Path.unlink])
def test_weights_that_are_damaged_after_their_header_was_read_are_said(tmp_path, hurt):
    file = tmp_path / "model.safetensors"
    write_tensors({"a": torch.ones(3)}, file)
    stored = read_headers(tmp_path)
    hurt(file)
    with pytest.raises(LoadError, match=r"model\.safetensors is damaged"):
        read_tensors(stored, ["a"])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_weights_of_every_precision_are_the_same_model(folder, tiny_bert, dtype):
    tensors = load_file(folder / "model.safetensors")
    save_file({name: tensor.to(dtype) for name, tensor in tensors.items()}, folder / "model.safetensors")
    found, whole = load_model(str(folder)).model.weights, load_model(tiny_bert).model.weights
    assert {tensor.dtype for tensor in found.values()} == {torch.float32}
    for name in whole:
        torch.testing.assert_close(found[name], whole[name], rtol=2**-8, atol=1e-6)


@pytest.mark.parametrize("name", ["DistilBERT", "ELECTRA, generator", "ALBERT", "RoBERTa"])
def test_an_encoder_saved_without_its_familys_prefix_is_the_same(family, tmp_path, name):
    source = family(name)
    folder = Path(shutil.copytree(source, tmp_path / "model"))
    whole = load_model(source)
    prefix = whole.model.names.prefix
    tensors = load_file(folder / "model.safetensors")
    save_file({name.removeprefix(prefix): t for name, t in tensors.items()}, folder / "model.safetensors")
    assert not any(name.startswith(prefix) for name in load_file(folder / "model.safetensors"))
    bare = load_model(str(folder)).model.weights
    assert bare.keys() == whole.model.weights.keys()
    assert all(torch.equal(bare[name], whole.model.weights[name]) for name in bare)


def test_a_missing_shard_is_named_although_pickles_stand_beside_it(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"x": "a.safetensors"}}))
    with pytest.raises(LoadError, match="a.safetensors is missing"):
        load_model(str(folder))


@pytest.mark.parametrize("index", [{"weight_map": {}}, {"weight_map": "a.safetensors"}, {}])
def test_an_index_without_a_map_is_said(folder, index):
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(LoadError, match="has no weight_map"):
        load_model(str(folder))

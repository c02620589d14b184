"""Models of other blocks at the edges: what is taken for a size, who averages, what a tokenizer in Python knows."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from bert_core.adapters import load as adapted
from bert_core.adapters.quiet import first_line, quiet
from bert_core.adapters.tokenizers import PythonTokenizer, read_other_tokenizer
from bert_core.load import LoadError, load_model
from bert_core.tokenizer import ROLES, Encoding
from bert_core.trace import TraceRequest, run_batch
from tests.adapters.tokenizer_kinds import gpt2, phobert

# --- config --------------------------------------------------------------------


@pytest.mark.parametrize(("values", "refused"), [
    ({"hidden_size": adapted.MAX_SIZE}, False), ({"hidden_size": adapted.MAX_SIZE + 1}, True),
    ({"n_layer": adapted.MAX_LAYERS}, False), ({"n_layer": adapted.MAX_LAYERS + 1}, True),
    ({"eos_token_id": 10**12}, False), ({"rope_theta": 10**12}, False), ({"tie": True}, False),
    ({"dim": 1e30}, False),
])
def test_sizes_have_bounds_and_ids_have_none(values, refused):
    if refused:
        with pytest.raises(LoadError, match=f"config: {next(iter(values))} is .* no model that can be loaded here"):
            adapted.check_bounds(values)
    else:
        adapted.check_bounds(values)


def their_config(**changes) -> SimpleNamespace:
    """A config as transformers reads it, of odd sizes."""
    sizes = dict(vocab_size=29, hidden_size=15, num_hidden_layers=2, num_attention_heads=3, model_type="some",
                 problem_type="single_label_classification", architectures=["SomeModel"], id2label={1: "b", 0: "a"})
    return SimpleNamespace(**sizes | changes)


@pytest.mark.parametrize(("changes", "field", "expected"), [
    ({}, "intermediate_size", 60), ({"n_inner": 23}, "intermediate_size", 23),
    ({"n_inner": None}, "intermediate_size", 60),
    ({"intermediate_size": 31, "n_inner": 23}, "intermediate_size", 31), ({}, "max_position_embeddings", 510),
    ({"max_position_embeddings": 43}, "max_position_embeddings", 41), ({}, "type_vocab_size", 0),
    ({"type_vocab_size": 2}, "type_vocab_size", 2), ({"pad_token_id": -1}, "pad_token_id", 0),
    ({"pad_token_id": None}, "pad_token_id", 0), ({"pad_token_id": 5}, "pad_token_id", 5),
    ({"pad_token_id": 28}, "pad_token_id", 28), ({"pad_token_id": 29}, "pad_token_id", 0),
    ({"model_type": "gpt2"}, "is_decoder", False),
    ({}, "problem_type", "single_label_classification"), ({}, "num_labels", 2), ({}, "id2label", ("a", "b")),
])
def test_their_config_in_our_words(changes, field, expected):
    found = adapted.translate(their_config(**changes), "classification", unused=2)
    assert getattr(found, field) == expected


def test_labels_are_those_of_heads_that_have_some():
    assert adapted.translate(their_config(), "token_classification", 0).id2label == ("a", "b")
    odd = adapted.translate(their_config(id2label={0: "a", 7: "b", 2: None}), "classification", 0)
    assert (odd.id2label, odd.num_labels) == (("a", "LABEL_1", "LABEL_2"), 3)
    plain = adapted.translate(their_config(), "mlm", 0)
    assert (plain.id2label, plain.num_labels) == ((), 1)


def test_positions_before_the_first_token_s_are_counted_off():
    class Table(torch.nn.Module):
        def __init__(self, padding):
            super().__init__()
            self.position_embeddings = torch.nn.Embedding(7, 3, padding_idx=padding)

    assert adapted._unused_positions(Table(1)) == 2
    assert adapted._unused_positions(Table(None)) == 0


def test_two_stacks_are_not_one(tmp_path):
    import transformers

    transformers.T5Config(vocab_size=29, d_model=15).save_pretrained(tmp_path)
    save_file({"any": torch.ones(3)}, tmp_path / "model.safetensors")  # no weights of it: nobody asks for them
    with pytest.raises(LoadError, match="t5 is an encoder-decoder; the explorer shows one stack, not two"):
        load_model(str(tmp_path))


# --- the module ----------------------------------------------------------------


def test_another_precision_leaves_the_shared_one_as_it_is(family):
    shared = load_model(family("GPT-2")).model
    double = shared.with_dtype(torch.float64)
    assert (shared.dtype, double.dtype) == (torch.float32, torch.float64)
    assert double.module is not shared.module


@pytest.mark.parametrize(("pooling", "architecture", "averages"), [
    ("mean", "ModernBertForSequenceClassification", True), ("cls", "ModernBertForSequenceClassification", False),
    ("mean", "ModernBertForTokenClassification", False),
])
def test_who_averages_its_tokens_says_so(family, pooling, architecture, averages):
    loaded = load_model(family("ModernBERT", architecture, classifier_pooling=pooling))
    assert loaded.averages_tokens is averages


def test_padding_of_a_batch_is_not_looked_at(family):
    loaded = load_model(family("ModernBERT"))
    assert loaded.model.shares == "padded"
    short = TraceRequest("the dog")
    together = run_batch(loaded, [short, TraceRequest("a cat slept while we walked home")])[0]
    alone = run_batch(loaded, [short])[0]
    torch.testing.assert_close(torch.tensor(together.hidden_states), torch.tensor(alone.hidden_states),
                               rtol=0, atol=1e-5)
    assert (alone.embedding_output == alone.hidden_states[0]).all()


# --- tokenizers of other families ------------------------------------------------


def test_a_damaged_tokenizer_of_another_family_is_named(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "GPT2Tokenizer"}', encoding="utf-8")
    with pytest.raises(ValueError, match=r"tokenizer\.json can't be read"):
        read_other_tokenizer(tmp_path, 41, False)


def test_code_that_comes_with_a_tokenizer_is_not_run(tmp_path):
    (tmp_path / "theirs.py").write_text(f"open({str(tmp_path / 'was_run')!r}, 'w')", encoding="utf-8")
    settings = {"auto_map": {"AutoTokenizer": ["theirs.Own", None]}, "tokenizer_class": "Own"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    with pytest.raises(LoadError, match="no tokenizer can be read .*contains custom code"):
        read_other_tokenizer(tmp_path, 41, False)
    assert not (tmp_path / "was_run").exists()


@pytest.mark.parametrize(("size", "is_read"), [(16, False), (17, True)])
def test_a_tokenizer_of_hardly_more_than_special_tokens_is_none(tmp_path, size, is_read):
    phobert(tmp_path)
    lines = (tmp_path / "vocab.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "vocab.txt").write_text("".join(lines[:size - len(ROLES)]), encoding="utf-8")
    if is_read:
        assert read_other_tokenizer(tmp_path, 41, False).vocab_size == size
    else:
        with pytest.raises(LoadError, match="the folder has no tokenizer.json and no other tokenizer files"):
            read_other_tokenizer(tmp_path, 41, False)


def test_a_tokenizer_in_its_older_files_reads_as_in_the_newer_one(tmp_path):
    gpt2(tmp_path)
    newer = read_other_tokenizer(tmp_path, 41, False)
    model = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))["model"]
    (tmp_path / "vocab.json").write_text(json.dumps(model["vocab"]), encoding="utf-8")
    (tmp_path / "merges.txt").write_text("\n".join(map(" ".join, model["merges"])), encoding="utf-8")
    (tmp_path / "tokenizer.json").unlink()
    older = read_other_tokenizer(tmp_path, 41, False)
    assert older.encode("the dog barked [MASK]") == newer.encode("the dog barked [MASK]")
    assert older.specials == newer.specials == dict.fromkeys(("unk", "bos", "eos"), "<|endoftext|>")


def test_an_end_of_text_that_was_typed_is_none_of_the_texts_pieces(tmp_path):
    """GPT-2 has one token for beginning, end and what it doesn't know: to transformers it is a special one."""
    gpt2(tmp_path)
    encoding = read_other_tokenizer(tmp_path, 41, False).encode("the dog<|endoftext|>barked")
    ends = [n for n, token in enumerate(encoding.tokens) if token == "<|endoftext|>"]
    assert ends
    assert [n for n, special in enumerate(encoding.special) if special] == ends


# --- tokenizers in Python ------------------------------------------------------


def test_a_tokenizer_in_python_knows_its_own_ids_only(family):
    own = load_model(family("FlauBERT")).tokenizer
    assert isinstance(own, PythonTokenizer)
    assert (own.knows(-1), own.knows(0), own.knows(own.vocab_size - 1), own.knows(own.vocab_size)) == (
        False, True, True, False)
    assert (own.id_of("no such piece"), own.id_of("<unk>")) == (None, 3)
    assert [own.id_of(own.token_of(n)) for n in np.arange(own.vocab_size)] == list(range(own.vocab_size))
    with pytest.raises(ValueError, match="outside the vocabulary"):
        own.token_of(own.vocab_size)


def test_a_tokenizer_in_python_ends_where_its_list_does_and_decodes_without_specials(family):
    own = load_model(family("FlauBERT")).tokenizer
    assert own.largest_id == max(own.backend.get_vocab().values())
    assert own.decode(own.encode("chien dort").input_ids).strip() == "chien dort"


def words_of(found: Encoding) -> dict[tuple[int, int], tuple[int, int]]:
    """(Sentence, word) -> where it begins and ends, by its pieces."""
    words: dict[tuple[int, int], tuple[int, int]] = {}
    for n in found.content:
        start, end = found.offsets[n]
        key = (found.sequence_ids[n], found.word_ids[n])
        words[key] = (words.get(key, (start, end))[0], end)
    return words


def test_words_that_come_again_have_their_own_places(family):
    own = load_model(family("FlauBERT")).tokenizer
    text = "chien dort chien  dort"
    found = own.encode(text, "dort le chien")
    assert words_of(found) == {(0, 0): (0, 5), (0, 1): (6, 10), (0, 2): (11, 16), (0, 3): (18, 22),
                               (1, 0): (0, 4), (1, 1): (5, 7), (1, 2): (8, 13)}
    spans = own.spans(text)
    assert spans == [(*found.offsets[n], found.word_ids[n]) for n in found.content if found.sequence_ids[n] == 0]


def test_words_after_a_mask_of_a_longer_name_have_the_places_where_they_were_typed(family):
    own = load_model(family("FlauBERT")).tokenizer
    found = own.encode("le [MASK] chien [MASK] dort", "[MASK] dort")
    assert [found.tokens[n] for n in found.mask_positions] == ["<special1>"] * 3
    assert words_of(found) == {(0, 0): (0, 2), (0, 1): (3, 9), (0, 2): (10, 15), (0, 3): (16, 22), (0, 4): (23, 27),
                               (1, 0): (0, 6), (1, 1): (7, 11)}


def test_the_same_sentence_twice_is_two_sentences(family):
    theirs = load_model(family("FlauBERT")).tokenizer
    own = PythonTokenizer(theirs.backend, theirs.limit, theirs.specials, has_segments=True)
    found = own.encode("chien dort", "chien dort")
    count = len(own.spans("chien dort"))
    assert [found.sequence_ids.count(n) for n in (0, 1)] == [count, count]
    expected = own.backend("chien dort", "chien dort", return_token_type_ids=True)["token_type_ids"]
    assert list(found.token_type_ids) == expected == [0] * (count + 2) + [1] * (count + 1)  # the last </s> as well


def test_whatever_a_tokenizer_in_python_raises_is_an_error_of_the_text(family, monkeypatch):
    own = load_model(family("FlauBERT")).tokenizer
    monkeypatch.setattr(own.backend, "tokenize", lambda word: {}[word])
    with pytest.raises(ValueError, match="the tokenizer can't split this text .'chien'."):
        own.encode("chien")


def test_a_pair_in_python_is_cut_to_the_limit_from_the_longer(family):
    own = load_model(family("FlauBERT")).tokenizer
    found = own.encode("chien " * 3, "dort " * 90)
    whole = own.encode("chien " * 3)
    assert len(found) == own.limit
    assert sum(n == 0 for n in found.sequence_ids) == sum(n == 0 for n in whole.sequence_ids)


# --- quiet ---------------------------------------------------------------------


@pytest.mark.parametrize("bars", [True, False])
def test_transformers_is_as_talkative_after_as_before(bars):
    from transformers.utils import logging as theirs

    before, shown = theirs.get_verbosity(), theirs.is_progress_bar_enabled()
    (theirs.enable_progress_bar if bars else theirs.disable_progress_bar)()
    inside = []

    def fails():
        with quiet():
            inside.append((theirs.get_verbosity(), theirs.is_progress_bar_enabled()))
            raise KeyError

    try:
        theirs.set_verbosity(20)
        with pytest.raises(KeyError):
            fails()
        assert inside == [(50, False)]
        assert (theirs.get_verbosity(), theirs.is_progress_bar_enabled()) == (20, bars)
    finally:
        theirs.set_verbosity(before)
        (theirs.enable_progress_bar if shown else theirs.disable_progress_bar)()


def test_two_that_are_quiet_at_once_leave_it_as_the_first_one_found_it(monkeypatch):
    from transformers.utils import logging as theirs

    before = theirs.get_verbosity()
    try:
        theirs.set_verbosity(20)
        first, second = quiet(), quiet()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert theirs.get_verbosity() == 50  # the other one is inside still
        second.__exit__(None, None, None)
        assert theirs.get_verbosity() == 20
    finally:
        theirs.set_verbosity(before)


def test_an_error_is_told_in_its_first_line():
    assert first_line(ValueError("\none\ntwo\n")) == "one"
    assert first_line(KeyboardInterrupt()) == "KeyboardInterrupt"
    assert first_line(ValueError("x" * 300)) == "x" * 200

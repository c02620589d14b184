"""BERT's WordPiece as a folder's files describe it: the same ids as transformers gives for the same folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import AddedToken, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Fast

from bert_core.adapters.tokenizers import PythonTokenizer
from bert_core.config import BertConfig
from bert_core.hub import FILES
from bert_core.load import LoadError, find_tokenizer
from bert_core.tokenizer import Tokenizer
from tests.checkpoints import VOCABULARY, wordpiece

CONFIG = BertConfig(vocab_size=len(VOCABULARY), max_position_embeddings=201)
TEXTS = ("the DOG barked", "École [MASK] <mask> of paris", "[NEW]ly [new] covidly [X]b", "中国 é \u0301 [sep] [SEP]a",
         "a [x] zebra zebras", "x" * 101, "")


@pytest.fixture
def words(tmp_path) -> Path:
    """A folder of the form of 2018: config.json and vocab.txt."""
    write(tmp_path, {"config.json": {"model_type": "bert"}})
    (tmp_path / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    return tmp_path


def write(folder: Path, files: dict[str, dict]) -> None:
    for name, values in files.items():
        (folder / name).write_text(json.dumps(values), encoding="utf-8")


def ours(folder: Path) -> Tokenizer:
    return find_tokenizer(folder, CONFIG, has_segments=True)


def check_as_transformers(folder: Path, texts: tuple[str, ...] = TEXTS) -> None:
    """Ids and segments of every text, alone and as a pair; its mask token is what [MASK] stands for."""
    from transformers import AutoTokenizer

    own, theirs = ours(folder), AutoTokenizer.from_pretrained(folder)
    assert own.mask_token == theirs.mask_token
    for text in texts:
        for pair in (None, "who is the dog"):
            found = own.encode(text, pair)
            expected = theirs(text.replace("[MASK]", own.mask_token), pair, return_token_type_ids=True)
            assert list(found.input_ids) == expected["input_ids"], (text, found.tokens)
            assert list(found.token_type_ids) == expected["token_type_ids"], text


# --- whose word list it is -------------------------------------------------------


@pytest.mark.parametrize("name", ["BertTokenizer", "BertTokenizerFast", "ElectraTokenizer", "DistilBertTokenizerFast",
                                  None])
@pytest.mark.parametrize("file", ["tokenizer_config.json", "config.json"])
def test_a_list_of_words_is_word_pieces_where_its_class_is_berts(words, name, file):
    write(words, {file: {"tokenizer_class": name, "model_type": "bert"}})
    assert not isinstance(ours(words), PythonTokenizer)
    check_as_transformers(words)


@pytest.mark.parametrize("file", ["tokenizer_config.json", "config.json"])
def test_a_list_of_words_of_another_class_is_split_as_that_class_does(words, file):
    files = {"config.json": {"model_type": "bert"},
             "tokenizer_config.json": {"word_tokenizer_type": "basic", "subword_tokenizer_type": "character"}}
    files[file]["tokenizer_class"] = "BertJapaneseTokenizer"
    write(words, files)
    assert ours(words).encode("the dog").tokens == ("[CLS]", *"the", *"dog", "[SEP]")
    check_as_transformers(words, ("the DOG barked", "[MASK] of paris", "中国 é", ""))


def test_the_class_of_the_tokenizers_own_settings_counts_before_the_models(words):
    write(words, {"config.json": {"model_type": "bert", "tokenizer_class": "BertJapaneseTokenizer"},
                  "tokenizer_config.json": {"tokenizer_class": "BertTokenizer"}})
    assert ours(words).encode("the dog").tokens == ("[CLS]", "the", "dog", "[SEP]")


@pytest.mark.parametrize("settings", [
    {"tokenizer_class": "KoBertTokenizer"}, {"tokenizer_class": ["BertTokenizer"]},
    {"tokenizer_class": "OwnTokenizer", "auto_map": {"AutoTokenizer": ["theirs.OwnTokenizer", None]}},
])
def test_a_list_of_words_that_code_must_read_is_refused_in_a_line(words, settings):
    write(words, {"tokenizer_config.json": settings})
    with pytest.raises(LoadError, match="no tokenizer can be read"):
        ours(words)


# --- tokens that were added to it ------------------------------------------------

LAST = len(VOCABULARY)
NEW = {"[NEW]": LAST, "covid": LAST + 1, "[X]": LAST + 2}


def entry(content: str, **flags: bool) -> dict:
    return {"content": content, "special": False, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": True, **flags}


@pytest.mark.parametrize("files", [
    {"added_tokens.json": NEW},
    {"added_tokens.json": {**NEW, "zebra": VOCABULARY.index("zebra")}},
    {"added_tokens.json": NEW, "tokenizer_config.json": {"do_lower_case": False}},
    {"added_tokens.json": NEW, "tokenizer_config.json": {"additional_special_tokens": ["[NEW]", "[X]"]}},
    {"added_tokens.json": NEW, "special_tokens_map.json": {"additional_special_tokens": ["[NEW]", "[X]"]}},
    {"added_tokens.json": {"<mask>": LAST}, "tokenizer_config.json": {"mask_token": "<mask>"}},
    {"tokenizer_config.json": {"added_tokens_decoder": {
        str(LAST): entry("[NEW]", special=True, normalized=False), str(LAST + 1): entry("covid", single_word=True),
        str(LAST + 2): entry("[X]", lstrip=True, rstrip=True), "3": entry("[SEP]", normalized=False)}}},
    {"tokenizer_config.json": {"added_tokens_decoder": {str(LAST): entry("[NEW]")}},
     "added_tokens.json": {"covid": LAST}, "special_tokens_map.json": {"mask_token": "zebra"}},
    {"tokenizer_config.json": {"mask_token": "<mask>"}},
    {"tokenizer_config.json": {"mask_token": "zebra", "bos_token": "<s>", "extra_special_tokens": ["[x]", "[NEW]"]}},
    {"tokenizer_config.json": {"mask_token": "cat"},
     "special_tokens_map.json": {"mask_token": entry("zebra", lstrip=True)}},
    {"tokenizer_config.json": {"unk_token": "zebra", "cls_token": "<", "sep_token": ">", "pad_token": "?"}},
    {"tokenizer_config.json": {"extra_special_tokens": {"image_token": "[NEW]"}}},
])
def test_added_tokens_have_transformers_flags_and_ids(words, files):
    write(words, files)
    check_as_transformers(words)


@pytest.mark.parametrize(("files", "message"), [
    ({"added_tokens.json": {"[NEW]": LAST + 1}},
     rf"'\[NEW\]' can't have the id {LAST + 1}: behind vocab.txt comes {LAST}"),
    ({"added_tokens.json": {"<mask>": 4}}, "'<mask>' can't have the id 4"),
    ({"added_tokens.json": {"zebra": LAST}}, f"'zebra' can't have the id {LAST}"),
    ({"added_tokens.json": {"zebra": "last"}}, "an added token's id is no whole number"),
    ({"added_tokens.json": {"zebra": None}}, "an added token's id is no whole number"),
    ({"added_tokens.json": {"": LAST}}, "an added token has no content: ''"),
    ({"tokenizer_config.json": {"added_tokens_decoder": ["[NEW]"]}}, "added_tokens_decoder is no object"),
    ({"tokenizer_config.json": {"added_tokens_decoder": {"5": 3}}}, "an added token, 3, is no object"),
    ({"tokenizer_config.json": {"extra_special_tokens": 3}}, "extra_special_tokens is no list"),
    ({"tokenizer_config.json": {"mask_token": 3}}, "an added token, 3, is no object"),
    ({"tokenizer_config.json": {"unk_token": "no such piece"}}, "vocab.txt lacks no such piece"),
])
def test_an_added_token_that_can_t_be_kept_is_refused_in_a_line(words, files, message):
    write(words, files)
    with pytest.raises(ValueError, match=message):
        ours(words)


def test_a_hub_model_s_added_tokens_are_fetched():
    assert "added_tokens.json" in FILES


# --- tokenizer.json and the settings beside it -----------------------------------


@pytest.fixture
def library(tmp_path) -> Path:
    """A folder with a tokenizer.json that makes all letters small, and no settings yet."""
    write(tmp_path, {"config.json": {"model_type": "bert"}})
    fast = wordpiece()
    fast.add_tokens([AddedToken("Covid", normalized=True), AddedToken("Zebra", normalized=False)])
    fast.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


@pytest.mark.parametrize("name", ["BertTokenizer", "DistilBertTokenizerFast", "PreTrainedTokenizerFast", None])
@pytest.mark.parametrize("settings", [
    {}, {"do_lower_case": False}, {"strip_accents": False}, {"do_lower_case": False, "strip_accents": True},
    {"tokenize_chinese_chars": False}, {"do_lower_case": True, "strip_accents": None}])
@pytest.mark.parametrize("lowercase", [True, False])
def test_the_settings_of_a_bert_count_before_its_tokenizer_json(library, settings, name, lowercase):
    fast = Fast.from_file(str(library / "tokenizer.json"))
    fast.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    fast.save(str(library / "tokenizer.json"))
    named = {"tokenizer_class": name} if name else {}
    write(library, {"tokenizer_config.json": {**settings, **named, "mask_token": "[MASK]"}})
    check_as_transformers(library, (*TEXTS, "the COVID Covid covid Zebra zebra", "an É or É"))


@pytest.mark.parametrize("pre_tokenizer", [pre_tokenizers.Whitespace(), pre_tokenizers.WhitespaceSplit()])
def test_words_are_cut_as_a_bert_cuts_them(library, pre_tokenizer):
    fast = Fast.from_file(str(library / "tokenizer.json"))
    fast.pre_tokenizer = pre_tokenizer
    fast.save(str(library / "tokenizer.json"))
    write(library, {"tokenizer_config.json": {"tokenizer_class": "BertTokenizer"}})
    check_as_transformers(library, ("it's good.bad", *TEXTS))


def test_a_tokenizer_json_without_settings_is_taken_as_it_is(library):
    """A model that was trained here from one that keeps its letters has none beside it."""
    fast = Fast.from_file(str(library / "tokenizer.json"))
    fast.normalizer = normalizers.BertNormalizer(lowercase=False)
    fast.save(str(library / "tokenizer.json"))
    assert ours(library).encode("the DOG").tokens == ("[CLS]", "the", "[UNK]", "[SEP]")


def test_settings_leave_other_kinds_of_pieces_alone(family):
    folder = Path(family("HerBERT"))
    own = find_tokenizer(folder, BertConfig(vocab_size=1000), has_segments=True)
    assert own.backend.to_str() == Fast.from_file(str(folder / "tokenizer.json")).to_str()

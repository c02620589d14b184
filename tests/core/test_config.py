"""config.json: what it may say, what a family leaves out, and how it is written again."""

from __future__ import annotations

import pytest

from bert_core.config import MAX_LABELS, MAX_LAYERS, MAX_SIZE, BertConfig
from bert_core.load import LoadError, parse_config

SIZES = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
         "max_position_embeddings", "num_labels", "type_vocab_size", "pad_token_id", "embedding_size")


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("value", [-1, MAX_SIZE + 1, 1.0, True, "3", [3]])
def test_a_size_is_a_whole_number_within_bounds(name, value):
    with pytest.raises(LoadError, match=f"config: {name} is .*; it must be a whole number from [01] to [0-9]+$"):
        parse_config({name: value})


@pytest.mark.parametrize(("name", "smallest", "largest"), [
    ("vocab_size", 1, MAX_SIZE), ("intermediate_size", 1, MAX_SIZE), ("max_position_embeddings", 1, MAX_SIZE),
    ("embedding_size", 1, MAX_SIZE), ("type_vocab_size", 0, MAX_SIZE), ("num_hidden_layers", 1, MAX_LAYERS),
    ("num_labels", 1, MAX_LABELS),
])
def test_a_size_may_be_as_small_and_as_large_as_is_said(name, smallest, largest):
    for value in (smallest, largest):
        assert getattr(parse_config({name: value}), name) == value
    for value in (smallest - 1, largest + 1):
        with pytest.raises(LoadError, match=f"{name} is {value}; .* a whole number from {smallest} to {largest}$"):
            parse_config({name: value})


def test_heads_share_the_width_evenly():
    assert parse_config({"hidden_size": 15, "num_attention_heads": 3}).head_size == 5
    with pytest.raises(LoadError, match="hidden_size 16 is not a multiple of num_attention_heads 3"):
        parse_config({"hidden_size": 16, "num_attention_heads": 3})


@pytest.mark.parametrize(("changes", "message"), [
    ({"hidden_act": 3}, "hidden_act is 3; it must be a word"), ({"model_type": 3}, "model_type is 3; it must be"),
    ({"reading_order": 3}, "reading_order is 3; it must be a word"), ({"hidden_act": "magic"}, "'magic' is unknown"),
    ({"reading_order": "down"}, "it is left-to-right or right-to-left"),
    ({"label_decoding": "best"}, "label_decoding is 'best'; it is argmax or viterbi"),
    ({"layer_norm_eps": -1e-9}, "layer_norm_eps is -1e-09; it must be a small number"),
    ({"layer_norm_eps": 1}, "layer_norm_eps is 1; it must be"), ({"layer_norm_eps": float("nan")}, "eps is nan; it"),
    ({"initializer_range": 1.0}, "initializer_range is 1.0; it must be"),
    ({"id2label": {"one": "a"}}, "id2label's keys must be the numbers of the labels"),
])
def test_a_choice_that_there_is_not_is_said(changes, message):
    with pytest.raises(LoadError, match=message):
        parse_config(changes)


@pytest.mark.parametrize("changes", [
    {"layer_norm_eps": 0}, {"layer_norm_eps": 0.99}, {"initializer_range": 0}, {"reading_order": "right-to-left"},
    {"label_decoding": "viterbi"}, {"hidden_act": "silu"}, {"hidden_act": "relu"}, {"hidden_act": "tanh"},
    {"hidden_act": "gelu_pytorch_tanh"}, {"is_decoder": True}, {"tie_word_embeddings": False},
])
def test_a_choice_that_there_is_is_kept(changes):
    config = parse_config(changes)
    assert {name: getattr(config, name) for name in changes} == changes
    assert BertConfig.from_dict(config.to_dict()) == config


@pytest.mark.parametrize(("family", "left_out"), [
    ("roberta", {"vocab_size": 50265, "pad_token_id": 1}), ("camembert", {"pad_token_id": 1}),
    ("xlm-roberta", {"pad_token_id": 1}), ("bert", {}),
    ("distilbert", {"num_hidden_layers": 6, "type_vocab_size": 0}),
    ("electra", {"embedding_size": 128, "hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1024}),
    ("albert", {"vocab_size": 30000, "embedding_size": 128, "hidden_size": 4096, "num_attention_heads": 64,
                "intermediate_size": 16384, "hidden_act": "gelu_new"}),
])
def test_what_a_family_leaves_out_is_as_transformers_has_it(family, left_out):
    from transformers import AutoConfig

    assert parse_config({"model_type": family}) == BertConfig(model_type=family, **left_out)
    ours, theirs = parse_config({"model_type": family}), AutoConfig.for_model(family)
    for name in (*SIZES, "hidden_act", "layer_norm_eps", "initializer_range", "tie_word_embeddings"):
        assert getattr(theirs, name, getattr(ours, name)) == getattr(ours, name), name
    assert parse_config({"model_type": family, "pad_token_id": 5}).pad_token_id == 5


def test_null_leaves_a_setting_as_it_is_and_unknown_ones_are_kept():
    config = parse_config({"hidden_size": None, "some": {"a": [1]}})
    assert config.hidden_size == 768
    assert config.extra == {"hidden_size": None, "some": {"a": [1]}}


def test_distilberts_spelling_is_read_in_distilbert_alone():
    sizes = {"dim": 15, "n_layers": 2, "n_heads": 3, "hidden_dim": 23, "activation": "relu"}
    theirs = parse_config({"model_type": "distilbert", **sizes})
    read = (theirs.hidden_size, theirs.num_hidden_layers, theirs.num_attention_heads, theirs.intermediate_size,
            theirs.hidden_act)
    assert read == (15, 2, 3, 23, "relu")
    assert sizes.items() <= theirs.to_dict().items()
    assert "hidden_size" not in theirs.to_dict()
    assert parse_config({"model_type": "bert", **sizes}).hidden_size == 768


@pytest.mark.parametrize(("labels", "names", "count"), [
    ({"0": "a", "1": "b", "2": "c"}, ("a", "b", "c"), 3), ({"1": "b", "0": "a"}, ("a", "b"), 2),
    (["a", "b", "c"], ("a", "b", "c"), 3), ({}, (), 2), ("ab", (), 2),
    ({"0": 3, "1": None, "2": ["x"], "3": " "}, ("3", "LABEL_1", "LABEL_2", "LABEL_3"), 4),
    ({"0": "a", "7": "b", "2": "c"}, ("a", "LABEL_1", "c"), 3),  # the classes keep their numbers
    ([None, "b"], ("LABEL_0", "b"), 2),
])
def test_labels_are_named_in_the_order_of_their_numbers(labels, names, count):
    config = parse_config({"id2label": labels})
    assert (config.id2label, config.num_labels) == (names, count)


def test_labels_and_architectures_are_written_as_transformers_reads_them():
    written = BertConfig(id2label=("a", "b"), num_labels=2, architectures=("BertModel",)).to_dict()
    assert (written["id2label"], written["label2id"]) == ({"0": "a", "1": "b"}, {"a": 0, "b": 1})
    assert written["architectures"] == ["BertModel"]
    assert not {"num_labels", "embedding_size", "label_decoding", "extra"} & written.keys()
    unnamed = BertConfig(num_labels=5, embedding_size=7, label_decoding="viterbi", extra={"some": 1}).to_dict()
    assert (unnamed["num_labels"], unnamed["embedding_size"], unnamed["label_decoding"]) == (5, 7, "viterbi")
    assert unnamed["some"] == 1
    assert not {"id2label", "label2id"} & unnamed.keys()


@pytest.mark.parametrize(("given", "expected"), [
    (["BertModel", "X"], ("BertModel", "X")), ("BertModel", ()), (5, ()), ([5], ("5",)), (None, ()),
])
def test_architectures_are_a_list_of_words_or_none(given, expected):
    assert parse_config({"architectures": given}).architectures == expected


@pytest.mark.parametrize(("family", "rows", "usable"), [
    ("bert", 512, 512), ("roberta", 514, 512), ("camembert", 514, 512), ("xlm-roberta", 514, 512),
    ("electra", 512, 512),
])
def test_positions_start_after_padding_where_the_family_does_so(family, rows, usable):
    config = parse_config({"model_type": family, "max_position_embeddings": rows})
    assert (config.max_tokens, config.position_offset) == (usable, rows - usable)


def test_the_words_of_the_explorer():
    assert BertConfig().attention_kind == "bidirectional"
    assert BertConfig(is_decoder=True).attention_kind == "causal"
    assert (BertConfig().table_width, BertConfig(embedding_size=7).table_width) == (768, 7)
    assert BertConfig(extra={"some": 1}) == BertConfig()


@pytest.mark.parametrize("values", [[], "bert", None, 3])
def test_what_is_no_object_is_no_config(values):
    with pytest.raises(LoadError, match=r"config\.json holds no JSON object"):
        parse_config(values)

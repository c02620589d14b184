"""What the Tokens page sends to its components, against the tokenizer."""

from __future__ import annotations

import importlib

import pytest
import torch

from bert_core import load_engine
from tests.payloads import drawn, is_ready, said, visit

STEMS = {"roberta": "Roberta", "xlm_roberta": "XLMRoberta"}
TEXT, PAIR = "Unbelievably, the Café closed.", "It rained."


def encoding():
    return load_engine("twin-bert").loaded().tokenizer.encode(TEXT, PAIR)


def test_steps_end_in_the_tokens_with_their_ids():
    at = visit("tokens", text=TEXT, pair=PAIR)
    is_ready(at)
    sent = drawn(at, "wordpiece")
    assert [token["l"] for token in sent["tokens"]] == [str(i) for i in encoding().input_ids]
    assert sent["words"][0]["normal"] == "unbelievably"
    assert sent["word"] == 0  # the word that took most look-ups is open first
    found = [tries[-1]["c"] for tries in sent["attempts"]]
    assert found == [encoding().tokens[n] for n in encoding().content if encoding().word_ids[n] == 0
                     and encoding().sequence_ids[n] == 0]
    assert all(tries[-1]["ok"] for tries in sent["attempts"])


def test_the_word_of_a_link_is_open():
    sent = drawn(visit("tokens", text=TEXT, word="3"), "wordpiece")
    assert sent["word"] == 3
    assert sent["words"][3] == {"raw": "Café", "normal": "cafe", "changed": True, "special": False}


def test_ids_segments_positions_and_padding():
    sent = drawn(visit("tokens", text=TEXT, pair=PAIR, view="Ids and segments", pad="24"), "ids")
    rows = {row["kind"]: row["values"] for row in sent["rows"]}
    real = encoding()
    extra = 24 - len(real)
    assert rows["id"] == [*real.input_ids, *[0] * extra]
    assert rows["segment"] == [*real.token_type_ids, *[0] * extra]
    assert rows["position"] == list(range(24))
    assert rows["mask"] == [1] * len(real) + [0] * extra
    assert [token["t"] for token in sent["tokens"][len(real):]] == ["[PAD]"] * extra


def test_positions_are_those_that_the_model_gives_out():
    at = visit("tokens", text="It rained.", view="Ids and segments", model="twin-rtl", pad="7")
    rows = {row["kind"]: row["values"] for row in drawn(at, "ids")["rows"]}
    assert rows["position"] == [0, 3, 2, 1, 4, 5, 6]


@pytest.mark.parametrize(("name", "module"), [
    ("RoBERTa", "roberta"), ("XLM-RoBERTa", "xlm_roberta"), ("unknown: MPNet", "mpnet")])
def test_positions_behind_paddings_are_those_of_transformers(family, monkeypatch, name, module):
    theirs = importlib.import_module(f"transformers.models.{module}.modeling_{module}")
    made = getattr(theirs, "create_position_ids_from_input_ids", None) or getattr(
        theirs, f"{STEMS[module]}Embeddings").create_position_ids_from_input_ids
    monkeypatch.setenv("BOTH_WAYS_MODEL", family(name))
    rows = {row["kind"]: row["values"] for row in
            drawn(visit("tokens", text="the dog", view="Ids and segments", pad="17"), "ids")["rows"]}
    assert len(rows["id"]) == 17
    assert rows["position"] == made(torch.tensor([rows["id"]]), 1)[0].tolist()
    assert (rows["position"][:3], rows["position"][-3:]) == ([2, 3, 4], [1, 1, 1])
    assert rows["mask"][-3:] == [0, 0, 0]


@pytest.mark.parametrize(("name", "has_segments"), [("RoBERTa", False), ("GPT-2", False), ("unknown: ERNIE", True)])
def test_segments_stand_where_the_model_tells_sentences_apart(family, monkeypatch, name, has_segments):
    monkeypatch.setenv("BOTH_WAYS_MODEL", family(name))
    at = visit("tokens", text="the dog", pair="a cat", view="Ids and segments")
    assert ("segment" in {row["kind"] for row in drawn(at, "ids")["rows"]}) == has_segments


def test_five_tokenizers_cut_the_same_text():
    sent = drawn(visit("tokens", text=TEXT, view="Compare", pieces="300"), "cuts")
    names = [cut["name"] for cut in sent["cuts"]]
    assert names == ["twin-bert", "small WordPiece", "small byte pairs (only the method is GPT-2's)", "characters",
                     "bytes (UTF-8)"]
    assert [cut["title"].removeprefix(cut["name"]) for cut in sent["cuts"]] == [
        f", a vocabulary of {cut['vocabulary']:,}" if cut["vocabulary"] else "" for cut in sent["cuts"]]
    assert sent["cuts"][0]["title"] == "twin-bert, a vocabulary of 30,522"
    assert sent["cuts"][1]["vocabulary"] <= 300
    assert sent["cuts"][3]["count"] == len(TEXT)
    assert sent["cuts"][4]["count"] == len(TEXT.encode())


def test_the_comparison_says_that_it_leaves_the_second_sentence_out():
    both, one = (said(visit("tokens", text=TEXT, pair=pair, view="Compare", pieces="300")) for pair in (PAIR, ""))
    assert "first sentence only" in both
    assert "first sentence only" not in one


def test_one_piece_is_counted_as_one():
    sent = drawn(visit("tokens", text="Dog", view="Compare", pieces="300"), "cuts")
    assert sent["cuts"][0]["note"] == "1 piece for 1 word"

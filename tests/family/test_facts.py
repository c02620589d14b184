"""Published figures: what is computed is recomputed, what is quoted has its source."""

from __future__ import annotations

import re

import pytest

from bert_core.config import BertConfig
from bert_core.facts import known_sizes, paper_tables, read_facts
from bert_core.sizes import parameter_count, parameter_table

SIZES = known_sizes()


@pytest.mark.parametrize("size", SIZES, ids=[f"{s.name}-{'-'.join(s.heads) or 'bare'}" for s in SIZES])
def test_every_published_size_is_what_the_formulas_give(size):
    assert parameter_count(size.config, size.heads) == size.parameters


def test_split_of_base_adds_up():
    split = read_facts("sizes")["split"]
    by_name = {(part.group, part.name): part.count for part in parameter_table(BertConfig(), ("pooler",))}
    in_layer = {name: count for (group, name), count in by_name.items() if group == "layer 7"}
    attention = sum(count for name, count in in_layer.items() if name.startswith("attention"))
    assert by_name["embeddings", "word embeddings"] == split["word"]
    assert by_name["embeddings", "position embeddings"] == split["position"]
    assert by_name["embeddings", "segment embeddings"] == split["segment"]
    assert by_name["embeddings", "LayerNorm"] == split["embedding_norm"]
    assert (attention, sum(in_layer.values()) - attention) == (split["attention"], split["feed_forward"])
    assert sum(in_layer.values()) == split["layer"]
    whole = split["word"] + split["position"] + split["segment"] + split["embedding_norm"] + 12 * split["layer"]
    assert whole + split["pooler"] == SIZES[0].parameters


def test_each_paper_table_is_rectangular():
    tables = {table.key: table for table in paper_tables()}
    assert set(tables) == {"glue", "squad", "ner", "ablation", "masking", "perplexity"}
    for table in tables.values():
        assert {len(row) for row in table.rows} == {len(table.columns)}
    for key, row, column, value in (("glue", 0, "QQP F1", "71.2"), ("ablation", 2, "SQuAD F1", "77.8"),
                                    ("masking", 1, "NER feature-based", "94.0")):
        assert tables[key].rows[row][tables[key].columns.index(column)] == value


def test_sources_are_named():
    assert "1810.04805" in read_facts("paper")["source"]
    assert "1906.04341" in read_facts("heads")["source"]
    papers = {variant["name"]: variant["paper"] for variant in read_facts("variants")["variant"]}
    assert papers["RoBERTa"] == "arXiv 1907.11692"
    assert papers["DeBERTa"] == "arXiv 2006.03654"
    without = {name for name, paper in papers.items() if not re.fullmatch(r"arXiv \d{4}\.\d{5}", paper)}
    assert without == {"mBERT", "HerBERT"}


def test_head_claims_beat_their_baseline():
    heads = read_facts("heads")["head"]
    assert len(heads) == 8
    assert all(head["accuracy"] > head["baseline"] for head in heads)
    assert "auxpass" not in {head["relation"] for head in heads}


def test_unknown_facts_name_what_there_is():
    with pytest.raises(ValueError, match="no facts called 'gossip'; there are claims"):
        read_facts("gossip")

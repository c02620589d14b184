"""Parity with transformers' pipelines on 100 inputs each, same checkpoint.

Meant differences: entities that touch a space are given without it; the words
of an entity come from the tokenizer's own word boundaries, where the pipeline
guesses them from lengths; transformers 5 has no question-answering pipeline any
more, so the reference here is its model with the published decoding spelt out.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bert_core import load_engine, tasks
from bert_core.tasks import answers
from tests.core.reference import open_reference
from tests.core.sentences import sentences, with_masks

TEXTS = sentences(100, seed=11)
ATOL = 2e-6


def pipeline(task: str, folder: str, **options):
    import transformers

    return transformers.pipeline(task, model=open_reference(folder, torch.float32),
                                 tokenizer=transformers.AutoTokenizer.from_pretrained(folder), **options)


def scores_of(found) -> dict[str, float]:
    """Label -> score of a text-classification pipeline, which nests its list for a lone string."""
    rows = found[0] if isinstance(found[0], list) else found
    return {row["label"]: row["score"] for row in rows}


def test_text_classification(tiny_classifier):
    engine, theirs = load_engine(tiny_classifier), pipeline("text-classification", tiny_classifier, top_k=None)
    for text in TEXTS:
        ours = tasks.classify(engine, text)
        expected = scores_of(theirs(text, truncation=True))
        assert ours.probabilities == pytest.approx(expected, abs=ATOL)
        assert ours.label == max(expected, key=expected.get)


def test_text_classification_of_pairs(tiny_classifier):
    engine, theirs = load_engine(tiny_classifier), pipeline("text-classification", tiny_classifier, top_k=None)
    for text, pair in zip(TEXTS[:50], TEXTS[50:], strict=True):
        expected = scores_of(theirs({"text": text, "text_pair": pair}, truncation=True))
        assert tasks.classify(engine, text, pair).probabilities == pytest.approx(expected, abs=ATOL)


def test_several_labels_at_once_and_numbers(checkpoint):
    several = checkpoint("BertForSequenceClassification", problem_type="multi_label_classification",
                         id2label={0: "calm", 1: "funny", 2: "sad"})
    number = checkpoint("BertForSequenceClassification", problem_type="regression", id2label={0: "similarity"})
    numbers = checkpoint("BertForSequenceClassification", problem_type="regression",
                         id2label={0: "calm", 1: "funny", 2: "sad"})
    for folder in (several, number, numbers):
        engine, theirs = load_engine(folder), pipeline("text-classification", folder, top_k=None)
        labels = set()
        for text in TEXTS[:20]:
            ours = tasks.classify(engine, text)
            expected = scores_of(theirs(text, truncation=True))
            assert ours.values == pytest.approx(expected, abs=5 * ATOL)  # numbers are no shares of 1
            assert (ours.label, ours.probability) == max(ours.values.items(), key=lambda one: one[1])
            assert ours.probabilities == (ours.values if folder == several else {})
            labels.add(ours.label)
        assert labels != {"calm"}  # not the first whatever was read


@pytest.mark.parametrize("aggregation", ["simple", "first", "average", "max"])
def test_token_classification(aggregation, tiny_ner):
    engine = load_engine(tiny_ner)
    theirs = pipeline("token-classification", tiny_ner, aggregation_strategy=aggregation)
    found = 0
    for text in TEXTS:
        ours = tasks.find_entities(engine, text, aggregation=aggregation).entities
        expected = [row for row in theirs(text) if row["entity_group"] != "O"]
        assert [(e.label, e.start, e.end) for e in ours] == \
            [(row["entity_group"], row["start"], row["end"]) for row in expected]
        assert [e.score for e in ours] == pytest.approx([row["score"] for row in expected], abs=ATOL)
        found += len(ours)
    assert found > 100


def test_fill_mask(checkpoint):
    folder = checkpoint("BertForMaskedLM", max_position_embeddings=211)
    engine, theirs = load_engine(folder), pipeline("fill-mask", folder, top_k=5)
    for text in with_masks(TEXTS, seed=12):
        gaps, expected = tasks.fill_mask(engine, text), theirs(text)
        expected = expected if isinstance(expected[0], list) else [expected]
        assert len(gaps) == len(expected)
        for gap, rows in zip(gaps, expected, strict=True):
            assert [p.id for p in gap.predictions] == [row["token"] for row in rows]
            assert [p.probability for p in gap.predictions] == pytest.approx([row["score"] for row in rows], abs=ATOL)


def test_feature_extraction(checkpoint):
    folder = checkpoint("BertModel", max_position_embeddings=211)
    engine, theirs = load_engine(folder), pipeline("feature-extraction", folder)
    for text in TEXTS:
        states = np.array(theirs(text)[0])  # (T, D)
        special = engine.loaded().tokenizer.encode(text).special
        mean = states[~np.array(special)].mean(axis=0)
        np.testing.assert_allclose(tasks.embed(engine, text), mean / np.linalg.norm(mean), atol=1e-5)


def published_answer(model, encoded, longest: int) -> tuple[int, int, float]:
    """Best (first character, end character) with end >= start and its score, by trying every pair of tokens.

    Args:
        encoded: transformers' own tokenizer on the question and the context.
    """
    out = model(torch.tensor([encoded.input_ids]), token_type_ids=torch.tensor([encoded.token_type_ids]))
    places = [n for n, sequence in enumerate(encoded.sequence_ids()) if sequence == 1]
    kept = torch.tensor([0, *places])
    start, end = (torch.softmax(row[0, kept], -1)[1:].detach().numpy() for row in (out.start_logits, out.end_logits))
    tried = [(start[i] * end[j], i, j) for i in range(len(places)) for j in range(i, min(i + longest, len(places)))]
    score, i, j = max(tried)
    return encoded.offset_mapping[places[i]][0], encoded.offset_mapping[places[j]][1], float(score)


def test_question_answering(checkpoint):
    from transformers import AutoTokenizer

    folder = checkpoint("BertForQuestionAnswering", max_position_embeddings=211)
    engine, theirs = load_engine(folder), open_reference(folder, torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for question, context in zip(sentences(100, seed=13), TEXTS, strict=True):
        windows = tasks.answer_windows(engine, question, context)
        assert len(windows) == 1
        ours = tasks.best_answers(windows, context, top=1, max_answer=15)[0]
        read = windows[0].question  # cut at 64 tokens, as in the paper's code; transformers would leave it whole
        first, last, score = published_answer(
            theirs, tokenizer(read, context, return_offsets_mapping=True), longest=15)
        assert (ours.start, ours.end) == (first, last)
        assert ours.score == pytest.approx(score, abs=ATOL)
        assert context[ours.start:ours.end] == ours.text


def test_windows_cover_a_long_context_and_the_best_of_all_wins(tiny_qa):
    engine = load_engine(tiny_qa)
    context = " ".join(TEXTS[:12])
    windows = tasks.answer_windows(engine, "who was it?", context)
    assert len(windows) > 5
    covered = np.zeros(len(context), dtype=bool)
    for window in windows:
        assert len(window.trace) <= 37
        covered[window.start:window.end] = True
    assert not [character for character, inside in zip(context, covered, strict=True)
                if not inside and not character.isspace()]
    grids = answers.answer_grids(windows)
    best = tasks.best_answers(windows, context, top=7)
    assert best[0].score == max(np.nanmax(grid.scores) for grid in grids)
    assert len({(one.start, one.end) for one in best}) == 7
    for grid in grids:
        assert np.isnan(grid.scores[np.tril_indices(len(grid.tokens), -1)]).all()

"""What the pages say of the shipped models, and what their examples are there to show."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator

import numpy as np
import pytest

from bert_core.facts import read_facts
from bert_core.measures import masking, surprise
from bert_core.measures.compare import Readers
from bert_core.measures.similarity import cosine_matrix, sentence_vector
from bert_core.serving import Engine
from bert_core.serving.local import LocalEngine
from bert_core.tasks.entities import find_entities
from bert_core.tasks.sentences import classify, is_next
from bert_core.tasks.vocabulary import fill_mask
from bert_core.trace import TraceRequest
from bert_core.training.corruption import OUTCOMES
from ui import shell, state
from ui.views import compare_ask, masking_more, task_models

#: Of every entity example: (name, label) of all that is in it.
NAMES = (
    {("Ada Lovelace", "PER"), ("Charles Babbage", "PER"), ("London", "LOC")},
    {("Anna Schmidt", "PER"), ("Hamburg", "LOC"), ("Toronto", "LOC"), ("Siemens", "ORG")},
    {("Red Cross", "ORG"), ("Haiti", "LOC")},
    {("Jack London", "PER"), ("San Francisco", "LOC"), ("London", "LOC")},
)
#: Of every acceptability example: what is right, and whether the model says so.
ACCEPTABLE = ((False, True), (True, True), (False, True), (True, True), (False, False))


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    started = LocalEngine()
    yield started
    started.close()


def reading(page: str, view: str) -> str:
    """What a page says of reading one of its views."""
    return " ".join(tomllib.loads((shell.PROSE / f"{page}.toml").read_text(encoding="utf-8"))["reading"][view])


@pytest.mark.parametrize(("n", "names"), enumerate(NAMES))
def test_every_name_of_an_example_is_found(engine, n, names):
    found = find_entities(engine, task_models.examples("tasks")["entities"][n], model="twin-bert-ner").entities
    assert {(one.text, one.label) for one in found} == names


def test_acceptability_is_right_on_the_examples_but_the_one_that_the_page_names(engine):
    texts = task_models.examples("tasks")["acceptability"]
    for text, (is_good, is_right) in zip(texts, ACCEPTABLE, strict=True):
        said = classify(engine, text, model="twin-bert-cola").label == "acceptable"
        assert (said == is_good) is is_right, text
        assert is_right or text in reading("tasks", "Acceptability")


def test_unrelated_sentences_have_the_cosine_that_the_page_says(engine):
    assert "even unrelated sentences have about 0.4" in reading("tasks", "Sentence pairs")
    texts = task_models.examples("meaning")["set"][50:110]
    requests = [TraceRequest(text, model="twin-bert-stsb", parts=("hidden_states",)) for text in texts]
    cosines = cosine_matrix(np.stack([sentence_vector(engine.run(one), "mean") for one in requests]))
    assert cosines[np.triu_indices(len(texts), 1)].mean() == pytest.approx(0.4, abs=0.05)


def test_the_shipped_pairs_show_what_tuning_is_for(engine):
    """Only the tuned model puts the pair that says the same above the one that has the same form."""
    def cosine(pair: list[str], model: str) -> float:
        vectors = [sentence_vector(engine.run(TraceRequest(text, model=model, parts=("hidden_states",))), "mean")
                   for text in pair]
        return float(cosine_matrix(np.stack(vectors))[0, 1])

    marks = task_models.examples("tasks")["pair_marks"]
    assert list(marks.values()) == task_models.examples("tasks")["pairs"][:2]
    assert cosine(marks["alike"], "twin-bert-stsb") > cosine(marks["unlike"], "twin-bert-stsb") + 0.3
    assert cosine(marks["alike"], "twin-bert") < cosine(marks["unlike"], "twin-bert") - 0.1


def test_a_pair_stays_next_when_it_is_swapped(engine):
    words = tomllib.loads((shell.PROSE / "cls.toml").read_text(encoding="utf-8"))["not_proven_by"]["Next sentence"]
    assert "Of the ten pairs to predict first, the five true ones stay *next* when they are swapped" in " ".join(words)
    true = [(pair["a"], pair["b"]) for pair in task_models.examples("nsp")["pairs"] if pair["next"]]
    assert len(true) == 5
    for a, b in true:
        assert min(is_next(engine, a, b), is_next(engine, b, a)) > 0.5, a


def test_a_bert_under_a_causal_mask_is_more_surprised_than_a_gpt(engine):
    claim = next(one for one in read_facts("claims")["claim"] if one["key"] == "causal-bert")
    assert "guesses worse than a model that was" in claim["right"]
    more = []
    for example in compare_ask.examples():
        found = {one.reader: one.total for one in surprise.surprises(
            engine, example["text"], None, Readers("twin-bert", "twin-gpt"))}
        more.append(found["hidden"] - found["left"])
    assert sum(more) > 100  # nats, of 18 sentences
    assert sum(one > 0 for one in more) >= len(more) - 1


def test_the_two_sentences_of_masking_have_other_first_guesses(engine):
    first, second = (fill_mask(engine, text)[0].predictions[0].token
                     for text in (state.DEFAULT_TEXT, masking_more.OTHER_SENTENCE))
    assert (first, second) == ("book", "door")


def test_the_first_draw_of_80_10_10_shows_a_mask_and_a_random_word(engine):
    tokenizer = engine.loaded("twin-bert").tokenizer
    drawn = masking.draw(tokenizer.encode(state.DEFAULT_TEXT), tokenizer, 0.15, masking_more.FIRST_SEED)
    assert {OUTCOMES[drawn.outcome[n]] for n in drawn.positions} == {"masked", "random"}

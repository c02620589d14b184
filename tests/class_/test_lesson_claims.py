"""What the lessons say of the shipped models is what these say."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from bert_core.facts import known_sizes
from bert_core.measures import compare, reveal
from bert_core.measures.attribution import leave_one_out
from bert_core.measures.compare import Question, Readers
from bert_core.measures.cost import crossover
from bert_core.measures.flow import LENGTH_PARTS, by_lengths, by_weights, flow
from bert_core.measures.head_places import head_places
from bert_core.measures.knowledge_neurons import neuron_shares, others_like, strongest
from bert_core.measures.predictions import gap_distribution
from bert_core.measures.swap import carrier, swap_vectors
from bert_core.measures.target import Target
from bert_core.measures.vocabulary_head import head_steps
from bert_core.serving import Engine
from bert_core.serving.local import LocalEngine
from bert_core.tasks.answers import answer, answer_grids, answer_windows
from bert_core.tasks.entities import find_entities
from bert_core.tasks.sentences import classify, is_next
from bert_core.tasks.vocabulary import fill_mask
from bert_core.trace import TraceRequest
from ui import chips
from ui.views.class_lessons import lessons
from ui.views.masking import TO_TRY
from ui.views.masking_neurons import DRAWS

LESSONS = {lesson.key: lesson for lesson in lessons()}


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    started = LocalEngine()
    yield started
    started.close()


def linked(lesson: str, step: int) -> dict[str, str]:
    """What the button of a step puts into the page."""
    return dict(LESSONS[lesson].steps[step].link)


def said(share: float) -> str:
    """A share as the lessons write it."""
    return f"{100 * share:.0f} %"


def guesses(engine: Engine, text: str) -> list[str]:
    return [one.token for one in fill_mask(engine, text)[0].predictions]


def test_the_other_ending_of_the_gap_turns_the_guess(engine):
    assert [guesses(engine, linked("gap", n)["text"])[0] for n in (0, 1)] == ["book", "door"]
    assert "book becomes a door" in LESSONS["gap"].steps[1].notice


def test_the_book_fits_better_and_has_the_better_bias(engine):
    trace, loaded = engine.run(TraceRequest(linked("gap", 3)["text"])), engine.loaded()
    ids = [loaded.tokenizer.id_of(word) for word in ("book", "door")]
    steps = head_steps(loaded, trace, int(trace.mlm_positions[0]), ids)
    book, door = steps.products.sum(axis=-1)
    notice = LESSONS["gap"].steps[3].notice
    assert f"the larger sum of products, {book:.1f} against {door:.1f}" in notice
    biases = loaded.model.weights[loaded.model.names.mlm_bias].numpy()
    high, low = (f"{biases[one]:.1f}".replace("-", "−") for one in ids)
    assert f"the higher bias too, {high} against {low}" in notice
    share = (biases[ids[0]] - biases[ids[1]]) / (steps.logits[0] - steps.logits[1])
    assert "two thirds of the distance" in notice
    assert share == pytest.approx(2 / 3, abs=0.05)
    whole = np.array([loaded.tokenizer.token_of(n)[:2] != "##" for n in range(1996, 29612)])  # the commonest first
    words = biases[1996:29612][whole]
    assert np.median(words[:3000]) > np.median(words[-3000:]) + 2


def test_what_opens_a_question_looks_at_its_mark(engine):
    step = LESSONS["attention"].steps[1]
    assert dict(step.at) == {"layer": "2", "head": "1"}
    found = head_places(engine, None)
    places = list(zip(*(part[:5, 1, 0] for part in (found.sentence, found.query, found.key)), strict=True))
    openings = {found.sentences[sentence][query] for sentence, query, _ in places}
    assert all(f"“{word}”" in step.do for word in openings)
    assert [found.sentences[sentence][key] for sentence, _, key in places] == ["?"] * 5
    trace = engine.run(TraceRequest(dict(step.link)["text"]))
    weights = dict(zip(trace.tokens, trace.attention_probs[1, 0, :, trace.tokens.tolist().index("?")], strict=True))
    assert f"“you” that looks at the question mark, with {said(weights['you'])}" in step.notice
    assert f"“have” only with {said(weights['have'])}" in step.notice
    assert max(weights, key=weights.get) == "you"


def weight(engine: Engine, text: str, layer: int, head: int, query: str, key: str) -> float:
    """What a head gives from one word of a text to the first of another, all counted from 1."""
    trace = engine.run(TraceRequest(text, parts=("attention_probs",)))
    words = trace.tokens.tolist()
    return float(trace.attention_probs[layer - 1, head - 1, words.index(query), words.index(key)])


def test_the_heads_of_the_attention_lesson_meet_the_sentences_that_speak_against_them(engine):
    step, text = LESSONS["attention"].steps[0], linked("attention", 0)["text"]
    wide = text.replace("tired", "wide")
    assert f"“it” gives “animal” {said(weight(engine, text, 4, 2, 'it', 'animal'))}." in step.notice
    still, street = (said(weight(engine, wide, 4, 2, "it", word)) for word in ("animal", "street"))
    assert f"“animal” still has {still} and “street” {street}." in step.notice
    step, umbrella = LESSONS["attention"].steps[1], "Perhaps you have seen my umbrella?"
    assert f"“she” has {said(weight(engine, 'She lives in Berlin?', 2, 1, 'she', '?'))}" in step.notice
    you, perhaps = (said(weight(engine, umbrella, 2, 1, word, "?")) for word in ("you", "perhaps"))
    assert f"in “{umbrella}” it is “you” again, with {you} against {perhaps} for “perhaps”" in step.notice


def test_three_heads_that_look_at_one_place_do_three_things(engine):
    step, text = LESSONS["proof"].steps[0], linked("proof", 0)["text"]
    trace = engine.run(TraceRequest(text, parts=("attention_probs",)))
    book, gap = engine.loaded().tokenizer.id_of("book"), trace.encoding.mask_positions[0]
    heads, keys = ((2, 9), (1, 8), (0, 2)), (0, gap + 1, gap - 1)  # 0-based, in the lesson's order
    for (layer, head), key in zip(heads, keys, strict=True):
        assert f"layer {layer + 1}, head {head + 1}" in step.do
        assert trace.attention_probs[layer, head, gap, key] > 0.975
    every = [(layer, head) for layer in range(6) for head in range(12)]
    off = dict(zip(every, engine.run_many([TraceRequest(text, heads_off=(one,)) for one in every]), strict=True))
    shares = {one: gap_distribution(run, gap) for one, run in off.items()}
    assert all(int(share.argmax()) == book for share in shares.values())
    whole, stays, falls, rises = (said(share[book]) for share in (
        gap_distribution(engine.run(TraceRequest(text)), gap), *(shares[one] for one in heads)))
    assert f"“book” has {whole} in the untouched run: without the first it stays at {stays}" in step.notice
    assert f"without the second it falls to {falls}, without the third it rises to {rises}." in step.notice


def test_the_difference_of_dogs_and_dog_is_shared_after_layer_4(engine):
    link, notice = linked("proof", 2), LESSONS["proof"].steps[2].notice
    found = engine.call(swap_vectors, TraceRequest(link["text"]), TraceRequest(link["swapped"]), 6)
    assert [carrier(found)[layer] for layer in (0, 1, 2, 3, 5, 6)] == [2] * 4 + [6] * 2
    the, dogs, gap = (f"{found.shares[4, place]:.2f}".lstrip("0") for place in (1, 2, 6))
    assert f"the first “the” moves the answer {the} of the way, “dogs” {dogs}, the gap {gap}." in notice


def test_without_positions_both_orders_are_one_bag(engine):
    step, first = LESSONS["embeddings"].steps[1], linked("embeddings", 1)["text"]
    second = "The man bites the [MASK]."
    assert second in step.do

    def best(text: str, **options) -> tuple[str, str]:
        trace = engine.run(TraceRequest(text, **options))
        share = gap_distribution(trace, trace.encoding.mask_positions[0])
        return engine.loaded().tokenizer.token_of(int(share.argmax())), said(share.max())

    (dog, its), (knife, chance) = best(first), best(second)
    assert (dog, knife) == ("dog", "knife")
    assert f"a dog bites the man ({its}), and the man bites a knife ({chance})." in step.notice
    bags = [best(text, embeddings_off=("position",)) for text in (first, second)]
    assert bags == [(".", "42 %")] * 2
    assert "a full stop, 42 %" in step.notice


def test_one_neuron_in_twelve_gives_more_than_0(engine):
    request = TraceRequest(linked("attention", 3)["text"], parts=("intermediate",))
    inner = engine.run(request).intermediate  # (L, T, I)
    assert "Of 1,536 neurons about one in twelve, on average, gives more than 0" in LESSONS["attention"].steps[3].notice
    assert inner.shape[-1] == 1536
    assert 1 / 14 < (inner > 0).mean() < 1 / 10
    words = engine.run(TraceRequest(linked("attention", 3)["text"])).tokens.tolist()
    of_animal = (inner[1, words.index("animal")] > 0).sum()
    assert f"“animal” in layer 2, {of_animal} do" in LESSONS["attention"].steps[3].notice
    assert inner.min() > -0.18


def test_the_neurons_of_france_speak_for_other_countries_too(engine):
    step = LESSONS["proof"].steps[3]
    paris, french, berlin = dict(step.link)["text"], dict(step.link)["also"], "Berlin is the capital of [MASK]."
    assert f"“{french}” and “{berlin}”" in step.do
    france, germany = (engine.loaded().tokenizer.id_of(word) for word in ("france", "germany"))
    assert guesses(engine, paris)[0] == "france"
    target = Target("mlm", france, engine.run(TraceRequest(paris)).mlm_positions[0], "probability")
    chosen = strongest(engine.call(neuron_shares, TraceRequest(paris), target), 8)

    def moves(text: str, word: int, neurons=chosen) -> list[float]:
        runs = (TraceRequest(text), TraceRequest(text, neurons=tuple((*one, 0.0) for one in neurons)))
        traces = engine.run_many(runs)
        return [float(gap_distribution(trace, int(trace.mlm_positions[0]))[word]) for trace in traces]

    assert "falls from {} to {}, and".format(*map(said, moves(paris, france))) in step.notice
    assert "falls too, from {} to {};".format(*map(said, moves(french, france))) in step.notice
    assert "Berlin, from {} to {}.".format(*map(said, moves(berlin, germany))) in step.notice
    for draw in range(DRAWS):
        before, after = moves(paris, france, others_like(chosen, 1536, draw))
        assert abs(after - before) < 0.02


def test_only_who_sees_the_right_gets_it_right(engine):
    whole = linked("both-ways", 0)["text"]
    assert {linked("both-ways", n)["text"] for n in (1, 2)} == {whole}
    text = whole.replace("sun", "[MASK]")
    assert text in LESSONS["both-ways"].question
    assert "“sun” is hidden" in LESSONS["both-ways"].steps[0].do
    assert chips.first_choice(engine.loaded("twin-bert").tokenizer.encode(whole)) == 2
    assert guesses(engine, text)[0] == "sun"
    question = Question(whole, None, 0, 4, 7)
    readings, _ = compare.read(engine, question, Readers("twin-bert", "twin-gpt"), ("both", "left"))
    assert "sun" not in [one.token for one in compare.top(readings["left"], engine, 5)]
    curves = reveal.reveal(engine, question, "twin-bert")
    assert reveal.verdict(curves) == "right"
    left, right, both = curves
    assert not any(step.right for step in left.steps)
    assert [step.right for step in right.steps].index(True) == [step.revealed for step in right.steps].index("brightly")
    assert f"{said(both.final)} instead of {said(right.final)}" in LESSONS["both-ways"].steps[2].notice


def test_the_heads_that_a_lesson_names_look_as_it_says(engine):
    """“The animal didn't cross …”: who looks one back, who one on, and where the others rest."""
    assert "Layer 1, head 3 looks at the token before, layer 2, head 9 at the token after" in (
        LESSONS["attention"].steps[0].notice)
    trace = engine.run(TraceRequest(linked("attention", 0)["text"], parts=("attention_probs",)))
    probs, inner = trace.attention_probs, range(1, len(trace) - 1)  # (L, H, Tq, Tk)
    assert np.mean([probs[0, 2, n, n - 1] for n in inner]) > 0.9
    assert np.mean([probs[1, 8, n, n + 1] for n in inner]) > 0.9
    on_cls, on_sep = (probs[:, :, 1:-1, place].mean(-1) for place in (0, -1))
    assert (on_cls > 0.5).mean() > 0.4
    assert on_sep.max() < 0.5  # so no lesson may say that heads rest on [SEP] here


def test_attention_overtakes_the_feed_forward_where_the_lesson_says(engine):
    words = LESSONS["size"].steps[1].notice
    base = next(size.config for size in known_sizes() if size.name == "bert-base-uncased")
    for name, config in (("twin-bert", engine.loaded("twin-bert").config), ("bert-base", base)):
        assert f"{crossover(config).scores:,.0f} tokens for {name}" in words or (
            f"{crossover(config).scores:,.0f} for {name}" in words)
        assert crossover(config).scores > config.max_position_embeddings


def test_the_kittens_are_cut_as_the_lesson_says(engine):
    tokenizer = engine.loaded("twin-bert").tokenizer
    pieces = " ".join(tokenizer.encode(linked("tokens", 0)["text"]).tokens)
    for cut in ("playful", "kitten ##s", "me ##owed", "un ##bel ##ie ##va ##bly"):
        assert cut in LESSONS["tokens"].steps[0].notice
        assert cut in pieces
    assert tokenizer.backend.token_to_id("unbelievable") is not None


def test_a_sentence_without_positions_has_another_guess(engine):
    text = linked("embeddings", 1)["text"]
    request = TraceRequest(text, embeddings_off=("position",), parts=("mlm_positions", "mlm_logits"))
    piece = engine.loaded().tokenizer.backend.id_to_token(int(engine.run(request).mlm_logits[0].argmax()))
    assert piece != guesses(engine, text)[0]


def test_one_word_turns_the_review(engine):
    text = linked("cls", 0)["text"]
    assert "“wonderful” to “terrible”" in LESSONS["cls"].steps[0].do
    answers = [classify(engine, one, model="twin-bert-sst2").label
               for one in (text, text.replace("wonderful", "terrible"))]
    assert answers == ["positive", "negative"]


def test_the_next_sentence_is_told_from_penguins_and_from_the_one_before(engine):
    first, second = linked("nsp", 0)["text"], linked("nsp", 0)["pair"]
    assert "Penguins live in the south." in LESSONS["nsp"].question
    after, before, penguins = (is_next(engine, a, b) for a, b in (
        (first, second), (second, first), (first, "Penguins live in the south.")))
    assert after > max(before, penguins)


def test_a_full_stop_and_the_order_move_the_pair_as_the_lesson_says(engine):
    """In its own order: without B's full stop, then with it again and swapped."""
    step, (first, second) = LESSONS["nsp"].steps[0], (linked("nsp", 0)[key] for key in ("text", "pair"))
    assert step.do.index("full stop, and put it back") < step.do.index("swap")
    whole, cut, swapped = (said(is_next(engine, *pair)) for pair in (
        (first, second), (first, second.removesuffix(".")), (second, first)))
    assert f"*Next* has {whole}, and {cut} without the full stop" in step.notice
    assert f"Swapped, this pair has {swapped};" in step.notice


def test_names_and_an_answer_are_found(engine):
    found = find_entities(engine, linked("tasks", 1)["text"], model="twin-bert-ner").entities
    assert {"Ada Lovelace", "Charles Babbage", "London"} <= {one.text for one in found}
    asked = linked("tasks", 2)
    assert answer(engine, asked["text"], asked["pair"], model="twin-bert-squad").text == "Clara Holt"


def test_the_best_start_and_the_best_end_are_ruled_out_together(engine):
    step, link = LESSONS["tasks"].steps[2], linked("tasks", 2)
    question = "Who uses the bridge?"
    assert f"“{question}”" in step.do
    (grid,) = answer_grids(answer_windows(engine, question, link["pair"], model="twin-bert-squad"))
    start, end = int(grid.start.argmax()), int(grid.end.argmax())
    assert end < start
    assert np.isnan(grid.scores[start, end])
    best = (f"the best start is “{grid.tokens[start]}”, {said(grid.start[start])}, and the best end "
            f"“{grid.tokens[end].title()}”, {said(grid.end[end])}")
    assert best in step.notice
    found = answer(engine, question, link["pair"], model="twin-bert-squad")
    assert (found.text, said(found.score)) == ("trams", "15 %")


def test_leaving_out_and_attention_name_different_words(engine):
    step, text = LESSONS["proof"].steps[1], linked("proof", 1)["text"]
    trace = engine.run(TraceRequest(text, parts=("attention_probs", "mlm_positions", "mlm_logits")))
    gap, book = trace.encoding.mask_positions[0], engine.loaded().tokenizer.id_of("book")
    seen = trace.attention_probs[-1, :, gap].mean(axis=0)
    first, before = said(seen[0]), said(seen[gap - 1])
    assert int(seen.argmax()) == 0
    assert f"Attention gives [CLS] most, {first}, and “the” before the gap {before};" in step.notice
    left_out = engine.call(leave_one_out, TraceRequest(text), Target("mlm", book, gap))
    assert int(np.argmax(left_out.values)) == gap - 1


@pytest.mark.parametrize(("text", "word"), zip(TO_TRY, ("sun", "bicycle", "running"), strict=True))
def test_the_sentences_to_try_have_a_good_first_guess(engine, text, word):
    assert guesses(engine, text)[0] == word


def test_the_gap_is_made_of_cls_by_weights_more_than_by_vectors(engine):
    step = LESSONS["attention"].steps[4]
    trace = engine.run(TraceRequest(linked("attention", 4)["text"], parts=LENGTH_PARTS))
    counted = by_weights(trace), by_lengths(trace, engine.loaded())
    weights, lengths = (flow(mixed, trace.encoding.mask_positions[0]).shares[0, 0] for mixed in counted)
    assert f"By the weights alone {said(weights)} of the gap is [CLS]" in step.notice
    assert f"by the vectors that are really added {said(lengths)}" in step.notice


def test_more_than_half_of_berts_guess_comes_from_the_right_and_nothing_of_gpts(engine):
    text, notice = linked("both-ways", 1)["text"], LESSONS["both-ways"].steps[1].notice
    both, left = engine.run_many([TraceRequest(text, masked=(2,), parts=LENGTH_PARTS),
                                  TraceRequest(text, model="twin-gpt", parts=LENGTH_PARTS)])
    given = flow(by_lengths(both, engine.loaded()), 2).shares[0, 3:-1].sum()
    assert f"More than half of what reaches twin-bert's guess, {said(given)}," in notice
    shares = flow(by_lengths(left, engine.loaded("twin-gpt")), 1).shares[0]
    assert np.flatnonzero(shares).tolist() == [0, 1]
    assert "All that twin-gpt has is [CLS] and “the”" in notice


def test_who_took_off_a_coat(engine):
    """What the last lesson says of “his” and “her”, in the places of its sentences."""
    lesson = LESSONS["text"]
    notices = [step.notice for step in lesson.steps]

    def shares(who: str) -> tuple[str, str]:
        trace = engine.run(TraceRequest(f"{who} took off [MASK] coat."))
        share = gap_distribution(trace, trace.encoding.mask_positions[0])
        return tuple(said(share[engine.loaded().tokenizer.id_of(word)]) for word in ("his", "her"))

    (his, her), (nurse_his, nurse_her) = shares("The doctor"), shares("The nurse")
    assert guesses(engine, "The doctor took off [MASK] coat.")[0] == "his"
    assert f"“his” gets {his}, “her” {her}." in lesson.reveal
    assert f"“his” falls from {his} to {nurse_his} and “her” rises from {her} to {nurse_her}." in notices[0]
    assert "“his” has {} and “her” {}.".format(*shares("The waitress")) in notices[1]
    for who in ("dancer", "queen"):
        male, female = shares(f"The {who}")
        assert f"the {who} ({female} against {male})" in notices[1]
    assert "the baseline: “his” has {}, “her” {}.".format(*shares("Someone")) in notices[1]


def test_the_dancers_vector_carries_the_difference_up_to_layer_5(engine):
    link, notice = linked("text", 2), LESSONS["text"].steps[2].notice
    found = engine.call(swap_vectors, TraceRequest(link["text"]), TraceRequest(link["swapped"]), 5)
    assert found.answers == ("his", "her")
    assert carrier(found) == [2] * 6 + [5]
    least = f"{found.shares[:6, 2].min():.2f}".lstrip("0")
    assert f"at least {least} of the way" in notice


def test_gpt_repeats_the_nurse_more_than_bert(engine):
    notice = LESSONS["text"].steps[3].notice

    def her(who: str) -> list[str]:
        text = f"The {who} took off her coat."
        question = Question(text, None, 0, text.index("her"), text.index("her") + 3)
        readings, _ = compare.read(engine, question, Readers("twin-bert", "twin-gpt"), ("both", "left"))
        return [said(readings[reader].probability) for reader in ("left", "both")]

    assert "GPT gives the nurse's “her” {}, BERT {};".format(*her("nurse")) in notice
    assert set(her("doctor")) == {"1 %"}
    assert "the doctor's has 1 % in both" in notice

"""The page One way, both ways: each view, links, and what can't be answered."""

from __future__ import annotations

import json
import re
import zlib
from pathlib import Path

import numpy as np
import pytest

from bert_core import TraceRequest, load_engine
from bert_core.figures import compare as figures
from bert_core.figures import compare_cards
from bert_core.load import load_model
from bert_core.measures import compare, compare_pairs, reveal, surprise
from bert_core.measures.compare import Question
from bert_core.measures.compare_writing import costs_at_one_size
from tests.payloads import drawn, is_ready, plain_line, said, visit
from ui import controls
from ui.views import compare_sentence, compare_writing
from ui.views.compare import VIEWS
from ui.views.compare_ask import NOTES, examples
from ui.views.compare_experiment import Job

TEXT = "The dog barked all night."


def test_three_readers_answer_the_same_place():
    at = visit("compare", text=TEXT, at="2", k="7")
    is_ready(at)
    cards = drawn(at, "compare")["cards"]
    assert [card["reader"] for card in cards] == ["both", "left", "hidden"]
    assert [len(card["rows"]) for card in cards] == [7, 7, 7]
    assert all(card["truth"]["word"] == "dog" for card in cards)
    engine = load_engine()
    masked = engine.run(TraceRequest(TEXT, masked=(2,), model="twin-bert"))
    causal = engine.run(TraceRequest(TEXT, model="twin-gpt"))
    rows = {"both": masked.mlm_logits[0], "left": causal.lm_logits[1]}
    for card in cards[:2]:
        p = np.exp(compare.log_softmax(rows[card["reader"]])[causal.input_ids[2]])
        assert card["truth"]["p"] == pytest.approx(p, rel=1e-3)


def test_hidden_words_are_not_even_sent_as_seen():
    cards = {card["reader"]: card for card in drawn(visit("compare", text=TEXT, at="2"), "compare")["cards"]}
    kinds = {reader: [piece["k"] for piece in card["strip"]] for reader, card in cards.items()}
    assert kinds["both"] == ["seen", "gap", *["seen"] * 4]
    assert kinds["left"] == kinds["hidden"] == ["seen", "gap", *["unseen"] * 4]


def test_elmos_way_has_the_two_readers_the_two_joined_and_the_argument():
    at = visit("compare", text=TEXT, at="2", view="ELMo's way")
    cards = drawn(at, "compare")["cards"]
    assert [card["reader"] for card in cards] == ["left", "right", "elmo", "both"]
    assert "from the two joined" in said(at)


@pytest.mark.parametrize(("model", "view", "first", "others"), [
    ("twin-bert", "Side by side", "twin-bert", "beside it twin-gpt"),
    ("twin-rtl", "Side by side", "twin-bert", "beside it twin-gpt"),
    ("twin-rtl", "Surprise", "twin-rtl", "beside it twin-bert, twin-gpt"),
    ("twin-gpt", "Reveal", "twin-bert", "CPU, float32"),
    ("twin-bert-sst2", "Writing", "twin-gpt", "beside it twin-bert"),
])
def test_the_status_bar_names_who_reads_in_this_view(model, view, first, others):
    status = is_ready(visit("compare", text=f"{TEXT[:-1]} long .", view=view, model=model))["status"].split(" · ")
    assert (status[0], status[1]) == (first, others)


def test_a_gpt_of_ones_own_reads_in_twin_gpts_place(family, monkeypatch):
    folder = Path(family("GPT-2"))
    monkeypatch.setenv("BOTH_WAYS_FOLDERS", str(folder.parent))
    status = is_ready(visit("compare", text=TEXT, model=folder))["status"]
    assert status.startswith(f"{folder.name} · beside it twin-bert · ")


def test_masks_leave_out_what_is_forbidden():
    at = visit("compare", text=TEXT, at="2", view="Masks and heads", layer="3", head="5")
    payload = drawn(at, "compare_maps")
    assert [reader["reader"] for reader in payload["readers"]] == ["both", "left", "hidden", "right"]
    assert {(reader["layer"], reader["head"], reader["what"]) for reader in payload["readers"]} == {
        (2, 4, "layer 3, head 5")}


def test_a_long_input_is_drawn_in_part_and_counted_whole():
    payload = drawn(visit("compare", text="dog " * 60, at="59", view="Masks and heads"), "compare_maps")
    for n, reader in enumerate(payload["readers"]):
        assert len(reader["tokens"]) == 62
        assert len(reader["drawn"]) <= figures.MAX_DRAWN + 2
        assert {0, 61} < set(reader["drawn"])  # [CLS] and [SEP] hold most of a row's weight, however far they are
        row = reader["drawn"].index(reader["row"])
        assert payload["arrays"][f"allowed{n}"].shape == (len(reader["drawn"]), 62)
        assert payload["arrays"][f"weights{n}"][row].sum() == pytest.approx(1.0, abs=1e-5)
    assert payload["arrays"]["allowed0"].all()


def test_the_head_that_opens_first_looks_at_words_on_both_sides_unless_one_is_chosen():
    def opened(**link) -> dict:
        return drawn(visit("compare", text=TEXT, at="2", view="Masks and heads", **link), "compare_maps")

    payload = opened()
    assert len({(reader["layer"], reader["head"]) for reader in payload["readers"]}) == 1
    for n in range(4):
        words = payload["arrays"][f"weights{n}"][1:-1, 1:-1]
        assert (words.sum() - np.trace(words)) / len(words) > 0.3
    one = opened(layer="2")["readers"][0]
    assert (one["layer"], one["head"]) == (1, payload["readers"][0]["head"])


def test_a_right_to_left_reader_is_framed_where_it_guesses_the_last_word():
    payload = drawn(visit("compare", text="dog " * 60, at="60", view="Masks and heads"), "compare_maps")
    right = payload["readers"][3]
    assert (right["reader"], right["row"], right["drawn"][:2]) == ("right", 0, [0, 30])


def test_reveal_waits_for_the_prediction_and_a_link_shows_the_curves():
    at = visit("compare", text=TEXT, at="2", view="Reveal")
    assert "gives it away" in said(at)
    assert not at.get("plotly_chart")
    mark = f"{zlib.crc32(repr(Question(TEXT, None, 0, 4, 7)).encode()):08x}"
    at = visit("compare", text=TEXT, at="2", view="Reveal", shown=mark)
    figure = json.loads(at.get("plotly_chart")[0].proto.spec)
    assert [len(trace["x"]) for trace in figure["data"][:3]] == [2, 5, 5]
    assert "The numbers say" in said(at)
    assert "at once" not in said(at)
    assert '<th scope="col"></th>' not in said(at)


def test_a_reveal_of_many_words_says_that_its_last_step_joins_them():
    text = "The dog " + "barked " * 20
    mark = f"{zlib.crc32(repr(Question(text, None, 0, 4, 7)).encode()):08x}"
    at = visit("compare", text=text, at="2", view="Reveal", shown=mark)
    assert "the last one reveals 9 words on the right at once" in said(at)
    figure = json.loads(at.get("plotly_chart")[0].proto.spec)
    assert figure["layout"]["xaxis"]["dtick"] == 1


def test_surprise_draws_every_reader_with_its_total():
    at = visit("compare", text=TEXT, view="Surprise")
    assert drawn_names(at) == ["BERT, both ways", "GPT, left only", "ELMo's way: joined at the end"]
    assert said(at).count(" nats</b>") == 5
    assert json.loads(at.get("plotly_chart")[0].proto.spec)["layout"]["showlegend"]
    at = visit("compare", text=TEXT, view="Surprise", readers="Right to left")
    assert drawn_names(at) == ["Right to left"]


def drawn_names(at) -> list[str]:
    """Names of the lines of the page's first chart."""
    return [trace["name"] for trace in json.loads(at.get("plotly_chart")[0].proto.spec)["data"]]


@pytest.mark.parametrize("reader", figures.NAMES)
def test_a_total_looks_as_the_readers_line_does(reader):
    assert compare_sentence.BORDERS[figures.DASHES[reader]]
    symbols = {"●": "circle", "◀": "triangle-left", "✕": "x", "▶": "triangle-right", "◆": "diamond"}
    assert symbols[figures.GLYPHS[reader]] == figures.MARKERS[reader]


def test_writing_continues_the_words_before_and_counts_the_work():
    at = visit("compare", text=TEXT, at="3", view="Writing", write="4")
    assert said(at).count('class="piece"') == 8
    assert "The dog" in said(at)
    assert "query-key scores" in said(at)
    assert '<th scope="col"></th>' not in said(at)


def test_near_the_limit_it_says_and_counts_what_was_written():
    words = said(visit("compare", text="dog " * 508, at="507", view="Writing", write="7"))
    assert words.count("Only 4 of 7 pieces fit within this model&#x27;s limit.") == 2
    assert words.count('class="piece"') == 8
    assert "To write 4 pieces after 507 the GPT reads <strong>510</strong>" in words


def test_who_can_write_nothing_costs_nothing(monkeypatch):
    def full(*_):
        raise ValueError("the start fills this model's limit; use a shorter one")

    monkeypatch.setattr("bert_core.measures.compare_writing.write", full)
    words = said(visit("compare", text=TEXT, at="3", view="Writing"))
    assert words.count("the start fills this model") == 2
    assert "To write" not in words
    assert "How far do the keys" not in words


@pytest.mark.parametrize(("start", "shown"), [
    ("The dog", "The dog"), ("a" * 200, "a" * 200), ("a" * 201, "… " + "a" * 200),
    ("The " + "dog " * 50, "… " + "dog " * 50), ("The cat" + "dog " * 50, "… " + "dog " * 49),
])
def test_of_a_long_start_its_last_words_are_shown(start, shown):
    assert compare_writing.end_of(start) == shown


def test_a_drawn_text_is_the_seed_s_and_says_what_it_was_drawn_with():
    def words(**given: object) -> str:
        at = visit("compare", text=TEXT, at="3", view="Writing", write="6", **given)
        assert not at.exception
        return re.sub(r"<[^>]+>", " ", said(at))

    likeliest, one, again, other = (words(**given) for given in (
        {}, {"pick": "drawn"}, {"pick": "drawn", "temperature": 1.0}, {"pick": "drawn", "seed": 2}))
    assert one == again
    assert len({likeliest, one, other}) == 3
    assert ("drawn with" in one, "drawn with" in likeliest) == (True, False)
    assert "a piece drawn from its probabilities" in one
    assert "its likeliest next piece" in likeliest


def test_the_factor_of_multiplications_is_that_of_one_size(tiny_bert, monkeypatch):
    monkeypatch.setenv("BOTH_WAYS_FOLDERS", str(Path(tiny_bert).parent))
    factors = [re.findall(r"If both have the GPT's size, .* times the multiplications", said(visit(
        "compare", text=TEXT, at="3", view="Writing", write="4", **more))) for more in ({}, {"model": tiny_bert})]
    assert factors[0] == factors[1]
    config = load_engine().loaded("twin-gpt").config
    kept, anew = costs_at_one_size(config, 3, 4)  # [CLS] The dog
    factor = anew.multiplications / kept.multiplications
    assert f"6 layers of width 384, that is <strong>{factor:.1f}</strong>" in factors[0][0]


def test_a_long_text_says_how_many_of_its_tokens_are_scored(monkeypatch):
    monkeypatch.setattr(surprise, "MAX_WORK", 5 * 10**9)
    at = visit("compare", text="dog " * 30, view="Surprise")
    assert re.search(r"Scored: the first \d+ of 30 tokens. BERT needs a run", said(at))
    assert len(re.findall(r"a token, the first \d+ of 30 tokens", said(at))) == 5
    assert "log-probability of these tokens" in said(at)
    assert "log-probability of the sentence" in said(visit("compare", text=TEXT, view="Surprise"))


@pytest.mark.parametrize("name", ["FlauBERT", "ModernBERT"])
def test_reveal_says_at_once_why_a_model_has_no_curves(family, monkeypatch, name):
    folder = family(name)
    monkeypatch.setenv("BOTH_WAYS_FOLDERS", str(Path(folder).parent))
    at = visit("compare", text="the dog barked", at="2", view="Reveal", model=folder)
    is_ready(at)
    assert f"transformers' own {name.lower()}, only with its own attention".replace("'", "&#x27;") in said(at)
    assert "such as twin-bert" in said(at)
    assert "Reveal" not in [button.label for button in at.button]


def test_the_experiment_runs_to_its_end():
    at = visit("compare", view="Experiment", each="1")
    assert "Nothing has been run yet" in said(at)
    at.button[0].click().run(timeout=200)
    assert not at.exception
    job = at.session_state["_compare_job"]
    assert job.done == len(job.pairs) == 14
    assert set(job.right) == {"twin-bert", "twin-gpt", "twin-rtl", "twin-gpt × twin-rtl"}
    figure = json.loads(at.get("plotly_chart")[0].proto.spec)
    assert len(figure["data"]) == 4
    assert figure["data"][0]["y"][0] == "all together"
    assert f"Judged right: twin-bert {sum(job.right['twin-bert'])} of 14, twin-gpt" in said(at)


def test_a_stopped_experiment_keeps_what_it_has():
    pairs = compare_pairs.sample(compare_pairs.read_pairs(), 1)
    at = visit("compare", view="Experiment", each="1")
    at.session_state["_compare_job"] = Job(
        {"twin-gpt": ("twin-gpt",)}, {"twin-gpt": "left"}, pairs, {"twin-gpt": [True, False, True]}, stopped=True)
    at.run()
    assert not at.exception
    assert at.session_state["_compare_job"].done == 3
    assert len(json.loads(at.get("plotly_chart")[0].proto.spec)["data"]) == 1


def test_a_typed_gap_has_guesses_and_the_visitor_may_say_what_it_hides():
    text = "The [MASK] barked all night."
    at = visit("compare", text=text)
    cards = drawn(at, "compare")["cards"]
    best = cards[0]["rows"][0]
    assert [card["truth"]["word"] for card in cards] == [best["t"]] * 3  # nobody said it: BERT's own guess is asked for
    assert cards[0]["truth"]["p"] == pytest.approx(best["p"], abs=1e-6)
    assert not any(row["hit"] for card in cards for row in card["rows"])
    assert f"are of BERT's best guess, “{best['t']}”" in said(at)
    assert "right side" not in said(at).partition("best guess")[2].partition("</p>")[0]
    assert "you typed [MASK]" in drawn(visit("compare", view="ELMo's way", text=text), "compare")["cards"][0][
        "truth"]["why"]
    assert cards[0]["rows"]
    cards = drawn(visit("compare", text=text, behind="dog"), "compare")["cards"]
    assert cards[0]["truth"]["p"] > 0
    plain = drawn(visit("compare", text=TEXT, at="2"), "compare")["cards"]
    assert cards[0]["truth"]["p"] == pytest.approx(plain[0]["truth"]["p"], rel=1e-3)


@pytest.mark.parametrize(("view", "text"), [
    *(("Side by side", text) for text in ("[MASK] [MASK]", "🙂", "<b>x</b>", "dog " * 600)),
    ("Reveal", "[MASK]"), ("Reveal", "中文 字"), ("Writing", "a"), ("Surprise", "[MASK]"),
    ("Masks and heads", "dog " * 60),
])
def test_anything_typed_gets_an_answer(view, text):
    is_ready(visit("compare", text=text, view=view))


@pytest.mark.parametrize("text", ["", "\u0000\u200f"])
def test_where_no_word_can_be_hidden_it_is_said(text):
    assert plain_line(visit("compare", text=text)).startswith("There is no word to hide")


def test_an_example_sets_sentence_and_word():
    at = visit("compare", text="something else", pair="and more")
    chosen = next(n for n, one in enumerate(examples()) if one["word"] == "been")
    at.selectbox(key="_compare_example").set_value(chosen).run()
    ready = is_ready(at)
    assert ready["text"] == examples()[chosen]["text"]
    assert at.text_input(key="pair").value == ""
    assert {card["truth"]["word"] for card in drawn(at, "compare")["cards"]} == {"been"}


def test_every_example_says_what_the_shipped_model_measures():
    engine = load_engine()
    for one in examples():
        start = one["text"].index(one["word"])
        question = Question(one["text"], None, 0, start, start + len(one["word"]))
        assert reveal.verdict(reveal.reveal(engine, question, "twin-bert")) == one["verdict"], one


def test_the_examples_show_each_kind():
    verdicts = [one["verdict"] for one in examples()]
    assert verdicts.count("right") >= 4
    assert {"left", "together", "neither"} <= set(verdicts)
    assert {"a pronoun", "agreement"} <= {one.get("about") for one in examples() if one["verdict"] == "right"}
    assert any("barked" in one["text"] for one in examples() if one["verdict"] == "right")


def test_the_examples_keep_the_verdict_from_who_is_to_predict_it():
    def offered(view):
        return visit("compare", text=TEXT, at="2", view=view).selectbox(key="_compare_example").options

    assert any("right decides" in label for label in offered("Side by side"))
    assert not any(note in label for label in offered("Reveal") for note in NOTES.values())


def test_nothing_is_revealed_before_a_guess():
    at = visit("compare", text=TEXT, at="2", view="Reveal")
    (button,) = [button for button in at.button if button.label == "Reveal"]
    assert button.disabled
    guess = next(group for group in at.button_group if group.label == "Your prediction")
    guess.set_value("right").run()
    (button,) = [button for button in at.button if button.label == "Reveal"]
    assert not button.disabled


def test_values_that_can_not_be_used_are_said():
    assert is_ready(visit("compare", text=TEXT, at="0"))["lines"]
    assert is_ready(visit("compare", text=TEXT, view="nonsense"))["lines"]


# --- figures, without a page -------------------------------------------------


def test_shares_of_a_row_sum_to_one_and_hidden_readers_never_look_right(engine, readers):
    encoding = engine.loaded(readers.masked).tokenizer.encode(TEXT)
    found, _ = compare.read(engine, compare.question_at(encoding, 2), readers, parts=("attention_probs",))
    for reader, reading in found.items():
        if reading.trace is None:
            continue
        shares = figures.side_shares(reading.trace, reading.positions)
        np.testing.assert_allclose(sum(shares.values()), 1.0, atol=1e-5)
        if reader in ("left", "hidden"):
            assert (shares["right"] == 0).all()
        else:
            assert (shares["right"] > 0).all()


def test_the_window_holds_the_place_and_keeps_its_size():
    assert figures.window_around(8, 2, 32) == (0, 8)
    assert figures.window_around(100, 99, 32) == (68, 100)
    assert figures.window_around(100, 50, 32) == (34, 66)
    assert figures.window_around(100, 0, 32) == (0, 32)


@pytest.mark.parametrize("words", [compare_cards.STRIP - 2, compare_cards.STRIP - 1, compare_cards.STRIP])
def test_a_card_says_that_words_are_left_out_only_where_they_are(words):
    encoding = load_model("twin-bert").tokenizer.encode(" ".join(["dog"] * words))
    first, last = (compare_cards.strip(encoding, "both", (place,)) for place in (1, words))
    shown = [sum(piece["k"] != "more" for piece in strip) for strip in (first, last)]
    assert [strip[-1]["k"] == "more" for strip in (first, last)] == [shown[0] < words, False]
    assert [strip[0]["k"] == "more" for strip in (first, last)] == [False, shown[1] < words]


@pytest.mark.parametrize(("p", "shown"), [
    (0.41, "41 %"), (0.003, "0.3 %"), (0.00001, "<0.1 %"), (0.0994, "9.9 %"), (1.0, "100 %"), (0.0, "0.0 %"),
])
def test_percent_in_prose(p, shown):
    assert compare_cards.percent(p) == shown


def test_the_line_under_elmos_cards_follows_the_numbers():
    def reading(reader, p):
        row = np.log(np.array([p, 1 - p]))
        return compare.Reading(reader, ("m",), (2,), row, (0,), (float(row[0]),))

    four = {r: reading(r, p) for r, p in (("both", 0.6), ("elmo", 0.1), ("left", 0.2), ("right", 0.3))}
    assert "**for**" in compare_cards.elmo_line(four, "dog")
    assert "**against**" in compare_cards.elmo_line(four | {"both": reading("both", 0.01)}, "dog")


@pytest.mark.parametrize(("text", "position", "opens"), [
    ("Open the window", 3, "Nothing stands after the gap"),
    ("The schoolteacher opened the book and read the first chapter.", 7, "Here the right side helps"),
    ("The United States of America is a large country.", 3, "Here the right side hardly matters"),
])
def test_the_right_side_is_judged_by_bert_with_and_without_it(text, position, opens):
    at = visit("compare", text=text, at=str(position))
    assert opens in said(at)
    assert [card["reader"] for card in drawn(at, "compare")["cards"]] == ["both", "left", "hidden"]


@pytest.mark.parametrize(("view", "at", "read_by"), [
    ("Side by side", 2, ""), ("Side by side", 7, "twin-gpt reads"), ("ELMo's way", 2, "twin-rtl reads"),
    ("ELMo's way", 7, "twin-gpt reads"), ("Surprise", 2, "twin-gpt and twin-rtl read"), ("Reveal", 7, ""),
    ("Writing", 7, "")])
def test_another_gap_is_said_of_who_meets_it(view, at, read_by):
    words = said(visit("compare", view=view, text="She [MASK] her umbrella when it [MASK] here.", at=str(at)))
    assert (f"other gaps. {read_by} them as the piece [MASK]" if read_by else "her") in words
    assert ("other gaps" in words) == bool(read_by)


@pytest.mark.parametrize(("view", "behind"), [
    *((view, "[SEP]") for view in VIEWS if view != "Experiment"),
    *((next(iter(VIEWS)), behind) for behind in ("[PAD]", "\u200b", "\u00ad"))])
def test_what_has_no_piece_is_no_word_behind_the_gap(view, behind):
    at = visit("compare", view=view, text="The [MASK] ran.", behind=behind)
    is_ready(at)
    assert "the gap counts as unknown" in said(at)


def test_as_many_guesses_stand_on_a_card_here_as_on_masking():
    text = "The dog [MASK] all night."
    gap, = drawn(visit("masking", text=text), "gaps")["cards"]
    cards = drawn(visit("compare", text=text), "compare")["cards"]
    assert {len(card["rows"]) for card in cards} == {len(gap["lists"][0]["rows"])} == {controls.GUESSES}

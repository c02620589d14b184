"""The tables beside the canvases say the Trace's numbers, each in its own row and column."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

from bert_core import TraceRequest, load_engine
from bert_core.figures.masking import percent
from bert_core.load import load_model
from bert_core.measures import compare
from bert_core.measures.attention import head_numbers
from bert_core.measures.compare import Readers
from bert_core.measures.embeddings import position_table
from bert_core.measures.predictions import gap_distribution
from bert_core.measures.similarity import cosine_matrix
from tests.browser.tables import table_says
from tests.browser.waiting import PATIENCE, becomes
from tests.cases import quick_are
from tests.payloads import drawn
from tests.payloads import visit as run_page

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

TEXT, PAIR = "The dog barked all night.", "It slept."
CLASSIFIER = "twin-bert-sst2"


@pytest.fixture(scope="module")
def engine():
    return load_engine()


def test_every_head_s_numbers_stand_in_its_row_under_their_names(visitor, engine):
    page = visitor.open("attention", text=TEXT, pair=PAIR, layer=2, head=5)
    numbers = head_numbers(engine.run(TraceRequest(TEXT, PAIR)))
    columns = {"Entropy (nats)": numbers.entropy, "Mean distance (tokens)": numbers.distance,
               "On [CLS] (share)": numbers.cls, "On [SEP] (share)": numbers.sep,
               "On the token before (share)": numbers.previous, "On the token after (share)": numbers.following,
               "On itself (share)": numbers.itself}
    layers, heads = numbers.entropy.shape
    table_says(page, ["head", *columns], [
        [f"{layer + 1}-{head + 1}", *(values[layer, head] for values in columns.values())]
        for layer in range(layers) for head in range(heads)], box=".att-gridtable")


def test_components_write_a_share_as_python_does(visitor):
    base = (Path(__file__).resolve().parents[2] / "assets" / "components" / "_base.js").read_text(encoding="utf-8")
    function = re.search(r"^function percent\(p\) \{.*?^\}", base, re.MULTILINE | re.DOTALL)[0]
    shares = [0.0, 1e-6, 0.00099, 0.001, 0.0713, 0.0994, 0.0996, 0.42, 0.9949, 0.9951, 0.99949, 0.9995, 0.9999, 0.99999,
              1 - 2**-23, 1.0]
    assert visitor.page.evaluate(f"shares => shares.map((p) => ({function})(p))", shares) == list(map(percent, shares))


def test_a_cell_of_the_sum_and_the_dimensions_of_its_token(visitor, engine):
    page = visitor.open("embeddings", text=TEXT, pair=PAIR, cell="9,10")
    trace = engine.run(TraceRequest(TEXT, PAIR))
    strips = [trace.token_embeddings, trace.segment_embeddings, trace.position_embeddings, trace.embedding_sum,
              trace.embedding_output]
    assert trace.tokens[9] == "slept"
    becomes(page, lambda: [float(term.replace("−", "-")) for term in page.locator(".bw-term b").all_inner_texts()],
            [pytest.approx(float(strip[9, 10]), abs=1e-4) for strip in strips])
    table_says(page, ["dimension", "token", "segment", "position", "= sum", "LayerNorm"],
               [[str(d), *(strip[9, d] for strip in strips)] for d in range(trace.embedding_sum.shape[1])])


def test_neurons_are_switched_off_or_give_twice_as_much(visitor, engine):
    page = visitor.open("masking", text="Paris is the capital of [MASK].", view="Neurons", count=5)
    labels = page.locator(".bw-bar .bw-name")
    expect(labels).to_have_count(5, timeout=PATIENCE)
    chosen = [tuple(map(int, re.findall(r"\d+", label))) for label in labels.all_inner_texts()]
    france = engine.loaded().tokenizer.id_of("france")

    def after(text: str, factor: float) -> str:
        trace = engine.run(TraceRequest(text, neurons=tuple((layer - 1, n, factor) for layer, n in chosen)))
        return percent(float(gap_distribution(trace, int(trace.mlm_positions[0]))[france]))

    def shown() -> list[str]:
        return page.locator(".effect-followed .effect-after").all_inner_texts()

    other = "The French live in [MASK]."
    page.get_by_label("The same neurons in another sentence").fill(other)
    becomes(page, shown, [after("Paris is the capital of [MASK].", 0.0), after(other, 0.0)])
    page.get_by_text("Twice as much", exact=True).click()
    becomes(page, shown, [after("Paris is the capital of [MASK].", 2.0), after(other, 2.0)])
    visitor.in_address("give=Twice")
    visitor.no_traceback()


#: Every dimension of the open token: the terms of the readout, and what LayerNorm gives worked out.
EVERY_CELL = """async canvas => {
  const read = () => canvas.getRootNode().querySelector(".bw-readout");
  const found = [];
  canvas.focus();
  for (let n = 0; n < 384; n++) {
    found.push([...[...read().querySelectorAll(".bw-term b")].map(term => term.textContent),
      read().querySelector(".bw-norm").textContent.split(" = ")[1]].map(text => text.replace("−", "-")));
    canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
  }
  return found;
}"""


@pytest.mark.parametrize("text", quick_are(1, ["the old dog barked " * 50, TEXT]))
def test_every_cell_s_digits_are_the_trace_s(visitor, engine, text):
    page = visitor.open("embeddings", text=text, cell="1,0")
    trace = engine.run(TraceRequest(text))
    strips = (trace.token_embeddings, trace.segment_embeddings, trace.position_embeddings, trace.embedding_sum,
              trace.embedding_output)
    shown = page.locator("canvas.bw-strips").evaluate(EVERY_CELL)
    assert [row[:5] for row in shown] == [[f"{strip[1, d]:+.5f}" for strip in strips] for d in range(len(shown))]
    assert [float(row[5]) for row in shown] == pytest.approx([float(row[4]) for row in shown], abs=1.1e-5)
    assert np.mean([row[5] == row[4] for row in shown]) > 0.98


def test_every_cosine_of_a_row_of_positions_has_its_four_digits(visitor, engine):
    page = visitor.open("embeddings", view="Positions", text=TEXT)
    cosines = cosine_matrix(position_table(engine.loaded().model))
    canvas = page.locator("canvas.bw-map").first
    for _ in range(40 - 5):  # it opens at the row of position 5
        canvas.press("ArrowDown")
    page.locator(".bw-numbers summary").first.click()
    row = page.locator(".bw-numbers tbody tr").first.locator("td")
    becomes(page, lambda: row.all_inner_texts()[0], "40")
    shown = row.all_inner_texts()[1:]
    assert [float(text) for text in shown] == pytest.approx(cosines[40], abs=5.01e-5)


def test_maps_before_and_after_look_from_rows_to_columns(visitor, engine):
    page = visitor.open("masking", text=TEXT, mask="2", view="Before and after", layer=3)
    plain, hidden = (engine.run(TraceRequest(TEXT, masked=masked)) for masked in ((), (2,)))
    before, after = (trace.attention_probs[2].mean(axis=0) for trace in (plain, hidden))
    names = [f"“{token}” ({n})" for n, token in enumerate(plain.tokens)]
    table_says(page, ["map", "from", *names], [
        [title, name, *row]
        for title, weights in (("Before", before), ("After", after), ("Change", after - before))
        for name, row in zip(names, weights, strict=True)], box=".st-key-c_change")


def test_each_reader_s_row_of_weights(visitor, engine):
    page = visitor.open("compare", text=TEXT, at=2, view="Masks and heads", layer=3, head=5)
    question = compare.question_at(engine.loaded().tokenizer.encode(TEXT), 2)
    wanted = {"both": 2, "left": 1, "hidden": 2, "right": 3}  # the rows from which “dog” is guessed
    readings, _ = compare.read(engine, question, Readers("twin-bert", "twin-gpt", "twin-rtl"), tuple(wanted),
                               ("attention_probs",))
    rows = [readings[reader].trace.attention_probs[2, 4, row] for reader, row in wanted.items()]
    tokens = readings["both"].trace.tokens
    table_says(page, ["looked at", "BERT, both ways", "GPT, left only", "BERT, right side hidden", "Right to left"],
               [[f"{token} {k}", *(row[k] if row[k] > 0 else "not allowed" for row in rows)]
                for k, token in enumerate(tokens)])


def test_every_operand_from_cls_to_the_logit(visitor):
    page = visitor.open("cls", text=TEXT, view="The head", **{"class": "negative"})
    model = load_model(CLASSIFIER).model
    trace = load_engine().run(TraceRequest(TEXT, model=CLASSIFIER))
    first, weight = trace.hidden_states[-1, 0], model.weights["classifier.weight"][0].numpy()
    dense = model.weights["bert.pooler.dense.weight"].numpy() @ first + model.weights["bert.pooler.dense.bias"].numpy()
    strips = {"[CLS], last layer": first, "pooler: W·[CLS] + b, before tanh": dense, "tanh of it": np.tanh(dense),
              "weight of “negative”": weight, "weight × pooled": weight * trace.pooled_output}
    table_says(page, ["dimension", *strips],
               [[str(d), *(values[d] for values in strips.values())] for d in range(len(first))], box=".bw-operands")


def test_the_film_s_open_head_and_the_places_of_its_words(visitor):
    asked = {"film": "Anna the [MASK] bakes the bread.", "layer": 2, "head": 3}
    page = visitor.open("pretrain", **asked)
    film = drawn(run_page("pretrain", **asked), "live_film")
    weights = (film["arrays"]["attention"][0, 1, 2] / 65535.0) ** 2
    assert np.abs(weights.sum(axis=1) - 1).max() < 1e-4
    names = [f"{n} {token}" for n, token in enumerate(film["tokens"])]
    table_says(page, ["from", *names], [[name, *row] for name, row in zip(names, weights, strict=True)],
               box=".film-looks")
    table_says(page, ["word", "kind", "axis 1", "axis 2"], [
        [word, group, *place] for word, group, place in
        zip(film["words"], film["groups"], film["arrays"]["places"][0], strict=True)], box=".film-lies")


def test_a_word_that_stands_twice_is_looked_at_by_its_position(visitor, engine):
    """“the” looks at two others of its kind; each is named by where it stands."""
    text = "the dog saw the cat and the bird"
    page = visitor.open("compare", text=text, view="Masks and heads", layer=4, head=4, at=7)
    row = engine.run(TraceRequest(text, masked=(7,), parts=("attention_probs",))).attention_probs[3, 3, 7]
    trace = engine.run(TraceRequest(text))
    best = np.argsort(-row)[:3]
    tokens = list(trace.tokens)
    names = [f"{tokens[k]} ({k})" if tokens.count(tokens[k]) > 1 else tokens[k] for k in best]
    assert "the (" in " ".join(names)
    said = page.locator(".cmp-said").first.inner_text()
    assert [part.split("“")[1].split("”")[0] for part in said.split("looks at")[1].split(",")] == names

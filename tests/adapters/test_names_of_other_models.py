"""What the pages say of models that have no [CLS], or another name for it, and other pieces than BERT's."""

from __future__ import annotations

import html
import json
from dataclasses import replace

import numpy as np
import pytest
from tokenizers import Tokenizer as Fast

from bert_core.figures.attention import heads_payload
from bert_core.figures.tokens import BYTES, marks_note
from bert_core.load import Loaded, load_model
from bert_core.measures.ablation import masked_moves
from bert_core.measures.attention import special_names
from bert_core.measures.heads import PLACES, place_shares
from bert_core.measures.pooler import head_operands
from bert_core.measures.predictions import piece
from bert_core.measures.wordpiece import is_byte_level
from bert_core.script import screen_numbers
from bert_core.tasks.sentences import class_probabilities
from bert_core.tokenizer import Tokenizer
from bert_core.trace import TraceRequest, run_batch
from tests.adapters.tokenizer_kinds import roberta
from tests.payloads import drawn, is_ready, plain_line, said, visit
from ui import chips
from ui.views import cls_answer, cls_change
from ui.views.task_models import share

TEXT = "the dog barked"
LABELS = {0: "bad", 1: "fair", 2: "good"}


def run(loaded: Loaded, text: str = TEXT, pair: str | None = None, **asked):
    return run_batch(loaded, [TraceRequest(text, pair, **asked)])[0]


@pytest.fixture
def page(monkeypatch):
    """page(model, name, view, ...) -> a page run with that folder as its model, after a look for errors."""
    def look(model: str, name: str, view: str, **address: str):
        monkeypatch.setenv("BOTH_WAYS_MODEL", model)
        at = visit(name, view=view, **{"text": TEXT, **address})
        assert not at.exception
        return at

    return look


@pytest.fixture
def s_classifier(family) -> str:
    """A RoBERTa with three classes: <s> where BERT has [CLS], and a dense layer of its own before the classes."""
    return family("RoBERTa", "RobertaForSequenceClassification", id2label=LABELS)


def test_the_answer_of_a_roberta_speaks_of_its_own_tokens(page, s_classifier):
    at = page(s_classifier, "cls", "Answer")
    strip = drawn(at, "influence")
    assert [(one["t"], one["k"]) for one in strip["tokens"][::len(strip["tokens"]) - 1]] == [
        ("<s>", "special"), ("</s>", "special")]
    words = html.unescape(said(at))
    assert "Attention: from <s>, last layer" in words
    assert f"{s_classifier} writes <s> where BERT writes [CLS]" in words
    assert "from [CLS]" not in words


def test_the_other_views_of_a_roberta_speak_of_its_own_tokens(page, s_classifier):
    layers, change = (page(s_classifier, "cls", view) for view in ("Layers", "Change a word"))
    assert layers.get("button_group")[1].label == "Read from <s>"
    assert "What <s> looks at, by layer" in html.unescape(said(layers))
    assert "every sentence has the same <s>" in html.unescape(said(layers))
    assert "1 − cosine of old and new [CLS]" not in said(change)
    matrices = page(s_classifier, "meaning", "Sentences").get("plotly_chart")
    assert json.loads(matrices[0].proto.spec)["layout"]["title"]["text"] == "&lt;s&gt;"


def test_bert_is_told_nothing_of_other_names(page, tiny_classifier):
    assert "where BERT writes" not in said(page(tiny_classifier, "cls", "Answer"))


def test_a_head_of_its_own_is_no_pooler(page, s_classifier, tiny_classifier):
    rows = {model: [row["name"] for row in drawn(page(model, "cls", "The head"), "operands")["rows"]]
            for model in (s_classifier, tiny_classifier)}
    assert rows[s_classifier][:2] == ["<s>, last layer", "dense layer: W·<s> + b, before tanh"]
    assert rows[tiny_classifier][:2] == ["[CLS], last layer", "pooler: W·[CLS] + b, before tanh"]
    loaded = load_model(s_classifier)
    opened = head_operands(loaded, run(loaded), "classification")
    assert opened.logits == pytest.approx(run(loaded).logits, abs=1e-4)


@pytest.mark.parametrize(("kind", "by"), [
    ("multi_label_classification", "a sigmoid"), ("single_label_classification", "softmax")])
def test_the_head_says_what_makes_its_shares(page, checkpoint, kind, by):
    model = checkpoint("BertForSequenceClassification", problem_type=kind, id2label=LABELS)
    loaded = load_model(model)
    logits = run(loaded).logits
    found = share(class_probabilities(loaded.config, logits)[logits.argmax()])
    assert f"{by} makes {found} of it" in said(page(model, "cls", "The head"))


def test_a_regression_has_its_own_numbers_and_no_scale_that_nobody_told(page, checkpoint):
    model = checkpoint("BertForSequenceClassification", problem_type="regression", id2label=LABELS)
    side, = drawn(page(model, "cls", "Answer"), "verdict")["sides"]
    assert [bar["value"] for bar in side["bars"]] == pytest.approx(run(load_model(model)).logits, abs=1e-5)
    assert {(bar["share"], bar["below"]) for bar in side["bars"]} == {(None, cls_answer.SCORE)}
    assert "makes" not in said(page(model, "cls", "The head")).partition("Logits: ")[2].partition("</p>")[0]


def test_a_classifier_without_cls_and_mask_keeps_its_answer_and_its_attention(page, family):
    model = family("GPT-2", "GPT2ForSequenceClassification", pad_token_id=0, id2label=LABELS)
    at = page(model, "cls", "Answer")
    is_ready(at)
    assert "its head reads the last token" in said(at)
    assert "Attention: from the last token" in said(at)
    assert "No token is left out" in said(at)
    strip = drawn(at, "influence")
    assert [row["name"] for row in strip["rows"]] == ["attention"]
    probs = run(load_model(model)).attention_probs
    assert strip["arrays"]["values"][0] == pytest.approx(probs[-1, :, -1].mean(axis=0), abs=1e-5)


@pytest.mark.parametrize(("name", "called"), [
    ("BERT", {"[CLS]": "[CLS]", "[SEP]": "[SEP]"}), ("RoBERTa", {"[CLS]": "<s>", "[SEP]": "</s>"}), ("GPT-2", {})])
def test_the_attention_card_has_the_names_of_the_specials(family, name, called):
    trace = run(load_model(family(name)), pair="a cat slept")
    assert special_names(trace.encoding) == called
    assert heads_payload(trace, 0)[0]["called"] == called


@pytest.mark.parametrize("name", ["CamemBERT", "HerBERT"])
def test_a_full_stop_is_one_in_any_alphabet_of_pieces(family, name):
    loaded = load_model(family(name))
    trace = run(loaded, "the dog in the garden .")
    stop = max(trace.encoding.content)
    probs = np.zeros_like(trace.attention_probs)
    probs[..., stop] = 1.0
    shares = place_shares(planted(trace, attention_probs=probs))
    assert trace.encoding.tokens[stop] != "."
    assert shares[PLACES.index("full stop")] == pytest.approx(1.0)


def planted(trace, **arrays):
    """The Trace with other arrays in the place of its own."""
    return replace(trace, arrays={**trace.arrays, **arrays})


# --- pieces --------------------------------------------------------------------


def test_a_row_of_the_table_without_a_piece_has_a_number_for_a_name(family):
    """The families' tables have a row more than there are pieces, as many published ones do."""
    loaded = load_model(family("BERT, causal"))
    trace = run(loaded, parts=("lm_logits", "hidden_states"))
    nobody = loaded.config.vocab_size - 1
    assert not loaded.tokenizer.knows(nobody)
    logits = np.array(trace.lm_logits)
    logits[:, nobody] = 99.0
    assert f"[id {nobody}]" in screen_numbers(planted(trace, lm_logits=logits), loaded)["next"]
    masked = load_model(family("BERT"))
    before = run(masked, masked=(1,), parts=("mlm_positions", "mlm_logits"))
    logits = np.array(before.mlm_logits)
    logits[:, nobody] = 99.0
    moved, = masked_moves(planted(before, mlm_logits=logits), before, masked.tokenizer)
    assert moved.names[0] == piece(masked.tokenizer, nobody) == f"[id {nobody}]"


def test_a_mask_that_takes_the_space_before_it_is_called_as_in_the_vocabulary(tmp_path):
    """RoBERTa's <mask> does; the library then gives ' <mask>' for it."""
    roberta(tmp_path)
    whole = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))
    for added in whole["added_tokens"]:
        added["lstrip"] = added["content"] == "<mask>"
    tokenizer = Tokenizer(Fast.from_str(json.dumps(whole)), 40, {"mask": "<mask>", "cls": "<s>", "sep": "</s>"})
    assert tokenizer.encode("the [MASK] barked").tokens[2] == "<mask>"


def test_an_unknown_sign_is_shown_as_what_the_model_gets(family):
    tokenizer = load_model(family("XLM-RoBERTa")).tokenizer
    encoding = tokenizer.encode("dog 🙂")
    unknown = encoding.input_ids.index(tokenizer.id_of("<unk>"))
    assert encoding.tokens[unknown] == "<unk>"


@pytest.mark.parametrize(("name", "text", "says"), [
    ("RoBERTa", "the dog", ["Ġ is the space"]), ("GPT-2", "a café", ["Ġ is the space", BYTES]),
    ("CamemBERT", "a café", ["▁ is the space"]), ("HerBERT", "the dog", ["</w> ends a word"])])
def test_the_signs_in_the_pieces_are_explained(page, family, name, text, says):
    tokenizer = load_model(family(name)).tokenizer
    encoding = tokenizer.encode(text)
    found = marks_note(encoding, is_byte_level(tokenizer))
    assert found.startswith(f"{len(encoding)} tokens go into the model.")
    assert [all(one in found for one in says), BYTES in found] == [True, BYTES in says]
    assert html.escape(found) in said(page(family(name), "tokens", "Step by step", text=text))


def test_a_model_without_padding_is_not_given_any(page, family):
    at = page(family("GPT-2"), "tokens", "Ids and segments", pad="20")
    assert "has no token to pad with" in said(at)
    assert not at.get("slider")
    assert all(token["t"] != "[PAD]" for token in drawn(at, "ids")["tokens"])
    assert "`<pad>`" in page(family("RoBERTa"), "tokens", "Ids and segments").slider(key="pad").help


def test_the_second_word_is_asked_first_whatever_its_pieces_are_called(family):
    encoding = load_model(family("RoBERTa")).tokenizer.encode("zzyx dog")
    place = chips.first_choice(encoding)
    assert encoding.offsets[place][0] in (4, 5)  # with its space, or without


@pytest.mark.parametrize("name", ["RoBERTa", "HerBERT", "CamemBERT", "FlauBERT"])
def test_a_changed_sentence_stands_as_it_was_typed(family, name):
    trace = run(load_model(family(name)), "The dog barked,  not me!", "a cat slept")
    rows = cls_change._marked(trace, [n == trace.encoding.content[1] for n in range(len(trace))])
    assert "".join(before + word for before, word, _ in rows) == "The dog barked,  not me! a cat slept"
    assert sum(changed for *_, changed in rows) == 1


# --- pages ---------------------------------------------------------------------


def test_the_curves_say_which_specials_stay_in_sight(page, family):
    at = page(family("RoBERTa"), "compare", "Reveal", text="the dog barked all night")
    at.get("button_group")[-1].set_value("left").run()
    next(button for button in at.button if button.label == "Reveal").click().run()
    assert "<code>&lt;s&gt;</code> and <code>&lt;/s&gt;</code> are always in sight" in said(at)


@pytest.mark.parametrize(("name", "place"), [("RoBERTa", "twin-bert"), ("GPT-2", "twin-gpt")])
def test_a_model_that_is_no_twin_is_said_to_be_none(page, family, name, place):
    model = family(name)
    assert f"{model} reads in the place of {place}." in said(page(model, "compare", "Side by side"))
    assert "in the place of" not in said(page("twin-bert", "compare", "Side by side"))


@pytest.mark.parametrize("change", [{"off": "1-1"}, {"cut": "1-0"}, {"window": "2"}, {}])
def test_a_model_whose_heads_stay_on_keeps_its_picture(page, family, change):
    at = page(family("GPT-2"), "attention", "Act", **change)
    is_ready(at)
    assert "where no head or pair can be switched off" in said(at)
    assert (drawn(at, "attention")["mode"], drawn(at, "effect")["changed"]) == ("look", False)
    bert = page("twin-bert", "attention", "Act", **change)
    assert "no head or pair" not in said(bert)
    assert (drawn(bert, "attention")["mode"], drawn(bert, "effect")["changed"]) == ("act", bool(change))


def test_the_script_of_another_block_is_the_short_one_at_once(page, family):
    at = page(family("RoBERTa"), "code", "Script")
    is_ready(at)
    assert "it stands below" in said(at)
    assert "load_engine" in at.code[0].value


def test_a_classifier_of_another_kind_has_no_layers_of_cls_to_show(page, family):
    model = family("GPT-2", "GPT2ForSequenceClassification", pad_token_id=0, id2label=LABELS)
    assert "puts no [CLS] before its input" in plain_line(page(model, "cls", "Layers"))

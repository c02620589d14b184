"""Labelled tables: shipped ones are what they say, uploaded ones are bounded and checked."""

import contextlib
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert_core.load import SHIPPED
from bert_core.tokenizer import read_tokenizer
from bert_core.training.live import tables
from bert_core.training.live.baselines import bag_of_words
from bert_core.training.live.specs import TASKS

TOKENIZER = read_tokenizer(SHIPPED, 512, has_segments=True)
GOOD = "text,label\n" + "".join(f"a good thing {n},yes\na bad thing {n},no\n" for n in range(10))


@pytest.mark.parametrize("name", TASKS)
def test_shipped_tasks_are_large_enough_balanced_and_apart(name):
    data = tables.shipped_task(name)
    assert len(data.test) >= 200
    assert len(data.train) >= 250
    assert not set(data.texts("train")) & set(data.texts("test"))
    for part in ("train", "test"):
        counts = np.bincount(data.indices(part), minlength=len(data.labels))
        assert counts.max() - counts.min() <= 1
    assert set(tables.task_words()[name]) == {"title", "question", "example", "note"}


def test_words_without_order_are_right_exactly_half_of_the_time_on_the_order_task():
    data = tables.shipped_task("order")
    found = bag_of_words(data, seed=0).argmax(-1)
    assert (found == data.indices("test")).mean() == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_table_is_read_with_any_of_three_delimiters(delimiter):
    table = tables.read_table(GOOD.replace(",", delimiter).encode())
    assert table.columns == ("text", "label")
    data = tables.split_chosen(tables.choose_columns(table, "text", "label", TOKENIZER))
    assert data.labels == ("no", "yes")
    assert (len(data.train), len(data.test)) == (14, 6)


@pytest.mark.parametrize(("first", "lacks"), [("text,label", False), ("a fine thing,yes", True),
                                              ("a poor thing, no ", True), ("yes,kind", False)])
def test_a_header_that_may_be_an_example_is_found(first, lacks):
    table = tables.read_table(GOOD.replace("text,label", first).encode())
    assert tables.lacks_header(table.columns[1], tables.choose_columns(table, *table.columns, TOKENIZER)) == lacks


def test_bad_rows_are_listed_with_their_line_and_reason():
    text = GOOD + "only one cell\n,yes\nno label,\na good thing 1,yes\n" + "x" * 500 + ",yes\n"
    chosen = tables.choose_columns(tables.read_table(text.encode()), "text", "label", TOKENIZER)
    assert [row.line for row in chosen.bad] == [22, 23, 24, 25, 26]
    reasons = " | ".join(row.why for row in chosen.bad)
    for word in ("1 cell,", "no text", "no label", "the same text again", "500 characters"):
        assert word in reasons


def test_a_text_that_the_model_reads_as_it_reads_another_is_left_out():
    text = ("t,l\nA good day,yes\nA  good day ,yes\nA GOOD DAY,no\nStraße,no\nSTRASSE,no\na good day!,no\n"
            "The café is open,no\nThe cafe is open,no\nthe cafe\u0301 is open,yes\na good day !,no\n"
            "wow \U0001f600,no\nwow \U0001f621,yes\n")
    chosen = tables.choose_columns(tables.read_table(text.encode()), "t", "l", TOKENIZER)
    assert [row.text for row in chosen.rows] == [
        "A good day", "Straße", "STRASSE", "a good day!", "The café is open", "wow \U0001f600"]
    assert chosen.bad == (
        (3, "the same text again"), (4, "the model reads it as it reads line 2, with another label"),
        (9, "the model reads it as it reads line 8"), (10, "the model reads it as it reads line 8, with another label"),
        (11, "the model reads it as it reads line 7"),
        (13, "the model reads it as it reads line 12, with another label"))
    assert chosen.counts == {"no": 5, "yes": 1}


def test_texts_that_are_the_same_as_far_as_a_run_reads_are_the_same():
    rows = [f"{'a ' * (tables.MAX_PIECES - 3 + longer)}{end},yes" for longer in (0, 1) for end in ("b", "c")]
    chosen = tables.choose_columns(tables.read_table("\n".join(["t,l", *rows]).encode()), "t", "l", TOKENIZER)
    assert [row.line for row in chosen.bad] == [5]


def test_nothing_that_the_model_reads_stands_on_both_sides_of_an_own_split():
    turns = (str, str.upper, lambda text: text.replace("e", "é"))
    rows = [f"{turn(f'text number {n}')},{'yes' if n % 2 else 'no'}" for n in range(20) for turn in turns]
    table = tables.read_table("\n".join(["t,l", *rows]).encode())
    data = tables.split_chosen(tables.choose_columns(table, "t", "l", TOKENIZER))
    train, test = ({tables.read_pieces(TOKENIZER, text) for text in data.texts(part)} for part in ("train", "test"))
    assert not train & test
    assert len(train) + len(test) == 20


@pytest.mark.parametrize("letter", ["x", "漢"])
def test_rows_beyond_the_text_that_fits_a_run_are_left_out(letter):
    text = "t,l\n" + "".join(f"{n} {letter * 390},{n % 2}\n" for n in range(800))
    chosen = tables.choose_columns(tables.read_table(text.encode()), "t", "l", TOKENIZER)
    read = sum(len(row.text.encode()) for row in chosen.rows)
    assert tables.MAX_READ - 1300 < read <= tables.MAX_READ
    assert len(chosen.rows) + len(chosen.bad) == 800
    assert {row.why for row in chosen.bad} == {"beyond the 160 kB of text that are taken"}


@pytest.mark.parametrize(("data", "says"), [
    (b"", "header"), (b"text,label\n", "header"), (b"\xff\xfe\x00a", "UTF-8"), (b"a\0b", "no text"),
    (b"one column\nx\n", "has 1 column;"), (b"x" * (2**20 + 1), "at most"),
    ((",".join("abc" * 20) + "\n" + "," * 59 + "a\n").encode(), "columns"),
])
def test_a_table_that_is_none_is_refused_in_one_line(data, says):
    with pytest.raises(ValueError, match=says) as problem:
        tables.read_table(data)
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize(("text", "says"), [
    ("t,l\n" + "a,yes\nb,yes\nc,yes\nd,yes\n", "has 1 class;"),
    ("t,l\n" + "".join(f"a{n},yes\n" for n in range(9)) + "b,no\n", "at least"),
    ("t,l\n" + "".join(f"a{n},class {n}\n" for n in range(30)), "classes"),
    ('t,l\n"a,yes\n' + "b,no\n" * 9, r"0 classes.*\(1 left out, the first in line 2: .* quote that opens here"),
])
def test_a_label_column_must_be_one(text, says):
    chosen = tables.choose_columns(tables.read_table(text.encode()), "t", "l", TOKENIZER)
    with pytest.raises(ValueError, match=says):
        tables.split_chosen(chosen)


def test_rows_survive_the_trip_to_the_trainer():
    table = tables.read_table(f't,l\n"tab\there, and <b>",x\n{GOOD[11:]}'.encode())
    chosen = tables.choose_columns(table, "t", "l", TOKENIZER)
    assert "tab here, and <b>" in [row.text for row in chosen.rows]
    assert tables.read_rows(tables.write_rows(chosen.rows)) == chosen.rows


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.binary(max_size=400), st.text(max_size=400).map(lambda text: text.encode("utf-8", "replace"))))
def test_any_bytes_are_a_table_or_a_value_error(data):
    with contextlib.suppress(ValueError):
        table = tables.read_table(data)
        assert len(table.columns) >= 2
        chosen = tables.choose_columns(table, table.columns[0], table.columns[1], TOKENIZER)
        assert sum(chosen.counts.values()) == len(chosen.rows)
        assert len(tables.split_chosen(chosen).labels) >= 2


def test_a_stray_quote_between_tabs_swallows_no_line():
    rows = [f"sentence {n}\tneg" for n in range(60)]
    rows[20] = '"Oh no, said he.\tneg'
    table = tables.read_table("\n".join(["text\tlabel", *rows]).encode())
    assert (len(table.rows), table.bad) == (60, ())
    assert table.rows[20] == (22, ('"Oh no, said he.', "neg"))


def test_a_quote_that_takes_lines_is_said_where_it_opens():
    table = tables.read_table(b'text,label\none,a\n"two,b\nthree,a\nfour,b\n')
    assert [row for _, row in table.rows] == [("one", "a")]
    (bad,) = table.bad
    assert bad.line == 3
    assert "a quote that opens here takes 3 lines" in bad.why


@pytest.mark.parametrize("data", [b'"text; or; more; words",label\none; two,a\nthree,b\n',
                                  b"text,label\rone; two; three,a\rfour,b\r"])
def test_delimiters_in_quotes_or_after_other_line_ends_do_not_count(data):
    table = tables.read_table(data)
    assert len(table.columns) == 2
    assert [row[1] for _, row in table.rows] == ["a", "b"]


def test_a_header_of_one_endless_cell_is_one_line():
    with pytest.raises(ValueError, match="line 1 can't be read as CSV"):
        tables.read_table(b"x" * 200_000 + b",label\none,a\n")


@pytest.mark.parametrize(("header", "columns"), [
    ("a (2),a,a", ("a (2)", "a", "a (3)")), ("a,a,a (2)", ("a", "a (3)", "a (2)")), ("a,a,a", ("a", "a (2)", "a (3)")),
    (",column 1,", ("column 1", "column 1 (2)", "column 3")),
])
def test_every_column_has_a_name_of_its_own(header, columns):
    table = tables.read_table(f"{header}\none,two,three\n".encode())
    assert table.columns == columns


@pytest.mark.parametrize(("line", "delimiter"), [("sep=;", ";"), ("SEP=,", ","), ('"sep=;"', ";"), ("sep=\t", "\t"),
                                                 ("\ufeffsep=;", ";"), ("sep=|", "|")])
def test_excels_line_about_the_separator_is_no_header(line, delimiter):
    rows = ["text, or words", "one, two", "three"], ["label", "a", "b"]
    quoted = "\r\n".join(f'"{text}"{delimiter}{label}' for text, label in zip(*rows, strict=True))
    table = tables.read_table(f"{line}\r\n{quoted}\r\n".encode())
    assert table.columns == ("text, or words", "label")
    assert table.rows == ((3, ("one, two", "a")), (4, ("three", "b")))


def test_a_table_whose_first_column_is_called_sep_is_one():
    table = tables.read_table(b"sep=,label\none,a\n")
    assert (table.columns, len(table.rows)) == (("sep=", "label"), 1)


@pytest.mark.parametrize(("header", "end", "columns"), [
    ("text;label;;", ";;", ("text", "label")), ("text;label", ";;", ("text", "label")),
    ("text;label;;", "", ("text", "label")), ("text;label;;", ";;x", ("text", "label", "column 3", "column 4")),
])
def test_empty_cells_that_a_spreadsheet_leaves_behind_make_no_column_and_spoil_no_row(header, end, columns):
    rows = "".join(f"number {n};{'ab'[n % 2]}{end}\n" for n in range(8))
    table = tables.read_table(f"{header}\n{rows}number 8;{';' * (len(columns) - 2)}\n".encode())
    assert table.columns == columns
    assert (len(table.rows), table.bad) == (9, ())
    assert [row.why for row in tables.choose_columns(table, "text", "label", TOKENIZER).bad] == ["no label"]


def test_a_cell_beyond_the_header_is_still_said():
    table = tables.read_table(b"text,label\none,a,surplus\ntwo,b,\n")
    assert [row for _, row in table.rows] == [("two", "b")]
    assert table.bad[0].why == "3 cells, the header has 2"


@pytest.mark.parametrize(("header", "columns"), [
    ("id,text,label", ("text", "label")), ("label,text", ("text", "label")), ("text,label,year", ("text", "label")),
    ("text,id,label,empty", ("text", "label")),
])
def test_a_table_opens_with_the_columns_that_look_like_texts_and_labels(header, columns):
    def cell(name: str, n: int) -> str:
        cells = {"id": str(n), "text": f"a sentence, number {n}", "label": "ab"[n % 2], "year": "2024", "empty": ""}
        return cells[name]

    names = header.split(",")
    rows = "".join(",".join(f'"{cell(name, n)}"' for name in names) + "\n" for n in range(9))
    table = tables.read_table(f"{header}\n{rows}".encode())
    text, label = tables.likely_columns(table)
    assert (table.columns[text], table.columns[label]) == columns


def test_a_table_without_a_good_row_still_opens():
    table = tables.read_table(b"text,label\none cell\n")
    assert set(tables.likely_columns(table)) == {0, 1}


@pytest.mark.parametrize("row", ["x", "x,y"])
def test_half_a_million_short_rows_are_not_read_to_their_end(row):
    data = b"text,label\n" + f"{row}\n".encode() * (990_000 // (len(row) + 1))
    began = time.process_time()
    with pytest.raises(ValueError, match="more than 20,000 rows; at most 2,000"):
        tables.read_table(data)
    assert time.process_time() - began < 1.0


@pytest.mark.parametrize(("labels", "ordered"), [
    (["10", "1", "2"], ("1", "2", "10")), (["0.5", "-1", "+3"], ("-1", "0.5", "+3")), (["1", "01"], ("01", "1")),
    (["no", "yes", "10"], ("10", "no", "yes")), (["nan", "2", "10"], ("10", "2", "nan")),
])
def test_classes_that_are_numbers_stand_by_their_size(labels, ordered):
    rows = [tables.Labelled(f"text {label}", label) for label in labels]
    assert tables.dataset("own", rows, rows).labels == ordered

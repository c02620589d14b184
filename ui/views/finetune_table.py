"""A visitor's own labelled table: columns chosen, classes found, bad rows listed."""

from __future__ import annotations

import zlib

import streamlit as st

from bert_core.training.live import tables
from bert_core.training.live.specs import FinetuneSpec
from ui import notices, rooms, state, uploads
from ui import tables as html_tables

TEACHERS = "This is your teacher's table; the picture comes with your teacher's training."
#: Rows listed that were left out.
SHOWN_BAD = 100


def upload() -> dict[str, str]:
    """The files of a run on an uploaded table; empty while there is none that can be used, and for who follows a room.
    """
    if rooms.following() is not None:
        notices.note(TEACHERS)
        return {}
    refused = uploads.why_not()
    file = st.file_uploader(
        "A CSV or TSV with a header line: one column of texts, one of labels", type=["csv", "tsv", "txt"],
        key="own_table", disabled=bool(refused), max_upload_size=tables.MAX_BYTES // 2**20,
        help=f"UTF-8, at most {tables.MAX_BYTES // 2**20} MB, {tables.MAX_ROWS:,} rows, texts of {tables.MAX_TEXT} "
        f"characters and {tables.MAX_READ // 1000} kB in all, {tables.MIN_CLASSES} to "
        f"{tables.MAX_CLASSES} classes with at least {tables.MIN_EACH} rows each.")
    if refused:
        notices.problem(refused)
        return {}
    if file is None:
        notices.note(f"Choose a table: at most {tables.MAX_ROWS:,} rows, and {tables.MAX_READ // 1000} kB of text in "
                     f"all, {tables.MAX_READ // 100:,} sentences of 100 letters, so that a run fits its time. It stays "
                     "on this server while you are here and is removed afterwards.")
        return {}
    try:
        raw = file.getvalue()
        return chosen_files(tables.read_table(raw), zlib.crc32(raw))
    except ValueError as problem:
        notices.problem(f"This table can't be used: {problem}.")
        return {}


def chosen_files(table: tables.Table, file: int) -> dict[str, str]:
    """Ask for the columns, say what was found, and split.

    Args:
        file: number of it; what was chosen of another one, whose columns may have the same names, is not meant here.

    Raises:
        ValueError: the columns hold no task.
    """
    first, second = st.columns(2)
    texts, labels = tables.likely_columns(table)
    text = first.selectbox("Column of texts", table.columns, index=texts, key=f"column_text_{file}")
    label = second.selectbox("Column of labels", table.columns, index=labels, key=f"column_label_{file}")
    chosen = tables.choose_columns(table, text, label, state.loaded(FinetuneSpec.base).tokenizer)
    if tables.lacks_header(label, chosen):
        notices.note("The first line was read as the header. If it is a sentence with its label, add a header line.")
    data = tables.split_chosen(chosen)
    counts = ", ".join(f"{name}: {count}" for name, count in chosen.counts.items())
    notices.note(f"{len(chosen.rows):,} rows in {len(chosen.counts)} classes ({counts}); {len(data.train):,} to learn "
                 f"from, {len(data.test):,} for the test; {len(chosen.bad)} left out.")
    if chosen.bad:
        with st.expander(f"Rows that were left out: {len(chosen.bad)}"):
            st.html(html_tables.table("Rows that were left out", ("line", "why"),
                                      [(str(row.line), row.why) for row in chosen.bad[:SHOWN_BAD]], numbers=(0,)))
            if len(chosen.bad) > SHOWN_BAD:
                st.caption(f"The first {SHOWN_BAD} of {len(chosen.bad):,}.")
    return {"train.tsv": tables.write_rows(data.train), "test.tsv": tables.write_rows(data.test)}

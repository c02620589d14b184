"""Labelled sentences: the shipped tasks, and a visitor's own CSV or TSV."""

from __future__ import annotations

import csv
import io
import itertools
import re
import tomllib
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bert_core.counting import counted
from bert_core.tokenizer import Tokenizer
from bert_core.training.live.text import decode_text
from bert_core.training.live.world import TEACHING

#: Bounds of an upload.
MAX_BYTES, MAX_ROWS, MAX_COLUMNS = 2**20, 2000, 30
MAX_TEXT, MAX_LABEL, MIN_EACH = 400, 40, 4
#: Most pieces of a sentence that a run reads, specials included.
MAX_PIECES = 96
#: Rows after which a file is not read on: half a million short ones would take seconds at each run of the page.
READ_ROWS = 10 * MAX_ROWS
#: UTF-8 bytes of all texts taken from an upload, so that four epochs fit the trainer's time (`specs.MAX_WORK_SECONDS`):
#: about 40,000 pieces, at 4 ms each for learning and looking.
MAX_READ = 160_000
MIN_CLASSES, MAX_CLASSES = 2, 8
#: The line by which Excel is told what parts the cells.
_SEPARATOR = re.compile(r'"?sep=([^\w\s"]|\t)"?\n', re.IGNORECASE)
#: A label that is a number.
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
#: Share of an upload that is kept for the test.
TEST_SHARE = 0.3


class Labelled(NamedTuple):
    """One example."""

    text: str
    label: str


class BadRow(NamedTuple):
    """A row of an upload that can't be used."""

    line: int
    why: str


@dataclass(frozen=True)
class Dataset:
    """A task's examples, those to learn from and those to be tested on.

    Attributes:
        labels: class names in their order (`in_order`); an example's class is its index.
    """

    name: str
    labels: tuple[str, ...]
    train: tuple[Labelled, ...]
    test: tuple[Labelled, ...]

    def indices(self, part: str) -> np.ndarray:
        """(n,) class index of each example of 'train' or 'test'."""
        return np.array([self.labels.index(row.label) for row in getattr(self, part)])

    def texts(self, part: str) -> list[str]:
        """The sentences of 'train' or 'test'."""
        return [row.text for row in getattr(self, part)]


@dataclass(frozen=True)
class Table:
    """An upload before columns are chosen."""

    columns: tuple[str, ...]
    rows: tuple[tuple[int, tuple[str, ...]], ...]  # (line, cells)
    bad: tuple[BadRow, ...]


@dataclass(frozen=True)
class Chosen:
    """An upload with its columns chosen.

    Attributes:
        counts: class -> number of usable rows, commonest first.
        bad: rows left out, and why.
    """

    rows: tuple[Labelled, ...]
    counts: dict[str, int]
    bad: tuple[BadRow, ...]


# --- shipped -----------------------------------------------------------------


def task_words() -> dict[str, dict[str, str]]:
    """Name -> title, question, example, note of each shipped task."""
    return tomllib.loads((TEACHING / "tasks.toml").read_text(encoding="utf-8"))


def shipped_task(name: str) -> Dataset:
    """One of the shipped tasks."""
    return dataset(name, *(read_rows((TEACHING / f"{name}_{part}.tsv").read_text(encoding="utf-8"))
                           for part in ("train", "test")))


def read_rows(text: str) -> tuple[Labelled, ...]:
    """Rows of a two-column TSV that this project wrote."""
    return tuple(Labelled(*line.split("\t")) for line in text.splitlines()[1:] if line)


def write_rows(rows: Sequence[Labelled]) -> str:
    """The TSV that `read_rows` reads."""
    return "text\tlabel\n" + "".join(f"{row.text}\t{row.label}\n" for row in rows)


def dataset(name: str, train: Sequence[Labelled], test: Sequence[Labelled]) -> Dataset:
    """Join the two parts; the labels are those that occur."""
    labels = in_order({row.label for row in (*train, *test)})
    return Dataset(name, labels, tuple(train), tuple(test))


def in_order(labels: Collection[str]) -> tuple[str, ...]:
    """Numbers by their size (1, 2, 10) where all are numbers, else by their letters."""
    numbers = all(map(_NUMBER.fullmatch, labels))
    return tuple(sorted(labels, key=lambda label: (float(label) if numbers else 0.0, label)))


# --- uploads -----------------------------------------------------------------


def read_table(data: bytes) -> Table:
    """Read a CSV or TSV with a header line.

    Raises:
        ValueError: too large, no text, or no header; the message says what to do.
    """
    if len(data) > MAX_BYTES:
        raise ValueError(f"the file has {len(data):,} bytes; at most {MAX_BYTES:,} are taken")
    found = _trimmed(_rows(decode_text(data, "CSV").replace("\r\n", "\n").replace("\r", "\n")))
    if len(found) < 2:
        raise ValueError("the file needs a header line and rows below it")
    columns = tuple(cell.strip() or f"column {n + 1}" for n, cell in enumerate(found[0].cells))
    if not 2 <= len(columns) <= MAX_COLUMNS:
        raise ValueError(f"the header has {counted(len(columns), 'column')}; 2 to {MAX_COLUMNS} are taken, "
                         "separated by comma, semicolon or tab")
    good = tuple((row.line, row.cells) for row in found[1:] if len(row.cells) == len(columns))
    bad = tuple(BadRow(row.line, f"{counted(len(row.cells), 'cell')}, the header has {len(columns)}" + (
        f"; a quote that opens here takes {row.lines} lines" if row.lines > 1 else ""))
        for row in found[1:] if len(row.cells) != len(columns))
    return Table(_distinct(columns), good, bad)


class _Row(NamedTuple):
    """A row of the file: the line where it begins, how many it takes, and its cells."""

    line: int
    lines: int
    cells: tuple[str, ...]


def _rows(text: str) -> list[_Row]:
    """The rows that aren't empty, lines ended by a newline.

    Between tabs a quote is a sign like any other where it would swallow a line.
    """
    said = _SEPARATOR.match(text)
    if said:
        text = text[said.end() - 1:]  # with its line's end, so that lines keep their numbers
    delimiter = said[1] if said else _delimiter(text)
    rows = _parsed(text, delimiter)
    return _parsed(text, delimiter, csv.QUOTE_NONE) if delimiter == "\t" and any(r.lines > 1 for r in rows) else rows


def _trimmed(rows: list[_Row]) -> list[_Row]:
    """Without the empty cells that a spreadsheet leaves at the ends of rows, in all of them or beyond the header."""
    width = max((_filled(row.cells[: len(rows[0].cells)]) for row in rows), default=0)
    return [row._replace(cells=row.cells[: max(width, _filled(row.cells))]) for row in rows]


def _filled(cells: tuple[str, ...]) -> int:
    """How many cells there are up to the last that holds something."""
    return max((n for n, cell in enumerate(cells, 1) if cell.strip()), default=0)


def _parsed(text: str, delimiter: str, quoting: int = csv.QUOTE_MINIMAL) -> list[_Row]:
    reader, rows, before = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quoting=quoting), [], 0
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                rows.append(_Row(before + 1, reader.line_num - before, tuple(cells)))
            if len(rows) > READ_ROWS:
                raise ValueError(f"the file has more than {READ_ROWS:,} rows; at most {MAX_ROWS:,} are taken")
            before = reader.line_num
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num} can't be read as CSV ({error})") from None
    return rows


def _delimiter(text: str) -> str:
    """The one that cuts the header into the most cells, quotes minded."""
    header = text.split("\n", 1)[0]
    return max("\t,;", key=lambda one: max((len(row.cells) for row in _parsed(header, one)), default=0))


def _distinct(columns: tuple[str, ...]) -> tuple[str, ...]:
    """Each column under a name of its own: a name that is there again gets the next number that no column has."""
    names: list[str] = []
    for column in columns:
        numbered = (f"{column} ({n})" for n in itertools.count(2))
        names.append(column if column not in names else next(
            name for name in numbered if name not in columns and name not in names))
    return tuple(names)


def likely_columns(table: Table) -> tuple[int, int]:
    """Which columns look like the texts and the labels, to begin with.

    Texts: the column with the most letters. Labels: of the others the one with
    the fewest different cells, yet MIN_CLASSES of them; the last of equals.
    """
    columns = range(len(table.columns))
    text = max(columns, key=lambda n: sum(len(cells[n]) for _, cells in table.rows))
    kinds = {n: len({_clean(cells[n]) for _, cells in table.rows} - {""}) for n in columns if n != text}
    return text, min(kinds, key=lambda n: (kinds[n] < MIN_CLASSES, kinds[n], -n))


def read_pieces(tokenizer: Tokenizer, text: str) -> tuple[int, ...]:
    """Piece ids of a text as a run reads them: specials included, cut at MAX_PIECES."""
    ids = tokenizer.encode(text).input_ids
    return ids if len(ids) <= MAX_PIECES else (*ids[: MAX_PIECES - 1], ids[-1])


def choose_columns(table: Table, text: str, label: str, tokenizer: Tokenizer) -> Chosen:
    """Take a text and a label from each row; of texts that are the same to a model, the first.

    Two may be, that differ only by case, accents, spaces or signs that it doesn't know: with one of them to learn from
    the other would be no test.

    Args:
        tokenizer: of the model that is to read them.

    Raises:
        ValueError: unknown or equal columns.
    """
    for column in (text, label):
        if column not in table.columns:
            raise ValueError(f"the file has no column {column!r}; it has {', '.join(table.columns)}")
    if text == label:
        raise ValueError(f"text and label are both {text!r}; choose two columns")
    at, what = table.columns.index(text), table.columns.index(label)
    rows: list[Labelled] = []
    first: dict[str | tuple[int, ...], tuple[int, Labelled]] = {}  # a text, or its pieces -> where they came first
    read, bad = 0, list(table.bad)
    for line, cells in table.rows:
        row = Labelled(_clean(cells[at]), _clean(cells[what]))
        size = len(row.text.encode())
        why = _objection(row) or ("" if row.text in first else _too_much(len(rows), read + size))
        if not why and row.text not in first:
            read += size
            first[row.text] = first.setdefault(read_pieces(tokenizer, row.text), (line, row))
        why = why or _again(line, row, *first[row.text])
        if why:
            bad.append(BadRow(line, why))
        else:
            rows.append(row)
    counts = Counter(row.label for row in rows)
    return Chosen(tuple(rows), dict(counts.most_common()), tuple(sorted(bad)))


def lacks_header(label: str, chosen: Chosen) -> bool:
    """Whether the first line, read as the header, may be an example: the label column has a class for its name."""
    return _clean(label) in chosen.counts


def _clean(cell: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in cell).split())


def _objection(row: Labelled) -> str:
    """Why a row can't be used by itself; empty if it can."""
    if not row.text or not row.label:
        return "no text" if not row.text else "no label"
    if len(row.text) > MAX_TEXT:
        return f"text of {len(row.text)} characters, at most {MAX_TEXT}"
    if len(row.label) > MAX_LABEL:
        return f"label of {len(row.label)} characters, at most {MAX_LABEL}"
    return ""


def _again(line: int, row: Labelled, at: int, first: Labelled) -> str:
    """Why a row is left out that a model reads as it reads the first one `at` a line before; empty if it is that."""
    if line == at:
        return ""
    same = "the same text again" if row.text == first.text else f"the model reads it as it reads line {at}"
    return same if row.label == first.label else f"{same}, with another label"


def _too_much(rows: int, read: int) -> str:
    """Why there is no room for a text that makes it `read` bytes, after so many rows; empty if there is."""
    if rows >= MAX_ROWS:
        return f"beyond the {MAX_ROWS:,} rows that are taken"
    if read > MAX_READ:
        return f"beyond the {MAX_READ // 1000} kB of text that are taken"
    return ""


def split_chosen(chosen: Chosen) -> Dataset:
    """Divide an upload into training and test set, each class in the same shares.

    Raises:
        ValueError: too few or too many classes, or too few rows of one.
    """
    classes = list(chosen.counts)
    if not MIN_CLASSES <= len(classes) <= MAX_CLASSES:
        found = counted(len(classes), "class", "classes")
        raise ValueError(f"the label column has {found}; {MIN_CLASSES} to {MAX_CLASSES} are taken" + _left_out(chosen))
    for name, count in chosen.counts.items():
        if count < MIN_EACH:
            raise ValueError(f"class {name!r} has {counted(count, 'row')}; at least {MIN_EACH} are needed"
                             + _left_out(chosen))
    rng = np.random.default_rng(0)
    train, test = [], []
    for name in classes:
        rows = [row for row in chosen.rows if row.label == name]
        order = rng.permutation(len(rows))
        cut = max(1, round(TEST_SHARE * len(rows)))
        test += [rows[i] for i in order[:cut]]
        train += [rows[i] for i in order[cut:]]
    return dataset("own", train, test)


def _left_out(chosen: Chosen) -> str:
    """What may be the reason that classes or rows are missing: the first row that was left out."""
    if not chosen.bad:
        return ""
    first, count = chosen.bad[0], len(chosen.bad)
    return f" ({count:,} left out, the first in line {first.line}: {first.why})"

"""Readers of the labelled sets: rows out, one clear error for a bad file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from bert_core.training.corpus import read_text

T = TypeVar("T")

#: Where each task lies below a data folder: (training file, held-out file).
PLACES = {
    "mlm": ("", "eval/wikitext2_valid.txt"),
    "clm": ("", "eval/wikitext2_valid.txt"),
    "nsp": ("", "eval/wikitext2_valid.txt"),
    "blimp": ("", "eval/blimp"),
    "sst2": ("tasks/sst2/train.tsv", "tasks/sst2/dev.tsv"),
    "ner": ("tasks/ner/train.tsv", "tasks/ner/dev.tsv"),
    "squad": ("tasks/squad/train-v1.1.json.zst", "tasks/squad/dev-v1.1.json.zst"),
    "stsb": ("tasks/stsb/sts-train.tsv", "tasks/stsb/sts-dev.tsv"),
    "cola": ("tasks/cola/train.tsv", "tasks/cola/dev.tsv"),
}


class Labelled(NamedTuple):
    """A sentence and its class (SST-2, CoLA)."""

    text: str
    label: int


class TaggedWords(NamedTuple):
    """A sentence as words, with one IOB2 tag a word."""

    words: tuple[str, ...]
    tags: tuple[str, ...]


class Question(NamedTuple):
    """A SQuAD question; `answers` are (text, start) with start in code points."""

    id: str
    question: str
    context: str
    answers: tuple[tuple[str, int], ...]


class SentencePair(NamedTuple):
    """Two sentences and how alike people found them, 0 to 5."""

    first: str
    second: str
    score: float


class MinimalPair(NamedTuple):
    """A sentence and one that breaks one rule of grammar."""

    good: str
    bad: str
    rule: str


class Gap(NamedTuple):
    """A sentence with one [MASK], and the words that people accept there."""

    text: str
    accept: frozenset[str]


def find(data: str | Path, task: str, training: bool = False) -> Path:
    """A task's file: below a data folder, in the task's own folder, or `data` itself where it is that file.

    Raises:
        ValueError: none of these is there.
    """
    data, place = Path(data), Path(PLACES[task][0 if training else 1])
    for n in range(len(place.parts)):
        below = data.joinpath(*place.parts[n:])
        if below.exists():
            return below
    if data.is_file() or (task == "blimp" and data.is_dir() and any(data.glob("*.jsonl"))):
        return data
    raise ValueError(f"--data {str(data)!r}: {PLACES[task][0 if training else 1]} is not there")


@contextmanager
def reading(path: Path, what: str, line: int | None = None) -> Iterator[None]:
    """ValueError with one line where a file, or a line of it, turns out to be of another form than `what`."""
    try:
        yield
    except (LookupError, TypeError, AttributeError, ValueError, OverflowError, RecursionError) as error:
        where = path.name if line is None else f"{path.name}, line {line},"
        raise ValueError(f"{where} is not in the form of {what} ({type(error).__name__}: {error})") from None


def every(rows: Sequence[T], limit: int | None, path: Path) -> list[T]:
    """At most `limit` rows, evenly spaced, so that a sample needs no seed.

    Raises:
        ValueError: `path`, where they come from, holds none.
    """
    if not rows:
        raise ValueError(f"nothing to score in {str(path)!r}")
    if limit is None or limit >= len(rows):
        return list(rows)
    return [rows[int(i)] for i in np.linspace(0, len(rows) - 1, max(1, limit))]


def read_paragraphs(path: Path) -> list[str]:
    """One paragraph a line, blank lines left out."""
    return [line.strip() for line in read_text(path).split("\n") if line.strip()]


def read_sst2(path: Path) -> list[Labelled]:
    """A sentence and 0 or 1 a line; the first line is a header unless it has such a label too."""
    rows = [line.split("\t") for line in read_text(path).split("\n") if line.strip()]
    if rows and rows[0][1:2] not in (["0"], ["1"]):
        del rows[0]
    return [Labelled(_field(row, 0, path).strip(), _class(row, path)) for row in rows]


def read_cola(path: Path) -> list[Labelled]:
    rows = [line.split("\t") for line in read_text(path).split("\n") if line.strip()]
    return [Labelled(_field(row, 3, path), _class(row, path)) for row in rows]


def read_stsb(path: Path) -> list[SentencePair]:
    rows = [line.split("\t") for line in read_text(path).split("\n") if line.strip()]
    return [SentencePair(_field(r, 5, path), _field(r, 6, path), _score(r, path)) for r in rows]


def _score(row: Sequence[str], path: Path) -> float:
    """How alike two sentences are, in a line's fifth column."""
    value = _field(row, 4, path)
    with suppress(ValueError):
        if 0 <= (score := float(value)) <= 5:
            return score
    raise ValueError(f"{path.name}: the score of a line is {value[:40]!r}; it must be a number from 0 to 5: "
                     f"{' '.join(row)[:60]!r}")


def _class(row: Sequence[str], path: Path) -> int:
    """Of two, in a line's second column."""
    value = _field(row, 1, path).strip()
    if value not in ("0", "1"):
        raise ValueError(f"{path.name}: the label of a line is {value[:40]!r}; it must be 0 or 1: "
                         f"{' '.join(row)[:60]!r}")
    return int(value)


def _field(row: Sequence[str], index: int, path: Path) -> str:
    if index >= len(row):
        raise ValueError(f"{path.name}: a line has {len(row)} columns, {index + 1} are needed: {' '.join(row)[:60]!r}")
    return row[index]


def read_ner(path: Path) -> list[TaggedWords]:
    """Word TAB tag a line, a blank line between sentences.

    Raises:
        ValueError: a line has no tag, or one that isn't IOB2's (O, B-KIND, I-KIND).
    """
    sentences = []
    for block in re.split(r"\n[ \t]*\n", read_text(path).strip("\n")):
        pairs = [line.split("\t") for line in block.split("\n") if line.strip()]
        if pairs:
            sentences.append(TaggedWords(tuple(_field(p, 0, path) for p in pairs),
                                         tuple(_tag(p, path) for p in pairs)))
    return sentences


def _tag(row: Sequence[str], path: Path) -> str:
    tag = _field(row, 1, path)
    if not re.fullmatch(r"O|[BI]-\S+", tag):
        raise ValueError(f"{path.name}: {tag[:40]!r} is no IOB2 tag (O, B-KIND or I-KIND)")
    return tag


def read_squad(path: Path) -> list[Question]:
    """SQuAD 1.1 (Rajpurkar et al. 2016, arXiv 1606.05250)."""
    text = read_text(path)
    with reading(path, "SQuAD 1.1"):
        found = [Question(qa["id"], _words(qa["question"]), _words(paragraph["context"]),
                          tuple((_words(answer["text"]), int(answer["answer_start"])) for answer in qa["answers"]))
                 for article in json.loads(text)["data"]
                 for paragraph in article["paragraphs"] for qa in paragraph["qas"]]
    if not all(question.answers for question in found):
        raise ValueError(f"{path.name} has questions without an answer; SQuAD 1.1 has none of these")
    for question in found:
        for text, start in question.answers:
            if start < 0 or not question.context.startswith(text, start):
                raise ValueError(f"{path.name}, question {question.id!r}: its context has {text[:40]!r} not at "
                                 f"answer_start {start}, which counts characters from 0")
    return found


def _words(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a text is {repr(value)[:60]}")
    return value


def read_blimp(folder: Path, per_rule: int | None = None) -> list[MinimalPair]:
    """Every .jsonl of a folder (Warstadt et al. 2020, arXiv 1912.00582); at most `per_rule` of each."""
    files = sorted(folder.glob("*.jsonl")) if folder.is_dir() else [folder]
    pairs = []
    for file in files:
        lines = [(number, line) for number, line in enumerate(read_text(file).split("\n"), start=1) if line.strip()]
        pairs += [_minimal_pair(number, line, file) for number, line in every(lines, per_rule, file)]
    return pairs


def _minimal_pair(number: int, line: str, file: Path) -> MinimalPair:
    with reading(file, "BLiMP", number):
        row = json.loads(line)
        return MinimalPair(_words(row["sentence_good"]), _words(row["sentence_bad"]), file.stem)


def read_cloze(path: Path) -> list[Gap]:
    """The items of a cloze file, such as the shipped assets/examples/cloze.json."""
    text = read_text(path)
    with reading(path, "cloze items"):
        return [Gap(_words(item["text"]), frozenset(item["accept"])) for item in json.loads(text)["items"]]

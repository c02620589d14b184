"""Readers of labelled files: Windows' line ends, and what is not in a file's form, in one line."""

import json

import pytest
import zstandard

from bert_core.training import datasets
from bert_core.training.corpus import read_text

NER = "Anna\tB-PER\nsings\tO\n\nBen\tB-PER\nLee\tI-PER\n"


def squad(**changes) -> str:
    """A file of one question, some of whose fields are others."""
    asked = {"id": "1", "question": "who?", "answers": [{"text": "dog", "answer_start": 2}], "context": "A dog.",
             **changes}
    return json.dumps({"data": [{"paragraphs": [{"context": asked.pop("context"), "qas": [asked]}]}]})


@pytest.mark.parametrize("text", [NER, NER.replace("\n", "\r\n"), NER.replace("\n\n", "\n \n")])
def test_entities_are_read_whatever_ends_a_line(tmp_path, text):
    (tmp_path / "ner.tsv").write_bytes(text.encode())
    assert datasets.read_ner(tmp_path / "ner.tsv") == [
        (("Anna", "sings"), ("B-PER", "O")), (("Ben", "Lee"), ("B-PER", "I-PER"))]


@pytest.mark.parametrize(("reader", "text", "says"), [
    (datasets.read_ner, "Anna\tPER\n", "'PER' is no IOB2 tag"),
    (datasets.read_sst2, "sentence\tlabel\nfine\t2\n", "must be 0 or 1"),
    (datasets.read_sst2, "sentence\tlabel\nfine\t-1\n", "must be 0 or 1"),
    (datasets.read_cola, "x\tgood\t\tA sentence.\n", "must be 0 or 1"),
    (datasets.read_stsb, "a\tb\tc\t1\tfive\tOne.\tTwo.\n", "'five'; it must be a number from 0 to 5: 'a b"),
    (datasets.read_stsb, "a\tb\tc\t1\tnan\tOne.\tTwo.\n", "must be a number"),
    (datasets.read_stsb, "a\tb\tc\t1\t5.2\tOne.\tTwo.\n", "must be a number from 0 to 5"),
    (datasets.read_squad, squad(question=7), "not in the form of SQuAD 1.1"),
    (datasets.read_squad, squad(context=["A dog."]), "not in the form of SQuAD 1.1"),
    (datasets.read_squad, squad(answers=[{"text": None, "answer_start": 0}]), "not in the form of SQuAD 1.1"),
    (datasets.read_squad, squad(answers=[{"text": "dog", "answer_start": "x"}]), "not in the form of SQuAD 1.1"),
    (datasets.read_squad, squad(answers=[{"text": "dog", "answer_start": float("inf")}]), "not in the form of SQuAD"),
    (datasets.read_squad, squad(answers=[{"text": "dog", "answer_start": 1}]), "'1': .* not at answer_start 1"),
    (datasets.read_squad, squad(answers=[{"text": "dog", "answer_start": -4}]), "not at answer_start -4"),
    (datasets.read_squad, "[" * 100_000, "not in the form of SQuAD 1.1"),
    (datasets.read_squad, "{", "not in the form of SQuAD 1.1"),
    (datasets.read_cloze, "{", "not in the form of cloze items"),
    (datasets.read_blimp, '\n{"sentence_good": "A.", "sentence_bad": "B."}\n{', "line 3, is not in the form of BLiMP"),
    (datasets.read_blimp, json.dumps({"sentence_good": 7, "sentence_bad": "Bad."}), "not in the form of BLiMP"),
    (datasets.read_cloze, json.dumps({"items": [{"text": 7, "accept": ["a"]}]}), "not in the form of cloze items"),
])
def test_what_is_no_row_is_one_clear_line(tmp_path, reader, text, says):
    file = tmp_path / "rows.jsonl"
    file.write_text(text)
    with pytest.raises(ValueError, match=says) as found:
        reader(file)
    assert "rows.jsonl" in str(found.value)


def test_all_frames_are_unpacked_and_one_that_is_cut_short_is_said(tmp_path):
    one, two = (zstandard.compress((word * 5000).encode()) for word in ("one ", "two "))
    file = tmp_path / "text.txt.zst"
    file.write_bytes(one + two)
    assert read_text(file) == "one " * 5000 + "two " * 5000
    for cut in (one[:-3], one[:10], one + two[:-3]):
        file.write_bytes(cut)
        with pytest.raises(ValueError, match="cut short"):
            read_text(file)


@pytest.mark.parametrize("data", [".", "tasks", "tasks/sst2", "tasks/sst2/dev.tsv"])
def test_a_task_s_rows_are_found_from_any_folder_above_them(tmp_path, data):
    rows = tmp_path / "tasks" / "sst2" / "dev.tsv"
    rows.parent.mkdir(parents=True)
    rows.write_text("sentence\tlabel\n", encoding="utf-8")
    assert datasets.find(tmp_path / data, "sst2").samefile(rows)
    with pytest.raises(ValueError, match=r"tasks/stsb/sts-dev\.tsv is not there"):
        datasets.find(tmp_path / "tasks", "stsb")

"""A corpus as word pieces: the same sentences, whatever stands in the file, and a run that reads it."""

import json
import shutil

import numpy as np
import pytest

from bert_core.cli import main
from bert_core.training import pieces
from bert_core.training.corpus import documents, plain_tokenizer, sentences
from bert_core.training.packing import IS_NEXT, NO_PAIR, Lengths, pack, vocabulary_digest
from tests.checkpoints import wordpiece
from tests.training import tiny


@pytest.fixture(scope="module")
def made() -> pieces.Pieces:
    return pieces.tokenised(tiny.documents(), wordpiece(), "a digest")


def sentence(source: pieces.Pieces, number: int) -> list[int]:
    return source.ids[source.sentences[number] : source.sentences[number + 1]].tolist()


def test_every_sentence_is_there_as_the_tokenizer_has_it(made):
    want = [[wordpiece().encode(s, add_special_tokens=False).ids for s in sentences(doc)] for doc in tiny.documents()]
    assert len(made) == len(want)
    assert np.diff(made.documents).tolist() == [len(doc) for doc in want]
    assert [sentence(made, n) for n in range(len(made.sentences) - 1)] == [ids for doc in want for ids in doc]
    assert made.tokens == sum(len(ids) for doc in want for ids in doc)


def test_a_document_without_pieces_is_left_out():
    found = pieces.tokenised(["", "A cat slept.", "\n\n"], wordpiece(), "a digest")
    assert len(found) == 1
    assert len(pieces.tokenised([], wordpiece(), "a digest")) == 0


def test_a_limit_ends_with_a_whole_document(made):
    found = pieces.tokenised(tiny.documents(), wordpiece(), "a digest", limit=made.tokens // 2)
    assert made.tokens // 2 <= found.tokens < made.tokens
    assert found.ids.tolist() == made.ids[: found.tokens].tolist()
    assert found.documents.tolist() == made.documents[: len(found) + 1].tolist()


def test_what_is_saved_is_read(made, tmp_path):
    made.save(tmp_path / "stories.pieces")
    again = pieces.read(tmp_path / "stories.pieces")
    for name in ("ids", "sentences", "documents"):
        assert getattr(again, name).tolist() == getattr(made, name).tolist(), name
    assert (again.ids.dtype, again.vocabulary) == (made.ids.dtype, "a digest")


def test_a_large_vocabulary_keeps_its_ids(tmp_path):
    ids = np.array([70_000, 3, 70_000, 131_071, 65_536], dtype=np.int32)
    pieces.Pieces(ids, np.array([0, 2, 5]), np.array([0, 2]), "a digest").save(tmp_path / "wide.pieces")
    assert pieces.read(tmp_path / "wide.pieces").ids.tolist() == ids.tolist()


@pytest.mark.parametrize("damage", ["cut", "text", "sentences"])
def test_a_damaged_file_is_said(made, tmp_path, damage):
    path = tmp_path / "stories.pieces"
    short = pieces.Pieces(made.ids, made.sentences[:-1], made.documents, "") if damage == "sentences" else made
    short.save(path)
    if damage != "sentences":
        path.write_bytes(path.read_bytes()[:200] if damage == "cut" else b"A cat slept.")
    with pytest.raises(ValueError, match=r"stories\.pieces (holds no word pieces|is damaged)"):
        pieces.read(path)


def test_a_stretch_is_some_of_a_documents_sentences(made):
    rng = np.random.default_rng(1)
    whole = [sentence(made, n) for n in range(made.documents[4], made.documents[5])]
    starts = set()
    for _ in range(200):
        found = made.stretch(4, 20, rng)
        at = next(n for n in range(len(whole)) if whole[n : n + len(found)] == found)
        starts.add(at)
        assert sum(map(len, found)) >= 20
        assert sum(map(len, found[:-1])) < 20
    last_start = max(n for n in range(len(whole)) if sum(map(len, whole[n:])) >= 20)
    assert starts == set(range(last_start + 1))
    assert made.stretch(4, 10_000, rng) == whole


def test_pairs_of_it_tell_the_truth():
    docs = ["\n".join(f"The {a} {b} dog." for b in "abcdefghijklmnopqrst") for a in "uvwxyz0123456789"]
    source = pieces.tokenised(docs, wordpiece(), "a digest")
    place = {tuple(sentence(source, n)): n for n in range(len(source.sentences) - 1)}
    width = len(next(iter(place)))
    packed = pack({"docs": source}, {"docs": 1.0}, wordpiece(), 20_000, Lengths(usual=33), seed=4)
    assert packed.tokens >= 20_000
    labelled = [example for example in (packed[n] for n in range(len(packed))) if example.label != NO_PAIR]
    for example in labelled:
        first, second = example.ids[1 : example.first - 1].tolist(), example.ids[example.first : -1].tolist()
        if len(second) >= width:
            follows = place[tuple(first[-width:])] + 1 == place[tuple(second[:width])]
            assert follows == (example.label == IS_NEXT)
    assert abs(sum(e.label == IS_NEXT for e in labelled) / len(labelled) - 0.5) < 0.1


def test_a_source_without_pieces_is_said():
    empty = pieces.tokenised([], wordpiece(), "a digest")
    with pytest.raises(ValueError, match="no documents in 'docs'"):
        pack({"docs": empty}, {"docs": 1.0}, wordpiece(), 100)


# --- the commands ------------------------------------------------------------


@pytest.fixture(scope="module")
def tokenised(tmp_path_factory):
    """A corpus, and the same as pieces of the shipped tokenizer."""
    folder = tmp_path_factory.mktemp("corpus")
    tiny.corpus(folder / "text")
    assert main(["pieces", "--corpus", str(folder / "text"), "--out", str(folder / "pieces"), "--json"]) == 0
    return folder


def arguments(corpus, out, *more):
    return ["pretrain", "--corpus", str(corpus), "--objective", "mlm", "--init", "twin-bert", "--out", str(out),
            "--tokens", "600", "--pack-tokens", "900", "--step-tokens", "300", "--device", "cpu", "--precision", "fp32",
            *more]


def test_the_command_writes_every_source_and_says_how_much(tokenised, tmp_path, capsys):
    assert main(["pieces", "--corpus", str(tokenised / "text"), "--out", str(tmp_path), "--limit", "stories=40",
                 "--json"]) == 0
    rows = {row["source"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows.keys() == {"lines", "stories"}
    shipped = plain_tokenizer("assets/models/tokenizer.json")
    for name, row in rows.items():
        found = pieces.read(tmp_path / f"{name}.pieces")
        assert (found.tokens, len(found)) == (row["pieces"], row["documents"])
        assert found.vocabulary == vocabulary_digest(shipped)
    lines = documents(tokenised / "text" / "lines.txt")
    assert rows["lines"]["pieces"] == sum(len(shipped.encode(s, add_special_tokens=False).ids) for s in lines)
    assert 40 <= rows["stories"]["pieces"] < pieces.read(tokenised / "pieces" / "stories.pieces").tokens


@pytest.mark.parametrize("limit", ["stories", "stories=0", "stories=x", "poems=5"])
def test_a_limit_that_says_nothing_is_refused(tokenised, tmp_path, capsys, limit):
    assert main(["pieces", "--corpus", str(tokenised / "text"), "--out", str(tmp_path / "out"), "--limit", limit]) == 2
    assert capsys.readouterr().err.strip().endswith("the corpus has lines, stories")
    assert not (tmp_path / "out").exists()


def test_a_run_reads_pieces_where_the_text_is_not_there(tokenised, tmp_path, capsys):
    assert main(arguments(tokenised / "pieces", tmp_path / "run", "--mix", "stories=0.8,lines=0.2")) == 0
    assert (tmp_path / "run" / "model" / "model.safetensors").is_file()
    capsys.readouterr()


def test_pieces_of_another_vocabulary_are_refused(tokenised, tmp_path, capsys):
    shutil.copytree(tokenised / "pieces", tmp_path / "pieces")
    pieces.tokenised(tiny.documents(), wordpiece(), vocabulary_digest(wordpiece())).save(
        tmp_path / "pieces" / "stories.pieces")
    assert main(arguments(tmp_path / "pieces", tmp_path / "run")) == 2
    assert "was tokenised with another vocabulary" in capsys.readouterr().err


def test_no_vocabulary_is_learned_from_pieces(tokenised, tmp_path, capsys):
    run = arguments(tokenised / "pieces", tmp_path / "run", "--layers", "1", "--hidden", "12", "--heads", "3")
    run[run.index("--init") + 1] = "scratch"
    assert main(run) == 2
    assert "no documents in the corpus" in capsys.readouterr().err

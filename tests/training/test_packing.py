"""Corpus folders, sentences, and pairs: whole sentences, honest labels, one seed."""

import time

import numpy as np
import pytest
import zstandard

from bert_core.training import corpus, packing
from bert_core.training.packing import (
    IS_NEXT,
    NO_PAIR,
    NOT_NEXT,
    Lengths,
    Packed,
    _stretch,
    pack,
    unigram_log_frequency,
    vocabulary_digest,
)
from tests.checkpoints import SIZES, wordpiece
from tests.training import tiny

CLS, SEP = 2, 3


def halves(example) -> tuple[list[int], list[int]]:
    return example.ids[1 : example.first - 1].tolist(), example.ids[example.first : -1].tolist()


def long_documents(count: int = 30) -> list[str]:
    """Documents whose every sentence is unlike all others."""
    names = "abcdefghijklmnopqrstuvwxyz0123456789"
    return ["\n".join(f"The {names[d]} {names[s]} dog." for s in range(20)) for d in range(count)]


@pytest.fixture(scope="module")
def pairs() -> Packed:
    return pack({"docs": long_documents()}, {"docs": 1.0}, wordpiece(), 60_000, Lengths(usual=33), seed=4)


def test_every_sequence_is_well_formed(pairs):
    for n in range(0, len(pairs), 7):
        example = pairs[n]
        assert example.ids[0] == CLS
        assert example.ids[-1] == SEP
        assert example.ids[example.first - 1] == SEP
        assert (example.ids == SEP).sum() == (1 if example.label == NO_PAIR else 2)
        assert 12 <= len(example.ids) <= 512 or example.label == NO_PAIR


def test_labels_tell_the_truth(pairs):
    tokenizer = wordpiece()
    place = {}
    for d, doc in enumerate(long_documents()):
        for s, line in enumerate(doc.split("\n")):
            place[tuple(tokenizer.encode(line, add_special_tokens=False).ids)] = (d, s)
    width = len(next(iter(place)))
    same_document = 0
    for n in range(len(pairs)):
        first, second = halves(pairs[n])
        if pairs[n].label == NO_PAIR or len(second) < width:
            continue
        (d, s), (e, t) = place[tuple(first[-width:])], place[tuple(second[:width])]
        assert ((d, s + 1) == (e, t)) == (pairs[n].label == IS_NEXT)
        same_document += pairs[n].label == NOT_NEXT and d == e
    false = int((pairs.label == NOT_NEXT).sum())
    assert abs(same_document - false / 2) < 5 * np.sqrt(false / 4)


def test_no_second_half_is_cut_off_whether_it_follows_or_not():
    """A cut would give a false one away: of the true ones none is cut."""
    docs = [" the dog" * (1 + (d + s) % 9) + " ." for d in range(40) for s in range(12)]
    docs = ["\n".join(line.strip() for line in docs[d * 12 : d * 12 + 12]) for d in range(40)]
    tokenizer = wordpiece()
    packed = pack({"docs": docs}, {"docs": 1.0}, tokenizer, 40_000, Lengths(usual=30, long_share=0.0), seed=2)
    stop = tokenizer.token_to_id(".")
    ends = {label: [halves(packed[n])[1][-1] == stop for n in range(len(packed)) if packed[n].label == label]
            for label in (IS_NEXT, NOT_NEXT)}
    assert min(map(len, ends.values())) > 200
    assert all(map(all, ends.values()))


def test_half_of_the_pairs_are_real(pairs):
    labelled = int((pairs.label != NO_PAIR).sum())
    assert abs(int((pairs.label == IS_NEXT).sum()) - labelled / 2) < 4 * np.sqrt(labelled / 4)


def test_one_seed_one_corpus(tmp_path):
    one, two, other = tiny.packed(seed=1), tiny.packed(seed=1), tiny.packed(seed=2)
    assert one.ids.tolist() == two.ids.tolist()
    assert one.label.tolist() == two.label.tolist()
    assert one.ids.tolist() != other.ids.tolist()
    one.save(tmp_path / "packed.npz")
    again = Packed.load(tmp_path / "packed.npz")
    assert again.ids.tolist() == one.ids.tolist()
    assert again.tokens == one.tokens


def test_a_packed_file_knows_what_it_was_packed_with(tmp_path):
    path, origin = tmp_path / "packed.npz", {"seed": 1, "mix": None}
    made = tiny.packed(seed=1)
    made.save(path, origin)
    assert Packed.load(path, origin).ids.tolist() == Packed.load(path).ids.tolist() == made.ids.tolist()
    with pytest.raises(ValueError, match="with seed 1, not 2"):
        Packed.load(path, origin | {"seed": 2})
    assert Packed.load(path, origin | {"corpus": "a.txt (9 bytes)"}).origin == origin  # what it doesn't say passes
    np.savez(path, ids=made.ids, offsets=made.offsets, first=made.first, label=made.label)  # as older versions wrote it
    assert len(Packed.load(path, origin)) == len(made)
    np.savez(path, ids=made.ids)
    with pytest.raises(ValueError, match="holds no packed pairs"):
        Packed.load(path)


def test_a_vocabularys_digest_is_of_its_pieces():
    assert vocabulary_digest(wordpiece()) == vocabulary_digest(wordpiece(lowercase=False))
    assert vocabulary_digest(wordpiece()) != vocabulary_digest(corpus.train_wordpiece({"a": tiny.documents()}, 150))


@pytest.mark.parametrize("docs", [[], ["\x00\x01"]], ids=["none", "no text"])
def test_a_source_without_text_is_said_and_not_searched_for_ever(docs):
    with pytest.raises(ValueError, match="no documents in 'empty'"):
        pack({"empty": docs, "full": tiny.documents()}, {"empty": 0.1, "full": 0.9}, wordpiece(), 500, tiny.LENGTHS)


def test_the_mix_is_kept():
    texts = {"a": ["we walked home."], "b": ["the dog barked all night."]}
    made = pack(texts, {"a": 0.25, "b": 0.75}, wordpiece(), 40_000, tiny.LENGTHS)
    home = wordpiece().token_to_id("home")
    share = sum(len(made[n].ids) for n in range(len(made)) if home in made[n].ids) / made.tokens
    assert share == pytest.approx(0.25, abs=0.01)


def test_unigram_frequencies_are_a_distribution():
    logs = unigram_log_frequency(tiny.packed(), SIZES["vocab_size"])
    assert np.exp(logs).sum() == pytest.approx(1)
    assert logs[wordpiece().token_to_id("dog")] > logs[wordpiece().token_to_id("france")]


def test_documents_of_a_source(tmp_path):
    folder = tiny.corpus(tmp_path)
    (folder / "packed.txt.zst").write_bytes(zstandard.ZstdCompressor().compress(b"One. Two.\nThree.\n\n\nFour.\n"))
    files = corpus.sources(folder)
    assert sorted(files) == ["lines", "packed", "stories"]
    assert corpus.documents(files["packed"]) == ["One. Two.\nThree.", "Four."]
    assert len(corpus.documents(files["lines"])) == 3
    assert len(corpus.documents(files["stories"])) == 12
    (folder / "packed.txt.zst").write_bytes(b"no zstd")
    with pytest.raises(ValueError, match="can't be unpacked"):
        corpus.documents(files["packed"])


@pytest.mark.parametrize(("text", "parts"), [
    ("He left. She stayed.", ["He left.", "She stayed."]),
    ("Dr. Smith met J. S. Bach. They spoke.", ["Dr. Smith met J. S. Bach.", "They spoke."]),
    ('"Why?" he asked. "No!" "Yes."', ['"Why?" he asked.', '"No!"', '"Yes."']),
    ("It cost 3.5 pounds.\nNew paragraph", ["It cost 3.5 pounds.", "New paragraph"]),
    ("", []),
])
def test_sentences(text, parts):
    assert corpus.sentences(text) == parts


def test_a_bad_corpus_or_mix_is_one_clear_line(tmp_path):
    with pytest.raises(ValueError, match="is no folder"):
        corpus.sources(tmp_path / "none")
    with pytest.raises(ValueError, match=r"holds no \.txt"):
        corpus.sources(tmp_path)
    with pytest.raises(ValueError, match="'poems' is not in the corpus"):
        corpus.parse_mix("poems=1", ["stories"])
    with pytest.raises(ValueError, match="has no number"):
        corpus.parse_mix("stories", ["stories"])
    for weight in ("nan", "inf", "0", "-1"):
        with pytest.raises(ValueError, match="finite and above 0"):
            corpus.parse_mix(f"stories={weight}", ["stories"])
    assert corpus.parse_mix("a=1,b=3", ["a", "b", "c"]) == {"a": 0.25, "b": 0.75}


def test_wordpiece_is_learned_from_the_corpus():
    tokenizer = corpus.train_wordpiece({"stories": tiny.documents()}, 150)
    encoded = tokenizer.encode("The dog barked", "a cat")
    assert encoded.tokens == ["[CLS]", "the", "dog", "barked", "[SEP]", "a", "cat", "[SEP]"]
    assert encoded.type_ids == [0, 0, 0, 0, 0, 1, 1, 1]
    with pytest.raises(ValueError, match="no documents"):
        corpus.train_wordpiece({"stories": []}, 150)
    with pytest.raises(ValueError, match="too small"):
        corpus.train_wordpiece({"stories": tiny.documents()}, 7)


@pytest.mark.parametrize(("text", "cut"), [
    ("He saw Dr. Ames. She left.", ["He saw Dr. Ames.", "She left."]),
    ("So it went on, as e.g. Ann said. Bob ran.", ["So it went on, as e.g. Ann said.", "Bob ran."]),
    ("A. B. Cole wrote it. End.", ["A. B. Cole wrote it.", "End."]),
    ("They met the Prof. Then they went.", ["They met the Prof. Then they went."]),
    ("An upProf. Then they went.", ["An upProf.", "Then they went."])])
def test_an_abbreviation_ends_no_sentence(text, cut):
    assert corpus.sentences(text) == cut


def test_nothing_but_abbreviations_takes_no_longer_a_character():
    began = time.process_time()
    assert len(corpus.sentences("A. " * 100_000)) == 1
    assert time.process_time() - began < 5  # 12 minutes where each boundary looked back to the start


class Last(np.random.Generator):
    """A generator whose whole numbers are the last that they may be."""

    def integers(self, high: int) -> int:
        return high - 1


class Chance(np.random.Generator):
    """A generator whose random() is what one wants."""

    wanted: float

    def random(self) -> float:
        return self.wanted


@pytest.mark.parametrize(("chance", "lengths"), [
    (0.0, {50}), (0.0999, {50}), (0.1, set(range(12, 22))), (0.3999, set(range(12, 22))), (0.4, {21}),
])
def test_a_length_is_long_short_or_usual_by_its_share(chance, lengths):
    rng = Chance(np.random.PCG64(0))
    rng.wanted = chance
    shares = Lengths(usual=21, longest=50, long_share=0.1, short_share=0.3)
    assert {shares.draw(rng) for _ in range(300)} == lengths


def test_a_stretch_may_begin_wherever_enough_of_the_document_follows():
    doc, last = [f"{n:<10}" for n in range(10)], Last(np.random.PCG64(0))
    assert _stretch(doc, 4, last) == doc[7:9]  # 5 letters a piece
    assert _stretch(doc, 5, last) == doc[7:10]
    assert _stretch(doc, 100, last) == doc
    assert _stretch([], 4, last) == []


def same(one: Packed, two: Packed) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(two, name)) for name in ("ids", "offsets", "first", "label"))


@pytest.mark.parametrize("size", [20_000_000, 700])
def test_any_number_of_processes_packs_the_same(monkeypatch, size):
    monkeypatch.setattr(packing, "PART_TOKENS", size)
    texts = {"stories": tiny.documents(), "lines": ["A cat slept.", "We walked home."]}
    mix = {"stories": 0.8, "lines": 0.2}
    alone, two = (pack(texts, mix, wordpiece(), 2500, tiny.LENGTHS, seed=6, workers=n) for n in (0, 2))
    assert same(alone, two)
    assert alone.tokens >= 2500


def test_a_large_source_comes_in_parts_that_differ(monkeypatch):
    texts, mix = {"stories": tiny.documents()}, {"stories": 1.0}
    whole = pack(texts, mix, wordpiece(), 600, tiny.LENGTHS, seed=6)
    monkeypatch.setattr(packing, "PART_TOKENS", 600)
    parts = pack(texts, mix, wordpiece(), 1800, tiny.LENGTHS, seed=6)
    sequences = [tuple(parts[n].ids) for n in range(len(parts))]
    assert {tuple(whole[n].ids) for n in range(len(whole))} <= set(sequences)  # the first part is what there was before
    assert 1800 <= parts.tokens < 1800 + 3 * tiny.LENGTHS.longest
    assert len(set(sequences)) > len(sequences) / 2


def test_what_went_wrong_in_another_process_is_one_line():
    with pytest.raises(ValueError, match=r"^no documents in 'docs'; a source of the mix needs text$"):
        pack({"docs": ["", "  "]}, {"docs": 1.0}, wordpiece(), 100, workers=1)


def test_sequences_in_another_order(monkeypatch):
    monkeypatch.setattr(packing, "SEQUENCES_A_TIME", 3)
    made = tiny.packed()
    order = np.random.default_rng(2).permutation(len(made))[:10]
    moved = made.in_order(order)
    for n, index in enumerate(order):
        assert moved[n]._replace(index=0).ids.tolist() == made[index].ids.tolist()
        assert (moved[n].first, moved[n].label) == (made[index].first, made[index].label)
    assert len(moved) == 10
    assert moved.ids.dtype == made.ids.dtype

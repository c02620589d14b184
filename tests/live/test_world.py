"""The shipped text is what its grammar tells, and the levels beside a run are what they claim."""

import dataclasses
import tomllib
from collections import Counter

import numpy as np
import pytest

from bert_core.training.live import film, levels, pairs, text, world
from bert_core.training.live.folder import RunFolder
from bert_core.training.live.pretraining import PretrainRun
from bert_core.training.live.specs import PretrainSpec
from bert_core.training.live.text import Text
from bert_core.training.packing import Example


def test_the_shipped_text_comes_out_of_the_grammar():
    told = world.stories(world.read_world(), 1800, seed=0)
    assert "\n\n".join("\n".join(story) for story in told) + "\n" == text.shipped_text()


@pytest.mark.parametrize(("part", "share", "seed"), [("train", 0, 0), ("test", 1, 1)])
def test_the_order_task_comes_out_of_its_grammar(part, share, seed):
    grammar = tomllib.loads((world.TEACHING / "order.toml").read_text(encoding="utf-8"))
    sides = world.split_pairs(grammar, 10)
    drawn = dict(world.mirrored(grammar, 320 if part == "train" else 240, sides[share], seed))
    lines = (world.TEACHING / f"order_{part}.tsv").read_text(encoding="utf-8").splitlines()[1:]
    assert dict(line.split("\t") for line in lines) == drawn
    assert Counter(drawn.values())["person"] == Counter(drawn.values())["animal"]


def test_people_and_animals_of_the_test_never_stand_in_training():
    grammar = tomllib.loads((world.TEACHING / "order.toml").read_text(encoding="utf-8"))
    train, test = world.split_pairs(grammar, 10)
    assert len(train) == 100
    assert len(test) == 36
    assert not {noun for pair in train for noun in pair} & {noun for pair in test for noun in pair}


def test_facts_of_the_world_are_complete_and_friends_are_mutual():
    found = world.read_world()
    for name, facts in found["people"].items():
        assert len(facts) == 12
        assert facts[7] in found["animals"]
        assert found["people"][facts[11]][11] == name
    assert all(len(facts) == 11 for facts in found["animals"].values())


def small_lesson() -> pairs.Lesson:
    train = (["a b a", "a b a"], ["a c a", "d b d"])
    split = Text(train, (["a b a", "d c d"],))
    return pairs.make_lesson(split, text.learn_vocabulary(train))


def test_levels_by_hand():
    lesson = small_lesson()
    a, b, c, d = (lesson.tokenizer.token_to_id(x) for x in "abcd")
    special = lesson.special
    ids = np.array([special.cls, a, b, a, special.sep, d, c, d, special.sep])
    corrupted = pairs.Corrupted(ids, np.array([2, 6, 1]), np.array([b, c, a]), np.zeros(len(ids)))
    found = levels.levels(lesson, [pairs.Seen(Example(ids, 5, 0, 0), corrupted)])
    # between a and a stood b twice, c once: right; between d and d stood b: wrong; before b at the start: a, right
    assert found.lookup == pytest.approx(2 / 3)
    assert found.commonest == pytest.approx(1 / 3)  # a is the commonest
    counts, total = {a: 6, b: 3, c: 1}, 12
    size = lesson.tokenizer.get_vocab_size()
    expected = -np.mean([np.log((counts[i] + 1) / (total + size)) for i in (b, c, a)])
    assert found.unigram_loss == pytest.approx(expected)
    assert found.best == found.lookup


def test_what_the_vocabulary_lacks_is_nobodys_guess():
    """No gap hides [UNK], so who says it is never right; of two thousand ideographs it is the commonest piece."""
    lesson = small_lesson()
    unknown = lesson.special.unk
    mixed = dataclasses.replace(lesson, train=tuple(
        [[n for piece in sentence for n in (unknown, piece, unknown)] for sentence in doc] for doc in lesson.train))
    a, b = (lesson.tokenizer.token_to_id(x) for x in "ab")
    special = lesson.special
    ids = np.array([special.cls, a, b, a, special.sep])
    corrupted = pairs.Corrupted(ids, np.array([1, 2]), np.array([a, b]), np.zeros(len(ids)))
    seen = [pairs.Seen(Example(ids, 5, 0, 0), corrupted)]
    found, alone = levels.levels(mixed, seen), levels.levels(lesson, seen)
    assert found.commonest == 0.5
    assert found.unigram_loss == pytest.approx(alone.unigram_loss)
    assert not any(unknown in guesses for guesses in levels.neighbour_table(mixed).values())


@pytest.mark.parametrize(("raw", "says"), [
    ("", "0 sentences"), ("One.", "1 sentence;"), ("One. Two. Three.", "3 sentences"),
    ("x" * 300_001, "300,001 characters"),
])
def test_a_text_of_ones_own_is_bounded(raw, says):
    with pytest.raises(ValueError, match=says):
        text.check_text(raw)


def test_a_text_of_ones_own_keeps_its_letters_and_loses_control_characters():
    clean = text.check_text("\n".join(f"The café number {n} is\x00 open." for n in range(30)))
    assert "café" in clean
    assert "\x00" not in clean
    split = text.split_text(clean)
    assert split.train
    assert split.held_out


def test_tabs_returns_and_no_break_spaces_part_words():
    clean = text.check_text("One\ttwo\u00a0three.\rFour\u2028five.\r\n" * 20)
    assert clean.split("\n")[:2] == ["One two three.", "Four five."]


@pytest.mark.parametrize("data", ["Grüße aus Köln.".encode("cp1252"), "Grüße".encode("utf-16"), b"PK\x03\x04\0\0"])
def test_a_file_in_another_encoding_is_refused_before_its_letters_are_lost(data):
    with pytest.raises(ValueError, match="in UTF-8"):
        text.decode_text(data)


def test_a_file_in_utf_8_is_read_with_and_without_its_mark():
    assert text.decode_text("Grüße".encode()) == text.decode_text("Grüße".encode("utf-8-sig")) == "Grüße"


def test_a_long_pair_is_cut_at_the_limit_from_its_longer_side():
    lesson = small_lesson()
    example = pairs.join_pair([9] * 100, [8] * 10, 0, lesson.special, 0)
    assert len(example.ids) == pairs.MAX_TOKENS
    assert (example.ids == 8).sum() == 10


CHINESE = "".join(f"{a}在花园里看见了{b}。它跑了！" for a in "猫狗鸟马牛羊" for b in "猫狗鸟马牛羊")


def test_sentences_that_no_blank_parts_are_sentences_too():
    assert text.documents("猫来了。“狗走了！”谁？它。")[0] == ["猫来了。", "“狗走了！”", "谁？", "它。"]
    split = text.split_text(text.check_text(CHINESE))
    assert sum(map(len, (*split.train, *split.held_out))) == 72


@pytest.mark.parametrize(("own", "sentence"), [
    ("Yes. The red fox runs away. No.", "The red [MASK] runs away."), ("Yes. No.", "Ye[MASK]."),
    (CHINESE, "猫在花园里[MASK]见了猫。"), ("x" * 300, "x" * 17 + "[MASK]" + "x" * 16),
])
def test_the_example_of_a_text_is_one_of_its_sentences_with_the_middle_hidden(own, sentence):
    assert text.example(own, 40) == sentence


@pytest.mark.parametrize(("own", "words"), [
    (CHINESE, {"猫", "花", "园"}), ("\n".join(f"{n} {n + 1} {n * n}" for n in range(60)), set()),
    ("The cat saw 3 dogs. It ran to us. " * 20, {"cat", "saw", "dogs", "ran", "the"}),
], ids=["Chinese", "numbers", "English"])
def test_a_film_of_any_text_places_the_words_that_it_has(tmp_path, own, words):
    folder = RunFolder(tmp_path)
    folder.write("text.txt", text.check_text(own).encode())
    spec = PretrainSpec(layers=1, width=64, heads=2, steps=1, batch=4, text="own")
    PretrainRun(spec, folder)
    shot = film.shoot(0, film.run_frame(folder, 0), "猫 [MASK] 7 the", spec)
    assert words <= set(shot.words)
    assert not {"it", "3", "。"} & set(shot.words)
    assert shot.vectors.shape == (len(shot.words), 64)
    assert bool(shot.words) == bool(words)
    assert film.project([shot]).shape == (1, len(shot.words), 2)

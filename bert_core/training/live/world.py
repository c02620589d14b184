"""The teaching text: short stories about a small world whose facts never change.

`assets/teaching/world.toml` holds the people, animals, seasons and sentence
patterns; this module walks through them with a seed. The shipped text is what
comes out, so anyone can change the world and make a new one.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

TEACHING = Path(__file__).resolve().parents[3] / "assets" / "teaching"

_PERSON = ("he", "job", "place", "does", "thing", "tool", "animal", "fruit", "colour", "near", "friend")
_ANIMAL = ("animals", "sound", "many_sound", "food", "bed", "moves", "many_move")
_SEASON = ("weather", "falls", "wear", "drink")
_PRONOUNS = {"he": ("his", "him"), "she": ("her", "her")}
#: Scenes of a story in order, and the chance that a story has them.
_SCENES = (("opening", 1.0), ("work", 1.0), ("season", 0.6), ("noon", 0.8), ("animal", 1.0), ("evening", 0.9))


def read_world() -> dict:
    """The people, animals, seasons and patterns of a small world."""
    return tomllib.loads((TEACHING / "world.toml").read_text(encoding="utf-8"))


def stories(world: Mapping, count: int, seed: int = 0) -> list[list[str]]:
    """Draw `count` different stories.

    Returns:
        One list of sentences a story, each ending with a full stop.
    """
    rng = np.random.default_rng(seed)
    seen: set[str] = set()
    told: list[list[str]] = []
    while len(told) < count:
        story = tell(world, rng)
        if " ".join(story) not in seen:
            seen.add(" ".join(story))
            told.append(story)
    return told


def tell(world: Mapping, rng: np.random.Generator) -> list[str]:
    """One story: a hero, a season, now or then, and one sentence for each scene."""
    hero = str(rng.choice(list(world["people"])))
    season = str(rng.choice(list(world["seasons"])))
    slots = fill_slots(world, hero, season, then=bool(rng.random() < 0.5))
    lines = []
    for scene, chance in _SCENES:
        if rng.random() < chance:
            pattern = choose_parts(str(rng.choice(world["stories"][scene])), rng)
            lines.append(sentence(pattern, slots))
    return lines


def choose_parts(pattern: str, rng: np.random.Generator) -> str:
    """Take one part of every [a|b|c]."""
    return re.sub(r"\[([^]]*)\]", lambda m: str(rng.choice(m[1].split("|"))), pattern)


def fill_slots(world: Mapping, hero: str, season: str, then: bool) -> dict[str, str]:
    """Slot name -> word for one hero and one season, in the present or the past."""
    slots = dict(zip(_PERSON, now_or_then(world["people"][hero], (3,), then), strict=True))
    friend = dict(zip(_PERSON, now_or_then(world["people"][slots["friend"]], (3,), then), strict=True))
    slots |= dict(zip(_ANIMAL, now_or_then(world["animals"][slots["animal"]], (1, 3, 7, 9), then), strict=True))
    slots |= dict(zip(_SEASON, world["seasons"][season], strict=True))
    slots |= {verb: forms[then] for verb, forms in world["verbs"].items()}
    slots["his"], slots["him"] = _PRONOUNS[slots["he"]]
    slots |= {f"friend_{key}": friend[key] for key in ("job", "place", "thing")}
    return slots | {"X": hero, "Friend": slots["friend"], "season": season}


def now_or_then(words: list[str], pairs: tuple[int, ...], then: bool) -> list[str]:
    """Of each pair (present, past) that starts at one of `pairs`, keep the one wanted."""
    dropped = {start if then else start + 1 for start in pairs}
    return [word for n, word in enumerate(words) if n not in dropped]


def sentence(pattern: str, slots: Mapping[str, str]) -> str:
    """Fill a pattern; names and the first letter become capitals."""
    names = {"X", "Friend"}
    text = re.sub(r"\{(\w+)\}", lambda m: slots[m[1]].capitalize() if m[1] in names else slots[m[1]], pattern)
    text = re.sub(r"\s+([,.])", r"\1", re.sub(r"\s+", " ", text)).strip()
    return text[0].upper() + text[1:]


def mirrored(grammar: Mapping, count: int, pairs: set[tuple[str, str]], seed: int) -> list[tuple[str, str]]:
    """Draw sentences whose mirror image, with the two nouns swapped, has the other label.

    Args:
        grammar: order.toml.
        count: sentences wanted, mirror images included; even.
        pairs: the (person, animal) pairs to draw from.

    Returns:
        (sentence, 'person' or 'animal'), a sentence and its mirror image in turn.
    """
    rng = np.random.default_rng(seed)
    known = sorted(pairs)
    drawn: dict[str, str] = {}
    while len(drawn) < count:
        person, animal = known[rng.integers(len(known))]
        past, participle = grammar["verbs"][rng.integers(len(grammar["verbs"]))]
        place = str(rng.choice(grammar["places"]))
        pattern = str(rng.choice(grammar["patterns"]))
        for label, one, other in (("person", person, animal), ("animal", animal, person)):
            text = pattern.format(one=one, other=other, past=past, participle=participle, place=place,
                                  Place=place.capitalize())
            drawn[text] = label
    return list(drawn.items())


def split_pairs(grammar: Mapping, known: int) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """(person, animal) pairs for training, of the first `known` of each, and for the test, of all others."""
    people, animals = grammar["people"], grammar["animals"]
    return ({(person, animal) for person in people[:known] for animal in animals[:known]},
            {(person, animal) for person in people[known:] for animal in animals[known:]})

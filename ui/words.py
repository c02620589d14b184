"""Words on screen: where they lie (below assets, a folder or a file a language), and how things are counted."""

from __future__ import annotations

from pathlib import Path

#: The language of the explorer; another one has its own folders and its own glossary.
LANGUAGE = "en"

_ASSETS = Path(__file__).resolve().parent.parent / "assets"
PROSE = _ASSETS / "prose" / LANGUAGE
LESSONS = _ASSETS / "lessons" / LANGUAGE
GLOSSARY = _ASSETS / "glossary" / f"{LANGUAGE}.toml"


def counted(count: int, one: str, many: str = "") -> str:
    """'1 piece', '2,000 pieces'; `many` is the plural where it isn't `one` with an s."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"

"""Where the words on screen lie: below assets, a folder or a file a language."""

from __future__ import annotations

from pathlib import Path

#: The language of the explorer; another one has its own folders and its own glossary.
LANGUAGE = "en"

_ASSETS = Path(__file__).resolve().parent.parent / "assets"
PROSE = _ASSETS / "prose" / LANGUAGE
LESSONS = _ASSETS / "lessons" / LANGUAGE
GLOSSARY = _ASSETS / "glossary" / f"{LANGUAGE}.toml"

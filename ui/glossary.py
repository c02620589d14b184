"""Terms with their meaning on hover and on focus, as plain HTML and CSS: it costs a page nothing."""

from __future__ import annotations

import functools
import html
import re
import tomllib
from typing import NamedTuple

from ui.words import GLOSSARY

#: Elements inside which no term is marked.
_CLOSED = ("code", "h1", "h2", "h3", "summary", "a", "dfn", "button", "style")


class Term(NamedTuple):
    """A term and what it means."""

    name: str
    means: str
    spellings: tuple[str, ...]


@functools.cache
def terms() -> tuple[Term, ...]:
    """All terms of the glossary, in its order."""
    words = tomllib.loads(GLOSSARY.read_text(encoding="utf-8"))
    return tuple(Term(name, entry["means"], (name, *entry.get("also", ()))) for name, entry in words.items())


@functools.cache
def _pattern() -> tuple[re.Pattern[str], dict[str, Term]]:
    by_spelling = {spelling.casefold(): term for term in terms() for spelling in term.spellings}
    longest_first = sorted(by_spelling, key=len, reverse=True)
    one_of = "|".join(re.escape(html.escape(spelling, quote=False)) for spelling in longest_first)
    return re.compile(rf"(?<![\w-])(?:{one_of})(?![\w-])", re.IGNORECASE), by_spelling


def mark(text: str) -> str:
    """HTML with the first occurrence of each term marked.

    Args:
        text: HTML whose text is escaped, as the prose makes it.

    Returns:
        The same with `<dfn>` around terms; their meaning is inside, shown by CSS.
    """
    pattern, by_spelling = _pattern()
    seen: set[str] = set()
    depth = 0

    def wrap(match: re.Match[str]) -> str:
        term = by_spelling[html.unescape(match.group()).casefold()]
        if term.name in seen:
            return match.group()
        seen.add(term.name)
        return (f'<dfn class="bw-term" tabindex="0">{match.group()}'
                f'<span class="bw-tip" role="tooltip">{html.escape(term.means)}</span></dfn>')

    parts = []
    for piece in re.split(r"(<[^>]*>)", text):
        tag = re.match(r"<(/?)(\w+)", piece)
        if tag is None:
            parts.append(piece if depth else pattern.sub(wrap, piece))
            continue
        if tag[2] in _CLOSED:
            depth += -1 if tag[1] else 1
        parts.append(piece)
    return "".join(parts)

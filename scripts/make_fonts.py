"""The small fonts of assets/fonts, each a part of one that Streamlit brings.

    python -m pip install fonttools==4.68.0 brotli==1.2.1
    PYTHONPATH=. python scripts/make_fonts.py

Those of text keep the characters that ui/look.py names, the headings' serif also
only the weights 400 to 700 of its drawing for 32 pixels; the icons are those that Streamlit's scripts and
the explorer's pages name. For any other character a browser fetches Streamlit's
font. Parts of a font that reserves its name must have another one (OFL 1.1, 3).
"""

from __future__ import annotations

import io
import re
from importlib.util import find_spec
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont
from fontTools.varLib import instancer

from ui import look

ROOT = Path(__file__).resolve().parent.parent
THEIRS = Path(find_spec("streamlit").origin).parent / "static" / "static"
ICON = re.compile(r":material/([a-z_0-9]+):")


def theirs(name: str) -> TTFont:
    """The one font of Streamlit's whose file begins so."""
    (path,) = (THEIRS / "media").glob(f"{name}*.woff2")
    return TTFont(path, recalcTimestamp=False)


def save(font: TTFont, name: str, family: str) -> None:
    """Write it with its own name."""
    for record in font["name"].names:
        if record.nameID in (1, 3, 4, 6, 16, 25):
            record.string = family.replace(" ", "") if record.nameID in (3, 6, 25) else family
    font.flavor = "woff2"
    path = ROOT / "assets" / "fonts" / f"{name}.woff2"
    font.save(path)
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")


def text(font: TTFont) -> TTFont:
    """Its characters of ui/look.py."""
    options = subset.Options(layout_features=["kern", "liga", "calt", "ccmp", "locl", "mark", "mkmk", "lnum", "tnum"],
                             name_IDs=["*"])
    part = subset.Subsetter(options)
    part.populate(unicodes=subset.parse_unicodes(look.TEXT))
    part.subset(font)
    return font


def for_headings(font: TTFont) -> TTFont:
    """Of all sizes and weights those that headings have; read anew, as the subsetter wants it from a file."""
    file = io.BytesIO()
    instancer.instantiateVariableFont(font, {"opsz": 32, "wght": (400, 700)}).save(file)
    return TTFont(file, recalcTimestamp=False)


def icon_names() -> set[str]:
    """Icons that Streamlit's scripts or the pages name."""
    files = [*(THEIRS / "js").glob("*.js"), *(ROOT / "ui").rglob("*.py"), *(ROOT / "pages").glob("*.py")]
    return {name for file in files for name in ICON.findall(file.read_text(encoding="utf-8", errors="replace"))}


def icons(font: TTFont) -> TTFont:
    """The glyphs of those names, with the ligatures that lead to them and to no other."""
    letters = {glyph: chr(code) for code, glyph in font.getBestCmap().items() if code < 128}
    tables = [getattr(table, "ExtSubTable", table) for lookup in font["GSUB"].table.LookupList.Lookup
              for table in lookup.SubTable]
    named = {"".join(letters.get(part, "?") for part in (first, *ligature.Component)): ligature.LigGlyph
             for table in tables for first, found in table.ligatures.items() for ligature in found}
    part = subset.Subsetter(subset.Options(layout_features=["*"], layout_closure=False, name_IDs=["*"]))
    part.populate(unicodes=range(0x20, 0x7F), glyphs=[named[name] for name in sorted(icon_names()) if name in named])
    part.subset(font)
    return font


def main() -> None:
    """All four."""
    save(text(for_headings(theirs("SourceSerifVariable-Roman"))), "serif", "Both Ways Serif")
    save(text(theirs("SourceSansVF-Upright")), "sans", "Both Ways Sans")
    save(text(theirs("SourceSansVF-Italic")), "italic", "Both Ways Sans Italic")
    save(icons(theirs("MaterialSymbols-Rounded")), "icons", "Both Ways Icons")


if __name__ == "__main__":
    main()

"""What is printed from the dark theme has the colours of the light one."""

import re
import tomllib
from pathlib import Path

import pytest

from bert_core.figures import theme

ROOT = Path(__file__).resolve().parent.parent.parent
LIGHT = tomllib.loads((ROOT / ".streamlit/config.toml").read_text(encoding="utf-8"))["theme"]["light"]
STYLE = (ROOT / "assets/app_study.css").read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "setting"), [
    ("secondary-background-color", "secondaryBackgroundColor"), ("text-color", "textColor"),
    ("border-color", "borderColor"), ("primary-color", "primaryColor"), ("link-color", "linkColor"),
])
def test_a_printed_picture_has_the_light_themes_colour(name, setting):
    printed = STYLE[STYLE.index(':root[data-printing] [data-testid^="stBidiComponent"]'):].split("}", 1)[0]
    assert re.findall(rf"--st-{name}: (#\w+) !important", printed) == [LIGHT[setting]]


def test_a_printed_chart_has_the_light_colour_of_each_dark_one():
    script = (ROOT / "assets" / "components" / "ready.print.js").read_text(encoding="utf-8")
    table = script[script.index("const IN_LIGHT"):].split("...Object", 1)[0]
    pairs = dict(re.findall(r'"(#\w{6})": "(#\w{6})"', table))
    kinds = {theme.ON_DARK[light]: light for light in theme.KINDS}  # the rest, as tests/ui/test_colour_scales.py says
    assert pairs | kinds == {dark: light for light, dark in theme.ON_DARK.items()}
    assert not set(pairs) & set(kinds)

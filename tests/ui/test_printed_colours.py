"""What is printed from the dark theme has the colours of the light one."""

import re
import tomllib
from pathlib import Path

import pytest

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

"""What the attention picture writes beside its colours: heads, positions, digits."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from playwright.sync_api import expect

from tests.browser.test_attention import PAIR, TEXT, wait_for
from tests.browser.waiting import holds


def test_heads_have_the_colours_with_which_their_link_opens(visitor):
    """In whatever order they were added: the address names them from the first on."""
    page = visitor.open("attention", text=TEXT, pair=PAIR, layer=3, head=2, look="map.h10-5")
    wait_for(page, layer=3, head=2)
    expect(page.locator(".att-tag")).to_have_text(["head 2", "head 5", "head 10"])


def test_a_map_of_whole_words_counts_pieces_as_the_line_below_it(visitor):
    """What stands at the axis is the position that the line names."""
    text = " ".join(["The unbelievable schoolteacher sat."] * 24)
    page = visitor.open("attention", text=text, layer=1, head=1, look="map.words", token="60")
    wait_for(page, layer=1, exact="true")
    at = re.search(r"position (\d+), pinned", page.locator(".att-says").text_content())[1]
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as SVG").click()
    assert re.search(rf'font-weight="[^"]+"[^>]*>{at}<', download.value.path().read_text())


def test_a_saved_picture_says_what_it_shows(visitor):
    page = visitor.open("attention", text=TEXT, layer=3, head=2, look="lines.renormalise.t5.h10-5")
    wait_for(page, layer=3, head=2, exact="true")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as SVG").click()
    assert download.value.suggested_filename == "attention-layer3-head2-5-10.svg"
    picture = ElementTree.fromstring(download.value.path().read_text())
    texts = [(one.text, one.get("fill"), one.get("transform")) for one in picture.iter("{http://www.w3.org/2000/svg}text")]
    heads = {text: fill for text, fill, _ in texts if text.startswith(" · head")}
    tags = page.locator(".att-tag").evaluate_all("all => all.map(one => one.style.getPropertyValue('--head'))")
    assert heads == dict(zip((" · head 2", " · head 5", " · head 10"), tags, strict=True))
    words = " ".join(text for text, _, _ in texts)
    for said in ("Layer 3", "twin-bert, ", "rows rescaled to 1: not what the model used", "weights of 5.0 % and more"):
        assert said in words
    lowest = max(float(re.search(r"translate\(\S+ (\S+)\)", place)[1]) for _, _, place in texts)
    assert lowest + 6 < float(picture.get("height"))


def test_a_picture_saved_from_act_says_what_was_changed(visitor):
    page = visitor.open("attention", view="Act", text="The capital of France is [MASK].", off="1-1,5-12",
                        cut="1-2,6-4", window="2", fed="3", layer=1, head=2)
    wait_for(page, layer=1, head=2)
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as SVG").click()
    picture = ElementTree.fromstring(download.value.path().read_text())
    words = " ".join(one.text for one in picture.iter("{http://www.w3.org/2000/svg}text"))
    for said in ("heads off (layer-head): 1-1, 5-12", "pairs cut: the to capital, [MASK] to france",
                 "without the feed-forward part of layer 3", "a token sees others at most 2 away"):
        assert said in words


def test_a_small_weight_has_no_more_digits_than_travelled(visitor):
    """Below 0.001 a code is a few per cent wide."""
    page = visitor.open("attention", text=TEXT, pair=PAIR, layer=3, head=9, look="map")
    wait_for(page, layer=3, head=9, exact="true")
    page.locator(".att-headtable summary").evaluate("node => { node.parentElement.open = true; }")

    def all_are_short() -> bool:
        cells = page.locator(".att-headtable tbody td").all_text_contents()
        return bool(cells) and all(re.fullmatch(r"[01]|0\.\d{4}", cell) for cell in cells)

    holds(page, all_are_short)

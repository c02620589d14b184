"""Fine-tune in the browser: train, read, try a sentence, keep the model, upload a table."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.runs import TRAINER, leave_and_return, run_id, run_line, wait_state
from tests.browser.waiting import becomes
from tests.cases import quick_are

pytestmark = [pytest.mark.browser, pytest.mark.timeout(1800)]

#: States of a run that still wants the trainer.
UNFINISHED = ("waiting", "running")
TABLE = "text;kind\n" + "".join(f"the sun number {n};day\nthe moon number {n};night\n" for n in range(12)) + (
    "bad row\nthé sun number 3;night\n")


def train(page: Page) -> None:
    page.get_by_role("button", name="Train", exact=True).click()
    wait_state(page, "done")


def try_read_and_keep(page: Page, text: str, best: str, name: str) -> None:
    """With a run that is done: a sentence of one's own, each look at what it learned, and the model kept.

    Args:
        best: the class of `text`; the example's is another one.
        name: pattern of what the model is kept as.
    """
    expect(page.get_by_text("bag of words").first).to_be_visible()
    page.get_by_label("Try a sentence").fill(text)
    page.get_by_label("Try a sentence").press("Enter")
    expect(page.locator(".bw-classes [role=listitem]").filter(has_text=best)).to_have_attribute(
        "style", re.compile("font-weight: ?600"))
    for look in ("Calibration", "[CLS] space", "Attention"):
        page.get_by_role("radio", name=look, exact=True).click()
        expect(page.locator(".js-plotly-plot").nth(1)).to_be_visible()
    page.get_by_role("radio", name="Keep it", exact=True).click()
    page.get_by_role("button", name="Keep it for this visit").click()
    expect(page.get_by_text(re.compile(f"Kept as mine:{name}"))).to_be_visible()


@pytest.mark.full  # half a minute of the trainer, for what a small table shows too
def test_train_the_head_on_topics_try_a_sentence_read_errors_and_keep_it(visitor):
    page = visitor.open("finetune", task="Topic", way="Head only")
    train(page)
    try_read_and_keep(page, "The band played loud songs on the drums.", "music", "topic-frozen-[0-9a-f]{8}-e40:")
    visitor.no_traceback()


def test_cancel_at_once_and_while_it_prepares(visitor):
    page = visitor.open("finetune", task="Sentiment")
    for moment in (None, "Getting ready"):
        page.get_by_role("button", name="Train", exact=True).click()
        wait_state(page, *UNFINISHED)
        if moment:
            expect(run_line(page)).to_contain_text(moment, timeout=TRAINER)
        page.get_by_role("button", name="Cancel", exact=True).click()
        wait_state(page, "stopped")
        expect(run_line(page)).to_contain_text("Stopped before it began")
        expect(page.get_by_role("button", name="Train", exact=True)).to_be_enabled()
    visitor.no_traceback()


def test_a_run_goes_on_through_a_reload_another_page_and_another_tab_until_it_is_cancelled_between_steps(visitor):
    page = visitor.open("finetune", task="Sentiment", seed="3")
    page.get_by_role("button", name="Train", exact=True).click()
    wait_state(page, *UNFINISHED)
    first = run_id(page, "tune")
    page.reload()
    visitor.wait_ready()
    wait_state(page, *UNFINISHED)
    becomes(page, lambda: run_id(page, "tune"), first)
    tab = leave_and_return(visitor, "Fine-tune", "tune", UNFINISHED)
    expect(run_line(page)).to_contain_text(re.compile(r"Step [1-9]\d* of 68"), timeout=TRAINER)
    tab.get_by_role("button", name="Cancel", exact=True).click()
    for one in (tab, page):
        wait_state(one, "stopped")
        expect(one.get_by_role("button", name="Train", exact=True)).to_be_enabled()
    visitor.no_traceback()


@pytest.mark.full
def test_the_ways_trained_before_are_still_compared_after_a_reload(visitor):
    page = visitor.open("finetune", task="Topic", way="Head only")
    train(page)
    page.get_by_role("radio", name="From scratch", exact=True).click()
    visitor.wait_ready()
    page.get_by_role("button", name="Train", exact=True).click()
    wait_state(page, *UNFINISHED)
    chart = page.locator(".js-plotly-plot").first
    for name in ("Head only", "From scratch"):
        expect(chart.get_by_text(name, exact=True).first).to_be_visible(timeout=TRAINER)
    page.get_by_role("button", name="Cancel", exact=True).click()
    wait_state(page, "stopped", "done")
    page.reload()
    visitor.wait_ready()
    for name in ("Head only", "From scratch"):
        expect(chart.get_by_text(name, exact=True).first).to_be_visible()
    visitor.no_traceback()


def test_a_table_of_ones_own_with_a_bad_row_trains_the_head_and_its_model_is_tried_read_and_kept(visitor):
    page = visitor.open("finetune", task="Your own table", way="Head only")
    expect(page.get_by_role("button", name="Train", exact=True)).to_be_disabled()
    upload = page.locator("input[type=file]")
    upload.set_input_files({"name": "bad.csv", "mimeType": "text/csv", "buffer": b"\xff\xfe\x00"})
    expect(page.get_by_text("This table can't be used")).to_be_visible()
    upload.set_input_files({"name": "own.csv", "mimeType": "text/csv", "buffer": TABLE.encode()})
    expect(page.get_by_text("2 left out")).to_be_visible()
    page.get_by_text("Rows that were left out: 2").click()
    expect(page.get_by_text("the model reads it as it reads line 8, with another label")).to_be_visible()
    expect(page.get_by_role("button", name="Train", exact=True)).to_be_enabled()
    train(page)
    try_read_and_keep(page, "the moon is new", "night", "own-frozen-[0-9a-f]{8}-e40:")
    visitor.no_traceback()


def test_it_fits_a_telephone(new_visitor):
    visitor = new_visitor(width=390, height=844)
    visitor.open("finetune")
    visitor.fits()


@pytest.mark.parametrize("width", quick_are(1, [1024, 1440]))
def test_the_seed_stands_beside_what_learns_with_its_steps(new_visitor, width):
    page = new_visitor(width=width).open("finetune")
    box, last = page.get_by_label("Seed"), page.get_by_role("radio", name="From scratch")
    expect(page.get_by_test_id("stNumberInputStepUp")).to_be_visible()
    beside, here = last.bounding_box(), box.bounding_box()
    assert abs(beside["y"] + beside["height"] / 2 - here["y"] - here["height"] / 2) < 12

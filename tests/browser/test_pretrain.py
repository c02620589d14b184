"""Pre-train in the browser: steps, reload, a killed browser, two visitors, and a sentence under every checkpoint."""

import contextlib
import os
import re
import signal
import time
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from bench._server import serve
from tests.browser.conftest import CHROMIUM_ARGUMENTS, find_chromium
from tests.browser.runs import TRAINER, leave_and_return, run_id, run_line, wait_state
from tests.browser.waiting import PATIENCE, holds
from tests.cases import quick_are

pytestmark = [pytest.mark.browser, pytest.mark.timeout(1800)]

SMALL = {"size": "2 layers × 64", "length": "300 steps"}


def button(page: Page, name: str):
    return page.get_by_role("button", name=name, exact=True)


def test_the_random_start_is_on_screen_before_anything_is_pressed(visitor):
    page = visitor.open("pretrain", film="Anna the [MASK] bakes the bread.")
    expect(page.locator(".film[data-frames='1']")).to_be_visible()
    expect(page.locator(".film-step")).to_have_text("random start")
    expect(page.locator(".film-line")).to_have_count(5)
    expect(page.locator("[data-state=none]")).to_be_visible()
    page.locator(".film-says summary").click()
    expect(page.locator(".film-says table tbody tr")).to_have_count(1)
    visitor.no_traceback()


def test_another_text_while_a_run_reads_the_first_is_said(visitor):
    page = visitor.open("pretrain", **SMALL)
    says = page.get_by_text("run on screen learned from another text of yours")

    def give(text: str) -> None:
        page.get_by_role("button", name="Own text").click()
        page.get_by_label("Text: sentences, a blank line between documents").fill(text)
        page.get_by_label("Text: sentences, a blank line between documents").press("Control+Enter")
        page.keyboard.press("Escape")
        visitor.wait_ready()

    give("\n\n".join(f"The cat saw {n} birds. It ran to them." for n in range(60)))
    expect(page.get_by_text("Until Play, film and batch show the shipped text")).to_be_visible()
    button(page, "One step").click()
    wait_state(page, "paused")
    expect(says).to_have_count(0)
    give("\n\n".join(f"The dog saw {n} cats. It ran from them." for n in range(60)))
    expect(says).to_be_visible()
    button(page, "Reset").click()
    wait_state(page, "none")
    expect(says).to_have_count(0)
    visitor.no_traceback()


def test_an_unfinished_run_is_found_after_a_reload_elsewhere_and_in_another_tab(new_visitor):
    visitor = new_visitor()
    page = visitor.open("pretrain", **SMALL)
    button(page, "One step").click()
    wait_state(page, "paused")
    expect(run_line(page)).to_contain_text("Step 1 of 300")
    tab = leave_and_return(visitor, "Pre-train", "run", ("paused",))
    expect(tab.get_by_text("belongs to another visitor")).to_have_count(0)
    button(tab, "Reset").click()
    wait_state(tab, "none")
    stranger = new_visitor()
    stranger.open("pretrain")
    wait_state(stranger.page, "none")
    visitor.no_traceback()


@pytest.mark.full  # it takes the minute for which an owner may be away
def test_a_killed_browser_leaves_a_run_that_another_window_takes_over(new_visitor):
    watching, first = new_visitor(), new_visitor()
    page = first.open("pretrain", size="3 layers × 128", length="6,000 steps")
    button(page, "Play").click()
    wait_state(page, "running", "waiting")
    run = run_id(page, "run")
    other = watching.open("pretrain", run=run)
    wait_state(other, "running", "waiting")
    expect(button(other, "Pause")).to_be_disabled()
    page.context.close()
    expect(button(other, "Pause")).to_be_enabled()
    button(other, "Pause").click()
    wait_state(other, "paused")
    watching.no_traceback()


@pytest.mark.full
def test_killing_the_browser_ends_the_run_its_files_and_the_process(browser, tmp_path):
    home, runs = tmp_path / "browser", tmp_path / "runs"
    runs.mkdir()
    settings = {"BOTH_WAYS_RUN_KEEP": "3", "BOTH_WAYS_TRAINER_NICE": "0", "TMPDIR": str(runs)}
    with serve(log=tmp_path / "log.txt", seconds=240, **settings) as server:
        doomed = browser.browser_type.launch_persistent_context(
            home, executable_path=find_chromium(), args=CHROMIUM_ARGUMENTS)
        page = doomed.new_page()
        page.goto(f"{server.address}/pretrain?size=4+layers+×+128&length=6%2C000+steps")
        button(page, "Play").click(timeout=PATIENCE)
        expect(run_line(page)).to_contain_text(re.compile(r"Step [1-9]\d* of 6,000"), timeout=TRAINER)
        run = run_id(page, "run")
        (trainer,) = processes("bert_core.training.live.worker", parent=server.pid)
        assert list(runs.glob(f"both-ways-*/{run}/status.json"))
        for process in processes(f"--user-data-dir={home}"):
            os.kill(process, signal.SIGKILL)
        end = time.monotonic() + PATIENCE / 1000
        while (list(runs.glob(f"both-ways-*/{run}")) or alive(trainer)) and time.monotonic() < end:
            time.sleep(0.1)
        assert not list(runs.glob(f"both-ways-*/{run}"))
        assert not alive(trainer)
        later = browser.new_page()
        later.goto(f"{server.address}/pretrain?run={run}&size=2+layers+×+64&length=300+steps")
        expect(later.get_by_text("That run is over and its files are gone")).to_be_visible(timeout=PATIENCE)
        button(later, "One step").click()
        wait_state(later, "paused")
        later.close()
    assert not list(runs.glob("both-ways-*"))


def processes(part: str, parent: int | None = None) -> list[int]:
    """Ids of the running processes whose command line has this part (and this parent)."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            above = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if part in command and parent in (None, above):
                found.append(int(folder.name))
    return found


def alive(process: int) -> bool:
    """Whether a process runs; one that ended and was not waited for does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_two_visitors_see_their_place_in_the_queue_and_move_up(new_visitor):
    first, second = new_visitor(), new_visitor()
    for visitor in (first, second):
        button(visitor.open("pretrain", size="2 layers × 64", length="6,000 steps"), "Play").click()
        wait_state(visitor.page, "running", "waiting")
    wait_state(first.page, "running")
    expect(run_line(second.page)).to_contain_text("Waiting: place 1 in the queue")
    button(first.page, "Reset").click()
    wait_state(second.page, "running")
    button(second.page, "Reset").click()
    wait_state(second.page, "none")
    for visitor in (first, second):
        visitor.no_traceback()


def test_the_film_plays_and_is_scrubbed_and_two_runs_lie_over_one_another(visitor):
    page = visitor.open("pretrain", film="Anna the [MASK] bakes the bread.", **SMALL)
    button(page, "Play").click()
    film = page.locator(".film")
    holds(page, lambda: int(film.get_attribute("data-frames")) > 3)
    button(page, "Pause").click()
    wait_state(page, "paused")
    visitor.wait_ready()
    frames = int(film.get_attribute("data-frames"))
    scrub = page.get_by_role("slider", name="Checkpoint")
    expect(scrub).to_have_attribute("max", str(frames - 1))
    last = page.locator(".film-step").inner_text()
    assert last.startswith("after ")
    said = page.locator(".film-line").first
    scrub.fill("0")
    expect(page.locator(".film-step")).to_have_text("random start")
    at_random = said.inner_text()
    visitor.in_address("frame=0")
    button(page, "Play the film from the random start").click()
    expect(page.locator(".film-step")).to_have_text(last)
    assert said.inner_text() != at_random
    scrub.focus()
    page.keyboard.press("Home")
    expect(page.locator(".film-step")).to_have_text("random start")
    assert said.inner_text() == at_random
    button(page, "Reset").click()
    wait_state(page, "none")
    page.get_by_role("radio", name="No NSP", exact=True).click()
    visitor.wait_ready()
    button(page, "One step").click()
    wait_state(page, "paused")
    chart = page.locator(".js-plotly-plot").first
    expect(chart.get_by_text("before: ").first).to_be_visible()
    button(page, "Reset").click()
    wait_state(page, "none")
    visitor.no_traceback()


#: Clicks, in the page itself so that nothing waits between them, an option and after some milliseconds a button.
TWO_CLICKS = """([option, button, later]) => {
  const named = (kind, text) => [...document.querySelectorAll(kind)].find((one) => one.textContent.includes(text));
  named('[role=radio]', option).click();
  setTimeout(() => named('button', button).click(), later);
}"""


@pytest.mark.parametrize("later", quick_are(1, [20, 25, 15, 30]))  # in some the page below has just moved
def test_a_click_while_another_experiment_is_being_drawn_is_obeyed_and_drawn(visitor, later):
    page = visitor.open("pretrain", seed=later, **SMALL)
    page.evaluate(TWO_CLICKS, ["No NSP", "One step", later])
    expect(page.locator("[data-state=paused]")).to_be_visible()
    visitor.no_traceback()


def test_the_page_says_which_run_is_on_screen_when_the_controls_say_another(visitor):
    page = visitor.open("pretrain", seed="3", **SMALL)
    expect(run_line(page)).to_contain_text("As in the paper, 2 × 64, 300 steps, seed 3. Not begun")
    button(page, "One step").click()
    wait_state(page, "paused")
    chart = page.locator(".js-plotly-plot").first
    expect(chart.get_by_text("As in the paper, 2 × 64, 300 steps,")).to_be_visible()  # the next line has the seed
    page.get_by_label("Seed", exact=True).fill("4")
    page.get_by_label("Seed", exact=True).press("Enter")
    expect(page.get_by_text("On screen is As in the paper, 2 × 64, 300 steps, seed 3.")).to_be_visible()
    button(page, "Reset").click()
    wait_state(page, "none")
    expect(page.get_by_text("On screen is")).to_have_count(0)
    expect(page.get_by_text("tiny BERT · CPU, one thread, float32")).to_contain_text("seed 4 · 2 layers × 4 heads")
    visitor.no_traceback()


def test_bars_of_several_gaps_say_whose_they_are(visitor):
    page = visitor.open("pretrain", film="Anna the [MASK] bakes the [MASK].")
    expect(page.locator(".film-bars .film-hint")).to_have_text(["gap at 3", "gap at 6"])
    expect(page.locator(".film-line")).to_have_count(10)
    page = visitor.open("pretrain", film="Anna the [MASK] [MASK] the [MASK] [MASK].")
    expect(page.locator(".film-bars .film-hint").last).to_have_text("3 of 4 gaps; the table has all.")
    visitor.no_traceback()


def test_what_a_step_sees_and_an_experiment_asked_first(visitor):
    page = visitor.open("pretrain", experiment="One way")
    expect(page.get_by_text("A token may look only to its left")).to_be_visible()
    page.get_by_text("The same", exact=True).click()
    expect(page.get_by_text("Not what is expected.")).to_be_visible()
    page.get_by_role("radio", name="What a step sees").click()
    expect(page.locator(".lb-pair")).to_have_count(5)
    chosen, labels = page.locator(".lb-token:not(.lb-untouched)"), page.locator(".lb-label")
    holds(page, lambda: chosen.count() == labels.count() > 5)
    assert page.locator(".lb-token.lb-second:not(.lb-untouched)").count() > 0
    for outcome in ("masked", "random", "kept"):  # one outcome, one colour, in either sentence
        named = page.locator(f".lb-dot.lb-{outcome}").evaluate("e => getComputedStyle(e, '::before').backgroundColor")
        found = page.locator(f".lb-token.lb-{outcome}")
        drawn = found.evaluate_all("all => all.map(e => getComputedStyle(e).borderTopColor)")
        assert set(drawn) <= {named}
    visitor.no_traceback()


@pytest.mark.parametrize("parameters", quick_are(1, [
    {"run": "f" * 32, "layer": "99", "head": "x", "frame": "-1"}, {"film": "<script>alert(1)</script> [MASK] 😀 漢字"},
    {"run": "../../etc", "film": "[MASK] " * 22, "experiment": "none such"},
]))
def test_links_and_sentences_of_any_kind_get_an_answer(visitor, parameters):
    page = visitor.open("pretrain", **parameters)
    expect(page.locator(".film")).to_be_visible()
    visitor.no_traceback()


def test_it_fits_a_telephone_in_the_dark(new_visitor):
    visitor = new_visitor(width=390, height=844, scheme="dark")
    page = visitor.open("pretrain")
    expect(page.locator(".film-map")).to_be_visible()
    visitor.fits()

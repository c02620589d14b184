"""Two browsers in one room: the student's page goes where the teacher's goes."""

from __future__ import annotations

import re
import time

import pytest
from playwright.sync_api import expect

from tests.browser.runs import TRAINER, run_id, run_line, wait_state
from tests.browser.waiting import PATIENCE, becomes
from tests.cases import quick_are

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

CODE = re.compile(r"^\s*\w+\s*$")


def open_room(teacher) -> str:
    """Open a room as its teacher; gives the code."""
    page = teacher.open("class", view="Room")
    page.get_by_role("button", name="Open a room").click()
    expect(page.locator(".bw-code")).to_have_text(CODE)
    return page.locator(".bw-code").inner_text().strip()


def go_to(visitor, title: str) -> None:
    """Follow a link of the sidebar, as a person would."""
    run = visitor.run_number()
    visitor.page.get_by_test_id("stSidebarNavLink").filter(has_text=title).first.click()
    visitor.after(run)


def teach(teacher, student, text: str) -> float:
    """Type as the teacher and wait until the student's page has drawn it; how many seconds that took."""
    teacher.page.get_by_label("Sentence", exact=True).fill(text)
    started = time.perf_counter()
    student.page.wait_for_function(
        "text => document.querySelector('[data-ready]')?.getAttribute('data-text') === text", arg=text,
        timeout=PATIENCE)
    return time.perf_counter() - started


def take_control(page, code: str, key: str) -> None:
    """Give a room's code and a key, on the open Room view."""
    page.get_by_text("I have a room and its key").click()
    page.get_by_label("Code", exact=True).fill(code)
    page.get_by_label("Teacher's key").fill(key)
    page.get_by_role("button", name="Take control", exact=True).click()


def train_before(teacher, student, chosen: dict[str, str], state: str) -> None:
    """A run of the teacher's, watched by a student until it is done, or paused as soon as the film has two frames."""
    go_to(teacher, "Pre-train")
    student.page.wait_for_url("**/pretrain*")
    for control, option in chosen.items():
        teacher.page.get_by_label(control, exact=True).click()
        teacher.page.get_by_role("option", name=option, exact=True).click()
    teacher.page.get_by_role("button", name="Play", exact=True).click()
    if state == "paused":
        teacher.page.locator(".film:not([data-frames='1'])").wait_for(timeout=TRAINER)
        teacher.page.get_by_role("button", name="Pause", exact=True).click()
    for one in (teacher, student):
        wait_state(one.page, state)


def test_student_follows_sentence_page_and_controls(new_visitor):
    teacher, student = new_visitor(), new_visitor(width=390, scheme="dark")
    code = open_room(teacher)
    student.open("tokens", room=code)
    student.page.get_by_text("Following room").wait_for()

    go_to(teacher, "Masking")
    student.page.wait_for_url(re.compile("/(masking)?(\\?|$)"))

    for n in range(2):
        text = f"The teacher typed [MASK] number {n}."
        teach(teacher, student, text)
        student.in_sentence(text)

    go_to(teacher, "Family")
    student.page.wait_for_url("**/family*")
    teacher.page.get_by_role("radio", name="Cost").click()
    student.page.get_by_text("operations of the layers").first.wait_for()
    student.no_traceback()


@pytest.mark.full
def test_a_student_sees_what_is_typed_within_a_second(new_visitor):
    teacher, student = new_visitor(), new_visitor()
    student.open("masking", room=open_room(teacher))
    student.page.get_by_text("Following room").wait_for()
    go_to(teacher, "Masking")
    lags = [teach(teacher, student, f"The teacher typed [MASK] number {n}.") for n in range(7)]
    assert sorted(lags)[3] < 1.0, f"half of the time the student's page lagged {lags} seconds behind"


def test_a_class_is_called_and_need_not_ask(new_visitor):
    """By itself a student's page looks every ten seconds only; what a student does meanwhile changes nothing."""
    teacher, student = new_visitor(), new_visitor()
    student.open("masking", room=open_room(teacher))
    student.page.get_by_text("Following room").wait_for()
    go_to(teacher, "Masking")
    for n in range(2):
        text = f"The teacher typed [MASK] number {n}."
        assert teach(teacher, student, text) < 5.0
        run = student.run_number()
        student.page.get_by_role("option", name="typed").click()
        student.after(run)
        student.in_address("mask=3")
    teacher.type("Nobody hid a [MASK] here.")
    student.wait_ready("Nobody hid a [MASK] here.")
    expect(student.page.locator("[role=option][aria-selected=true]")).to_have_count(0)


def test_letting_go_and_typing_alone(new_visitor):
    teacher, student, witness = new_visitor(), new_visitor(), new_visitor()
    code = open_room(teacher)
    witness.open("class", room=code)
    expect(teacher.page.locator(".bw-room")).to_contain_text("1 following")
    student.open("class", view="Room")
    student.page.get_by_label("Room code").fill(code.lower())
    student.page.get_by_role("button", name="Join", exact=True).click()
    student.page.get_by_text("Following room").wait_for()
    expect(teacher.page.locator(".bw-room")).to_contain_text("2 following")
    student.page.get_by_role("button", name="Let go").click()
    student.page.get_by_text("Following room").wait_for(state="hidden")
    expect(student.page.get_by_label("Room code")).to_be_visible()
    go_to(teacher, "Masking")
    expect(teacher.page.locator(".bw-room")).to_contain_text("1 following")
    teacher.type("Nobody [MASK] this.")
    witness.wait_ready("Nobody [MASK] this.")
    assert student.text_drawn() != "Nobody [MASK] this."


def test_poll_compares_class_and_model(new_visitor):
    teacher, student = new_visitor(), new_visitor(width=390)
    code = open_room(teacher)
    student.open("masking", room=code)
    teacher.page.get_by_role("button", name="Ask the class").click()
    strip = student.page.locator(".st-key-bw_room")
    expect(strip.locator(".bw-ask")).to_be_visible()
    expect(strip).to_have_attribute("aria-live", "polite")  # the question is read out, and so is what came out
    student.page.get_by_label("Your guess for the gap").fill("Coffee!")
    student.page.get_by_role("button", name="Send").dblclick()  # counted, whoever is in a hurry
    student.page.get_by_text("Counted: coffee").wait_for()
    expect(student.page.get_by_label("Your guess for the gap")).to_have_value("")
    teacher.page.get_by_text("1 guess of 1 follower").wait_for()
    teacher.page.get_by_role("button", name="Reveal").click()
    expect(teacher.page.get_by_role("row").filter(has_text="coffee")).to_contain_text("100 %")
    expect(strip).to_contain_text("The class said: Coffee (1)")
    expect(student.page.get_by_text("twin-bert says:")).to_contain_text("%")


def test_a_question_comes_into_the_sight_of_who_has_scrolled_down(new_visitor):
    teacher, student = new_visitor(), new_visitor(width=390, height=844)
    student.open("attention", room=open_room(teacher))
    student.page.get_by_text("Following room").wait_for()
    student.page.get_by_test_id("stMain").evaluate("main => main.scrollTo(0, 900)")
    teacher.type("A fish can [MASK] very well.")
    teacher.page.get_by_role("button", name="Ask the class").click()
    expect(student.page.get_by_label("Your guess for the gap")).to_be_in_viewport()
    assert student.page.get_by_test_id("stMain").evaluate("main => main.scrollTop") > 300


def test_wrong_key_and_wrong_code_change_nothing(new_visitor):
    teacher, stranger = new_visitor(), new_visitor()
    code = open_room(teacher)
    page = stranger.open("class", view="Room")
    take_control(page, code, "not the key")
    page.get_by_text("the key is not this room's").wait_for()
    expect(page.locator(".bw-code")).to_have_count(0)
    page.get_by_label("Room code").fill("ZZZZZ")
    page.get_by_role("button", name="Join", exact=True).click()
    page.get_by_text("there is no room ZZZZZ").wait_for()
    expect(teacher.page.locator(".bw-code")).to_have_text(code)
    stranger.no_traceback()


@pytest.mark.parametrize(("chosen", "state", "line"), quick_are(1, [
    ({}, "paused", re.compile(r"seed 0\. Paused\. Step [\d,]+ of 3,000")),
    ({"Size": "2 layers × 64", "Length": "300 steps"}, "done", "300 steps, seed 0. Done: 300 steps")]))
def test_a_class_watches_its_teachers_run_through_a_closed_tab_to_its_reset(new_visitor, chosen, state, line):
    """What is clicked beside a run draws the run's part of the page alone; the class goes along all the same."""
    teacher, student = new_visitor(), new_visitor(width=390, scheme="dark")
    code = open_room(teacher)
    teacher.page.get_by_text("Teacher's key", exact=True).click()
    key = teacher.page.get_by_test_id("stCode").inner_text().strip()
    student.open("pretrain", length="6,000 steps")
    student.page.get_by_role("button", name="Play", exact=True).click()
    wait_state(student.page, "running")  # the teacher's would wait for minutes
    student.open("tokens", room=code)
    train_before(teacher, student, chosen, state)
    run, again = run_id(teacher.page, "run"), teacher.page.context.new_page()
    teacher.page.get_by_role("slider", name="Checkpoint").fill("0")
    expect(student.page.locator(".film-step")).to_have_text("random start")
    student.in_address("frame=0")

    teacher.page.close()
    again.goto(f"{teacher.address}/class?view=Room")
    take_control(again, code, key)
    wait_state(again, state)
    becomes(again, lambda: run_id(again, "run"), run)
    expect(run_line(again)).to_contain_text(line)
    expect(again.get_by_text("the class sees this page")).to_be_visible()
    assert run_id(student.page, "run") == run

    again.get_by_role("button", name="Reset", exact=True).click()
    for page in (again, student.page):
        wait_state(page, "none")
        becomes(page, lambda page=page: "frame=" in page.url, False)
    student.no_traceback()
    student.page.get_by_role("button", name="Let go").click()
    wait_state(student.page, "paused")

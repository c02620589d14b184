"""Calls to a cluster, with responses that are made up: what a visitor is told, what is asked again or given up."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace

import pytest

from bert_core.serving.waiting import Busy, Superseded, TimedOut
from bert_core.trace import TraceRequest

pytestmark = pytest.mark.cluster


class Response:
    """Answers with `found`, or raises it if it is a problem of the way."""

    def __init__(self, found: object = None, problem: BaseException | None = None):
        self.found, self.problem, self.cancelled = found, problem, 0

    def result(self, timeout_s: float) -> object:
        if self.problem is not None:
            raise self.problem
        return self.found

    def cancel(self) -> None:
        from ray.exceptions import RayActorError

        self.cancelled += 1
        raise RayActorError  # as of one that was lost already


def answer(*responses: Response) -> tuple[object, list[Response]]:
    """What a call says to a request whose tries get these responses, and which of them were left over."""
    from bert_core.serving.ray_calls import Call

    left, call = list(responses), Call()

    def ask() -> Response:
        return left.pop(0)

    try:
        return call.answer(call.send(ask), ask, 1.0), left
    except Exception as problem:
        return problem, left


def test_a_request_whose_replica_died_is_asked_again_a_few_times():
    from ray.exceptions import RayActorError

    lost = [Response(problem=RayActorError()) for _ in range(9)]
    assert answer(lost[0], Response("here"))[0] == "here"
    assert answer(*lost[:3], Response("here"))[0] == "here"
    problem, left = answer(*lost)
    assert isinstance(problem, Busy)
    assert "the cluster lost this request several times" in str(problem)
    assert len(left) == 5  # four tries


def test_each_problem_of_the_cluster_is_one_line_for_the_visitor():
    from ray.serve.exceptions import BackPressureError, RayServeException

    for problem, kind, line in (
        (TimeoutError(), TimedOut, "the cluster had no time for this"),
        (BackPressureError(num_queued_requests=512, max_queued_requests=512), Busy, "512 requests wait already"),
        (RayServeException("no replica"), Busy, "is a replica still running"),
    ):
        said, _ = answer(Response(problem=problem))
        assert type(said) is kind
        assert line in str(said)


def failed_on_a_replica() -> Response:
    """Outside of its answers, as by one that can't be packed."""
    from ray.exceptions import RayTaskError

    return Response(problem=RayTaskError("run", "", TypeError("cannot pickle a lock")).as_instanceof_cause())


def test_what_fails_on_a_replica_that_lives_is_told_at_once():
    problem, left = answer(failed_on_a_replica(), Response("here"))
    assert type(problem) is TypeError
    assert str(problem) == "cannot pickle a lock"
    assert len(left) == 1


def test_what_a_call_that_was_given_up_failed_with_is_nobodys_problem():
    from bert_core.serving.ray_calls import Call

    call, asked = Call(), failed_on_a_replica()
    call.send(lambda: asked)
    call.give_up()
    with pytest.raises(Superseded):
        call.answer(asked, lambda: pytest.fail("sent"), 1.0)


class Locked(Exception):
    """As errors of other libraries that hold a connection: can't be packed."""

    def __init__(self, message: str):
        super().__init__(message)
        self.lock = threading.Lock()


class TwoWords(Exception):
    """Can be packed, and not unpacked."""

    def __init__(self, one: str, two: str):
        super().__init__(f"{one} {two}")


@pytest.mark.parametrize(("error", "told"), [
    (ValueError("position 99"), "ValueError('position 99')"),
    (Locked("it failed"), "RuntimeError('Locked: it failed')"),
    (TwoWords("it", "failed"), "RuntimeError('TwoWords: it failed')"),
])
def test_an_error_that_can_t_be_sent_goes_as_its_words(error, told):
    from bert_core.serving.ray_app import Encoder

    def fail(*_, **__):
        raise error

    encoder, request = object.__new__(Encoder.func_or_class), TraceRequest("the dog")
    encoder.engine = SimpleNamespace(run=fail, run_many=fail, call=fail)
    batched = encoder.run.__wrapped__  # Serve's batching asks for a replica around it
    answers = [asyncio.run(encoder.call(None, fail, request)), *asyncio.run(batched(encoder, [request, request]))]
    assert [repr(answer) for answer in answers] == [told] * 3


def test_what_is_given_up_is_cancelled_once_and_nothing_more_is_sent():
    from bert_core.serving.ray_calls import Call

    call, asked = Call(), [Response("answered"), Response("waits"), Response("waits")]
    for response in asked:
        assert call.send(lambda response=response: response) is response
    assert call.answer(asked[0], lambda: None, 1.0) == "answered"
    call.give_up()
    call.give_up()
    assert [response.cancelled for response in asked] == [0, 1, 1]
    with pytest.raises(Superseded):
        call.send(lambda: pytest.fail("sent"))


def test_what_is_left_of_a_call_that_failed_is_given_up():
    from bert_core.serving.ray_calls import Calls

    left = Response("waits")

    def ends_badly() -> None:
        with Calls().begin("ann") as call:
            call.send(lambda: left)
            raise ValueError("position 99")

    with pytest.raises(ValueError, match="position 99"):
        ends_badly()
    assert left.cancelled == 1


def test_how_many_requests_wait_is_told():
    from ray.exceptions import RayActorError

    from bert_core.serving.ray_calls import Calls

    calls, lost, counted = Calls(), Response(problem=RayActorError()), []

    def ask() -> Response:
        counted.append(len(calls))
        return Response("answered")

    with calls.begin("ann") as one, calls.begin(None) as two:
        for response in (lost, Response("waits")):
            one.send(lambda response=response: response)
        two.send(lambda: Response("waits"))
        assert len(calls) == 3
        assert one.answer(lost, ask, 1.0) == "answered"
        assert counted == [2]
        assert len(calls) == 2
        one.give_up()
        assert len(calls) == 1
    assert len(calls) == 0


def test_only_a_newer_call_of_the_same_visitor_gives_an_older_one_up():
    from bert_core.serving import EVERYONE
    from bert_core.serving.ray_calls import Calls

    calls = Calls()
    with (calls.begin("ann") as older, calls.begin("bo") as other, calls.begin(None) as nobody, calls.begin(None),
          calls.begin(EVERYONE) as corpus, calls.begin(EVERYONE)):
        with calls.begin("ann") as newer:
            calls_now = (older, other, nobody, corpus, newer)
            assert [call._given_up for call in calls_now] == [True, False, False, False, False]
        assert set(calls._newest) == {"bo"}
        with calls.begin("ann"):
            pass
        assert {older, other, nobody, corpus} <= calls._waiting
        assert len(calls._waiting) == 6
    assert not calls._newest
    assert not calls._waiting


def test_an_older_call_that_ends_leaves_the_newer_one_in_its_place():
    from bert_core.serving.ray_calls import Calls

    calls = Calls()
    older = calls.begin("ann")
    older.__enter__()
    with calls.begin("ann") as newer:
        older.__exit__(None, None, None)
        assert calls._newest == {"ann": newer}
        with calls.begin("ann"):
            assert newer._given_up


def test_a_thread_that_stays_outlives_its_work():
    from bert_core.serving.ray_engine import on_a_thread_that_stays

    where: list[threading.Thread] = []
    waits = threading.Thread(target=on_a_thread_that_stays, args=(lambda: where.append(threading.current_thread()),),
                             daemon=True)
    waits.start()
    waits.join(20)
    assert not waits.is_alive()
    assert where[0].is_alive()


@pytest.fixture
def cluster(monkeypatch):
    """Gives a cluster whose application has these states in turn, None for none; what is done there is noted."""
    from ray.serve.schema import ApplicationStatus

    from bert_core.serving import ray_engine

    done: list[str] = []

    def prepare(*states: str | None, problem: Exception | None = None) -> list[str]:
        left = list(states)

        def status() -> SimpleNamespace:
            state = left.pop(0)
            found = SimpleNamespace(status=ApplicationStatus[state], message="no room") if state else None
            return SimpleNamespace(applications={"both-ways": found} if found else {"another": None})

        def run(*_, name: str, **__) -> None:
            done.append(f"run {name}")
            if problem is not None:
                raise problem

        monkeypatch.setattr(ray_engine, "serve", SimpleNamespace(
            status=status, run=run, delete=lambda name: done.append(f"delete {name}")))
        return done

    return prepare


@pytest.mark.parametrize(("states", "done"), [
    ([None], ["run both-ways"]), (["RUNNING"], []), (["UNHEALTHY"], []), (["DEPLOYING", "DEPLOYING", "RUNNING"], []),
    (["NOT_STARTED", "RUNNING"], []), (["DELETING", None], ["run both-ways"]),
])
def test_an_application_is_begun_where_there_is_none_and_waited_for_where_there_is(states, done, cluster):
    from bert_core.serving.ray_engine import wait_for_application

    noted = cluster(*states)
    wait_for_application("twin-bert")
    assert noted == done


@pytest.mark.parametrize(("state", "said"), [
    ("RUNNING", ""), ("UNHEALTHY", ""), ("DEPLOYING", ""),
    (None, "the cluster runs no both-ways; deploy it again"),
    ("DELETING", "the cluster runs no both-ways; deploy it again"),
    ("DEPLOY_FAILED", "the cluster can't run both-ways"),
])
def test_a_cluster_that_can_answer_nobody_says_why(state, said, cluster):
    from bert_core.serving.ray_engine import Health

    cluster(state)  # asked twice it would have nothing to say
    health = Health()
    assert [health.problem(), health.problem()] == [said, said]


def test_a_cluster_is_asked_again_after_a_while(cluster, monkeypatch):
    from bert_core.serving import ray_engine

    cluster("RUNNING", None)
    health = ray_engine.Health()
    assert health.problem() == ""
    monkeypatch.setattr(ray_engine, "AFRESH", -1.0)
    assert health.problem().startswith("the cluster runs no")
    assert health.problem() == "the cluster does not answer (IndexError)"


def test_a_cluster_that_lets_one_wait_is_asked_by_one_and_does_not_answer(monkeypatch):
    from bert_core.serving import ray_engine

    asked, comes = [], threading.Event()
    health = ray_engine.Health()

    def ask() -> str:
        asked.append(1)
        comes.wait(30)
        return ""

    monkeypatch.setattr(health, "_ask", ask)
    monkeypatch.setattr(ray_engine, "ANSWERS_WITHIN", 0.05)
    assert [health.problem() for _ in range(3)] == ["the cluster does not answer"] * 3
    comes.set()
    monkeypatch.setattr(ray_engine, "ANSWERS_WITHIN", 30)
    assert health.problem() == ""
    assert len(asked) == 1


def test_an_application_that_failed_is_no_engine(cluster):
    """Each request would wait for it, and the server say that it is ready."""
    from bert_core.serving.ray_engine import wait_for_application

    cluster("DEPLOYING", "DEPLOY_FAILED")
    with pytest.raises(RuntimeError, match=r"the cluster can't run both-ways \(no room\); deploy it again"):
        wait_for_application("twin-bert")
    noted = cluster(None, problem=RuntimeError("no such model"))
    with pytest.raises(RuntimeError, match="no such model"):
        wait_for_application("twin-bert")
    assert noted == ["run both-ways", "delete both-ways"]


def test_whatever_ends_the_work_on_a_thread_that_stays_is_told():
    from bert_core.serving.ray_engine import on_a_thread_that_stays

    def end() -> None:
        raise SystemExit("no cluster")

    told: list[BaseException] = []

    def wait() -> None:
        try:
            on_a_thread_that_stays(end)
        except BaseException as problem:
            told.append(problem)

    waits = threading.Thread(target=wait, daemon=True)
    waits.start()
    waits.join(20)
    assert [str(problem) for problem in told] == ["no cluster"]

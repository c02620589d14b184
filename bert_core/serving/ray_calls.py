"""Calls to a cluster by visitor: a newer one gives up what is left of the older.

The waiting room (waiting.py) stands before one worker. A cluster has queues of
its own, one for each process that asks and one for each replica, bounded in
ray_app.py; of one call they hold `WINDOW` requests at a time, so that who asks
for hundreds leaves room for the others.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from ray.exceptions import RayError, RayTaskError
from ray.serve.exceptions import BackPressureError, RayServeException

from bert_core.serving.local import MAX_BATCH, for_visitor
from bert_core.serving.waiting import EVERYONE, Busy, Superseded, TimedOut

#: Requests of one call that the cluster has at once: a batch.
WINDOW = MAX_BATCH
#: A request is read-only, so that one whose replica died is simply asked again.
_TRIES = 4

#: Sends a request; gives Ray Serve's response, whose `result` waits for the answer.
Ask = Callable[[], Any]


class Call:
    """One call's requests on the cluster; another thread may give it up."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._unanswered: list[Any] = []
        self._given_up = False

    def __len__(self) -> int:
        """Its requests without an answer."""
        return len(self._unanswered)

    def send(self, ask: Ask) -> Any:
        """Ask the cluster.

        Raises:
            Superseded: the call was given up.
        """
        with self._lock:
            if self._given_up:
                raise Superseded("a newer request took this one's place")
            response = ask()
            self._unanswered.append(response)
        return response

    def answer(self, response: Any, ask: Ask, seconds: float) -> Any:
        """Wait so long for an answer; ask another replica if this one died.

        Raises:
            Superseded: the call was given up.
            TimedOut: no replica had the time.
            Busy: too many requests wait for a replica, or none is there.
            Exception: what the replica answered, or failed with outside of its answers.
        """
        for again in range(_TRIES):
            response = self.send(ask) if again else response
            try:
                answer = response.result(timeout_s=seconds)
            except TimeoutError:
                raise TimedOut("the cluster had no time for this within the limit; try again") from None
            except BackPressureError as full:
                raise Busy(f"{full.args[0]} requests wait already; try again in a moment") from None
            except RayError as lost:  # its replica died, or it was cancelled, which the next `send` tells
                if isinstance(lost, RayTaskError) and not self._given_up:  # a replica that lives fails again
                    raise for_visitor(lost.cause) from None
                self._forget(response)
                continue
            except RayServeException:
                break
            self._forget(response)
            if isinstance(answer, Exception):
                raise answer
            return answer
        raise Busy("the cluster lost this request several times; is a replica still running?")

    def _forget(self, response: Any) -> None:
        """Nothing more is to come of it."""
        with self._lock, contextlib.suppress(ValueError):  # given up meanwhile
            self._unanswered.remove(response)

    def give_up(self) -> None:
        """Let the cluster drop what has no answer yet."""
        with self._lock:
            self._given_up = True
            left, self._unanswered = self._unanswered, []
        for response in left:
            with contextlib.suppress(RayError, RayServeException):  # it was refused or lost already
                response.cancel()


class Calls:
    """The calls that wait, and which is each visitor's newest."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: set[Call] = set()
        self._newest: dict[str, Call] = {}

    def __len__(self) -> int:
        """Requests of this process that the cluster has not answered."""
        with self._lock:
            return sum(map(len, self._waiting))

    @contextlib.contextmanager
    def begin(self, visitor: str | None) -> Iterator[Call]:
        """A call of this visitor, whose older one is given up; None and EVERYONE are somebody new each time."""
        call, older = Call(), None
        with self._lock:
            self._waiting.add(call)
            if visitor not in (None, EVERYONE):
                older = self._newest.get(visitor)
                self._newest[visitor] = call
        if older is not None:
            older.give_up()
        try:
            yield call
        finally:
            call.give_up()
            with self._lock:
                self._waiting.discard(call)
                if self._newest.get(visitor) is call:
                    del self._newest[visitor]

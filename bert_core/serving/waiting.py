"""Who waits for a pass, and who goes next: fair between visitors, newest first within one.

While someone types, only their newest request is worth computing: an older one
that still waits is superseded, and gives its place in the queue to the newer.
Between visitors the turn goes round, so that one with many requests can't hold
up the others; what is made once for everyone has a turn for each request. Only
waiting is limited here; who asked says how long it may take with the work
(ALTOGETHER).
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Generator, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import Any

from bert_core.trace import TraceRequest

#: Who asks for what one run makes for everyone: many may wait for it, so each request has a turn of its own.
EVERYONE = "everyone"
#: Requests that may wait at once; beyond, the answer is Busy.
MAX_WAITING = 512
#: Requests of one visitor that may wait at once.
MAX_A_VISITOR = 64
#: Seconds without a turn after which a visitor's requests are given up.
DEADLINE = 30.0
#: Pieces, at a guess, of the texts of one pass, which nobody can join once it has begun: sixteen texts of 500 tokens
#: would hold up everybody for seconds. And of those that a text counts at most: what is beyond is cut.
MOST_PIECES, LONGEST = 2000, 625
#: Letters that a piece of an English text has, with the space before it. Of a Chinese word, a Greek one in an English
#: vocabulary, and of a row of dots a piece has one.
LETTERS = 4
#: How many times as long an answer may take in all, waits and work together.
ALTOGETHER = 4


_PLAIN = re.compile(r"[A-Za-z0-9\s]")


class EngineError(ValueError):
    """The engine did not run the request; the message is one line for the user."""


class Busy(EngineError):
    """Too many requests wait."""


class Superseded(EngineError):
    """A newer request of the same visitor took this one's place."""


class TimedOut(EngineError):
    """The request waited, or took, longer than it may."""


class NoMemory(EngineError):
    """The pass took more memory than there is."""


class Stopped(EngineError):
    """The engine was closed; nothing runs any more."""


@dataclass
class Ticket:
    """One request in the queue.

    Attributes:
        seconds: how long it may wait for each turn.
        call: number of the call that it belongs to; a later call has a larger one.
        work: passes that no Trace holds, one at each step; None asks for a Trace.
        future: its answer; cancelled when nobody waits for that any more.
        deadline: when the present wait has been too long.
    """

    request: TraceRequest
    visitor: str
    seconds: float
    call: int
    work: Generator[None, None, Any] | None = None
    future: Future = field(default_factory=Future)
    deadline: float = field(init=False)

    def __post_init__(self) -> None:
        self.wait_anew()

    def wait_anew(self) -> None:
        self.deadline = time.monotonic() + self.seconds

    def answer(self, value: Any) -> None:
        with contextlib.suppress(InvalidStateError):  # who asked has gone
            self.future.set_result(value)

    def refuse(self, error: Exception) -> None:
        with contextlib.suppress(InvalidStateError):
            self.future.set_exception(error)

    @functools.cached_property
    def length(self) -> int:
        """Pieces that a model may read of its texts, at a guess: they are cut by each model's tokenizer, later."""
        text = f"{self.request.text} {self.request.pair or ''}"[:LETTERS * LONGEST]
        plain = len(_PLAIN.findall(text))
        return min(plain // LETTERS + len(text) - plain, LONGEST)

    @property
    def group(self) -> tuple[Any, ...]:
        """Tickets with the same group can share a pass; work shares none."""
        alone = () if self.work is None else (id(self),)
        return self.request.model, self.request.precision, *alone


class WaitingRoom:
    """Tickets by visitor, handed out round-robin; every method is thread-safe."""

    def __init__(self, most: int = MAX_WAITING, most_a_visitor: int = MAX_A_VISITOR):
        self.most, self.most_a_visitor = most, most_a_visitor
        self._queues: OrderedDict[str, list[Ticket]] = OrderedDict()
        self._changed = threading.Condition()
        self._closed = self._ended = False
        self._calls = itertools.count()

    def __len__(self) -> int:
        with self._changed:
            return self._count()

    def _count(self) -> int:
        return sum(map(len, self._queues.values()))

    def enter(self, requests: list[TraceRequest], visitor: str | None, seconds: float = DEADLINE,
              work: Generator[None, None, Any] | None = None, goes_on: int | None = None) -> list[Ticket]:
        """Queue requests that belong together.

        Args:
            requests: one call's requests; they never supersede each other.
            visitor: who asks; their older waiting tickets are superseded, and
                these have their place. None is somebody new each time,
                EVERYONE somebody new for each request.
            seconds: how long they may wait for a turn.
            work: of the one request, if it asks for more than a Trace.
            goes_on: number of the earlier call whose rest these are.

        Raises:
            Busy: the room is full.
            Stopped: it was closed.
            Superseded: they go on with a call, and a newer one waits.
        """
        with self._changed:
            if self._closed:
                raise _stopped()
            call = next(self._calls) if goes_on is None else goes_on
            own_turns = visitor == EVERYONE
            visitor = f"anonymous-{call}" if visitor is None or own_turns else visitor
            older = self._queues.get(visitor, [])
            if older and older[0].call > call:
                raise _superseded()
            room = self.most - self._count() + len(older)
            if full := len(requests) > min(room, self.most_a_visitor):
                self._queues.pop(visitor, None)
            else:
                names = (f"{visitor}-{n}" if own_turns else visitor for n in range(len(requests)))
                tickets = [Ticket(request, name, seconds, call, work)
                           for request, name in zip(requests, names, strict=True)]
                self._queues |= {t.visitor: [t] for t in tickets} if own_turns else {visitor: list(tickets)}
                self._changed.notify()
            waiting = self._count()
        self._resolve(older)
        if full:
            raise Busy(f"{waiting} requests wait already; try again in a moment")
        return tickets

    @staticmethod
    def _resolve(superseded: list[Ticket]) -> None:
        for ticket in superseded:
            ticket.refuse(_superseded())

    def put_back(self, ticket: Ticket) -> None:
        """Let work that isn't done wait for its next turn, behind the others.

        It is superseded if its visitor asked for something newer meanwhile; the
        rest of an older call gives way to it.
        """
        ticket.wait_anew()
        with self._changed:
            others, closed = self._queues.get(ticket.visitor, []), self._closed
            newer = bool(others) and others[0].call > ticket.call
            if not newer and not closed:
                self._queues[ticket.visitor] = [ticket]
                self._queues.move_to_end(ticket.visitor)
                self._changed.notify()
        if closed:
            ticket.refuse(_stopped())
        else:
            self._resolve([ticket] if newer else others)

    def next_batch(self, most: int, timeout: float | None = None) -> list[Ticket]:
        """Wait for tickets and take up to `most` of one group, a visitor in turn.

        Returns:
            Tickets of one group, or none if `timeout` seconds passed or the room was closed.
        """
        with self._changed:
            self._changed.wait_for(lambda: bool(self._queues) or self._closed or self._ended, timeout)
            if self._ended or not self._queues:
                return []
            expired = self._take_expired()
            batch = self._take_group(most)
        for ticket in expired:
            ticket.refuse(TimedOut("the server had no time for this within the limit; try again"))
        return batch

    def _take_expired(self) -> list[Ticket]:
        """Out of the queues: those past their deadline, and those that nobody waits for."""
        now = time.monotonic()
        expired = [t for queue in self._queues.values() for t in queue if t.deadline < now or t.future.cancelled()]
        for ticket in expired:
            self._remove(ticket)
        return expired

    def _take_group(self, most: int) -> list[Ticket]:
        """Up to `most` of one group, of long texts fewer; the others of those visitors wait anew: it was their turn."""
        batch: list[Ticket] = []
        while len(batch) < most:
            ticket = self._next_of(batch[0].group if batch else None)
            if ticket is None or (batch and sum(one.length for one in (*batch, ticket)) > MOST_PIECES):
                break
            self._remove(ticket)
            if ticket.visitor in self._queues:
                self._queues.move_to_end(ticket.visitor)
            batch.append(ticket)
        for visitor in {ticket.visitor for ticket in batch}:
            for waiting in self._queues.get(visitor, ()):
                waiting.wait_anew()
        return batch

    def done(self, batch: Sequence[Ticket]) -> None:
        """A batch came to its end: what its visitors still have here waits anew, however long the batch worked."""
        with self._changed:
            for visitor in {ticket.visitor for ticket in batch}:
                for waiting in self._queues.get(visitor, ()):
                    waiting.wait_anew()

    def _next_of(self, group: tuple[Any, ...] | None) -> Ticket | None:
        for queue in self._queues.values():
            for ticket in queue:
                if group is None or ticket.group == group:
                    return ticket
        return None

    def _remove(self, ticket: Ticket) -> None:
        queue = self._queues[ticket.visitor]
        queue.remove(ticket)
        if not queue:
            del self._queues[ticket.visitor]

    def end(self) -> None:
        """At the process's end: no batch is given out any more, and whoever waits for an answer goes on waiting.

        Told so, they would still run while the interpreter goes, which aborts it.
        """
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def close(self) -> None:
        """Give up on everyone who waits; whoever waits for a batch is told that none will come."""
        with self._changed:
            self._closed = True
            left = [t for queue in self._queues.values() for t in queue]
            self._queues.clear()
            self._changed.notify_all()
        for ticket in left:
            ticket.refuse(_stopped())


def _stopped() -> Stopped:
    return Stopped("the engine was stopped")


def _superseded() -> Superseded:
    return Superseded("a newer request took this one's place")

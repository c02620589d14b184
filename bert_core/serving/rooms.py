"""Rooms: a class follows what its teacher looks at, and guesses a masked word.

A room keeps what is on the teacher's screen (page and address parameters) and
the tally of one poll. It keeps no name and no address: whoever comes is a number
of the room's own making, the same for the same visitor (so that one browser has one
vote), which nobody can trace back or match with another room's. Everything is bounded,
in memory, behind one lock, and ends by itself.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import re
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bert_core.serving.tally import count_guesses

#: Letters and digits that can't be mistaken for each other on a projector.
ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
CODE_LENGTH = 5
MAX_ROOMS = 64
MAX_FOLLOWERS = 200
#: Rooms that one visitor may have open.
MAX_OF_ONE = 2
#: Seconds after which a room ends, whatever happens; and when the teacher is gone.
MAX_AGE, MAX_IDLE = 4 * 3600.0, 45 * 60.0
#: Seconds without a sign of its teacher after which a room that nobody follows ends for another one if all are in use.
ABANDONED = 90.0
#: Seconds without a sign after which a follower's seat is free again.
FOLLOWER_IDLE = 30.0
MAX_PARAMETERS, MAX_NAME, MAX_VALUE = 40, 40, 4000
MAX_GUESS = 30
#: Words of the model's answer that a room keeps.
MAX_ANSWER = 5

_CODE = re.compile(f"[{ALPHABET}]{{{CODE_LENGTH}}}")


Value = str | int | float | bool | tuple[str, ...] | None


class RoomError(ValueError):
    """A room can't do what was asked; the message is one line for the visitor."""


@dataclass(frozen=True)
class View:
    """What the teacher shows.

    Attributes:
        page: its name in the address.
        widgets: values of the controls, by key.
        parameters: what the address holds besides.
        usual: keys of the controls that are at their default, which no address names.
    """

    page: str = ""
    widgets: tuple[tuple[str, Value], ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()
    usual: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Poll:
    """A question to the class: which word stands at [MASK] of `text`?

    Attributes:
        number: counts the polls of a room, from 1; the same sentence asked again is another poll.
        text: the sentence with its gap.
        guesses: how often each word was guessed, in any case, most often first;
            empty for followers until it is revealed.
        count: number of guesses.
        revealed: whether everyone sees the tally and the model's answer.
        model: name of the model that answered; '' until it did.
        answer: its best words with their probabilities (0 to 1), best first.
    """

    number: int
    text: str
    guesses: tuple[tuple[str, int], ...]
    count: int
    revealed: bool
    model: str = ""
    answer: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class RoomState:
    """What a follower gets to see.

    Attributes:
        lent: what the teacher made and the view needs, by name, as `Rooms.show` was given it.
        guess: what counts of theirs in this poll, '' for none.
    """

    code: str
    view: View
    followers: int
    poll: Poll | None
    lent: Mapping[str, Any] = field(default_factory=dict)
    guess: str = ""


@dataclass
class _Room:
    """The inside of a room; only touched under the registry's lock."""

    code: str
    key: str
    owner: str
    born: float
    seen: float
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    view: View = View()
    lent: Mapping[str, Any] = field(default_factory=dict)
    followers: dict[str, float] = field(default_factory=dict)
    polls: int = 0
    poll_text: str | None = None
    guesses: dict[str, str] = field(default_factory=dict)
    revealed: bool = False
    model: str = ""
    answer: tuple[tuple[str, float], ...] = ()

    def start_poll(self, text: str | None) -> None:
        """A new poll with nothing in it; None for none."""
        self.poll_text, self.guesses, self.revealed = text, {}, False
        self.model, self.answer = "", ()
        self.polls += text is not None


def tidy_code(code: str) -> str:
    """A code as typed, in the form in which it was given out.

    Raises:
        RoomError: it can't be a room's code.
    """
    tidy = re.sub(r"[\s-]", "", code[:20]).upper()
    if not _CODE.fullmatch(tidy):
        raise RoomError(f"a room's code has {CODE_LENGTH} letters or digits; {code[:20]!r} has another form")
    return tidy


def tidy_guess(guess: str) -> str:
    """One word as it was typed, at most MAX_GUESS characters: to a model that knows case, paris is not Paris.

    Raises:
        RoomError: there is no word in it, or more than one.
    """
    parts = "".join(c for c in guess[:200] if c.isprintable()).split()
    words = [word for part in parts if (word := part.strip(".,;:!?\"'()[]"))]
    if not words:
        raise RoomError("type one word as your guess")
    if len(words) > 1:
        raise RoomError(f"one word only: “{' '.join(words)[:MAX_GUESS]}” is {len(words)} words")
    return words[0][:MAX_GUESS]


class Rooms:
    """All rooms of this process.

    Args:
        clock: seconds, monotonic; another one in tests.
        changed: told a room's code when its followers have something new to see, and whether it is another view.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, changed: Callable[[str, bool], None] = lambda *news: None
    ):
        self._clock, self._changed = clock, changed
        self._lock = threading.Lock()
        self._rooms: dict[str, _Room] = {}
        self._secret = secrets.token_bytes(32)

    # --- the teacher ---------------------------------------------------------

    def open(self, visitor: str = "") -> tuple[str, str]:
        """Open a room; of more than MAX_OF_ONE of a visitor's, the one left longest ends.

        Args:
            visitor: what the caller knows the visitor by; '' if by nothing.

        Returns:
            Its code, for everyone, and the teacher's key, for control.

        Raises:
            RoomError: there are as many rooms as this server bears, and none of them is abandoned.
        """
        ended: list[str] = []
        with self._lock:
            self._end_old()
            owner = _number(self._secret, visitor)
            own = sorted((room for room in self._rooms.values() if room.owner == owner), key=lambda room: room.seen)
            for room in own[:len(own) - MAX_OF_ONE + 1]:
                del self._rooms[room.code]
                ended.append(room.code)
            if len(self._rooms) >= MAX_ROOMS and not self._end_abandoned():
                raise RoomError(f"all {MAX_ROOMS} rooms of this server are in use; try again later")
            code = self._new_code()
            now = self._clock()
            opened = self._rooms[code] = _Room(code, secrets.token_urlsafe(18), owner, now, now)
        for gone in ended:
            self._changed(gone, False)
        return opened.code, opened.key

    def is_of(self, code: str, visitor: str) -> bool:
        """Whether this visitor opened the room, in whatever tab."""
        with self._lock:
            room = self._rooms.get(tidy_code(code))
            return room is not None and room.owner == _number(self._secret, visitor)

    def left_open(self, visitor: str) -> str:
        """Code of this visitor's newest open room, '' for none."""
        owner = _number(self._secret, visitor)
        with self._lock:
            own = [room for room in self._rooms.values() if room.owner == owner]
            return max(own, key=lambda room: room.born).code if visitor and own else ""

    def take_back(self, code: str, visitor: str) -> str:
        """The key of a room, for the browser that opened it.

        Raises:
            RoomError: no such room, or another browser's.
        """
        with self._lock:
            room = self._room(code)
            if not visitor or room.owner != _number(self._secret, visitor):
                raise RoomError("another browser opened this room; its key is needed")
            return room.key

    def show(self, code: str, key: str, view: View, lent: Mapping[str, Any] | None = None) -> None:
        """Set what the class sees.

        Args:
            lent: name -> what the view needs and nobody but the teacher has; of its values, so as bounded.

        Raises:
            RoomError: no such room, a wrong key, or a view past the bounds.
        """
        _check_view(view)
        with self._lock:
            room = self._controlled(code, key)
            is_new, room.view, room.lent = room.view != view, view, dict(lent or {})
        if is_new:
            self._changed(room.code, True)

    def ask(self, code: str, key: str, text: str) -> None:
        """Start a poll on the gap in `text`; an earlier one is dropped.

        Raises:
            RoomError: no such room, a wrong key, no gap, or too long a text.
        """
        if "[MASK]" not in text:
            raise RoomError("a poll needs a sentence with a [MASK] in it")
        if len(text) > MAX_VALUE:
            raise RoomError(f"a poll's sentence has at most {MAX_VALUE:,} characters; this one has {len(text):,}")
        with self._lock:
            room = self._controlled(code, key)
            room.start_poll(text)
        self._changed(room.code, False)

    def reveal(self, code: str, key: str) -> None:
        """Show the class's guesses; the model's answer follows by `answer`."""
        with self._lock:
            room = self._controlled(code, key)
            room.revealed = True
        self._changed(room.code, False)

    def answer(self, code: str, key: str, number: int, model: str, words: Sequence[tuple[str, float]]) -> None:
        """Show the class what the model says; nothing happens before the poll is revealed, or after another began.

        Args:
            number: of the poll that it answers.
            model: its name, cut at MAX_NAME characters.
            words: (word, probability 0 to 1), best first; the first MAX_ANSWER are kept.
        """
        with self._lock:
            room = self._controlled(code, key)
            if room.revealed and number == room.polls:
                room.model = model[:MAX_NAME]
                room.answer = tuple((word[:MAX_NAME], share) for word, share in words[:MAX_ANSWER])
        self._changed(room.code, False)

    def end_poll(self, code: str, key: str) -> None:
        """Take the poll off everyone's screen."""
        with self._lock:
            room = self._controlled(code, key)
            room.start_poll(None)
        self._changed(room.code, False)

    def close(self, code: str, key: str) -> None:
        """End the room at once."""
        with self._lock:
            room = self._controlled(code, key)
            del self._rooms[room.code]
        self._changed(room.code, False)

    def teacher_state(self, code: str, key: str) -> RoomState:
        """The room with the tally of a poll that is still running."""
        with self._lock:
            return self._state(self._controlled(code, key), for_teacher=True)

    # --- followers -----------------------------------------------------------

    def join(self, code: str, visitor: str = "") -> str:
        """A seat in the room: a token that says nothing about a person.

        Args:
            visitor: what the caller knows the visitor by, who has the same seat (and guess) at
                every return; '' for a new one each time.

        Raises:
            RoomError: no such room, or it is full.
        """
        with self._lock:
            room = self._room(code)
            seat = _number(room.secret, visitor)
            self._sit(room, seat)
            return seat

    def follow(self, code: str, seat: str) -> RoomState:
        """What the room shows now; keeps the seat taken.

        Raises:
            RoomError: no such room, or it has filled up while the seat was left.
        """
        with self._lock:
            room = self._room(code)
            self._sit(room, seat[:40])
            return replace(self._state(room), guess=room.guesses.get(seat, ""))

    def leave(self, code: str, seat: str) -> None:
        """Give the seat back; its guess still counts, as the same visitor may sit in another tab or come again.

        Nothing happens if room or seat are gone.
        """
        with self._lock, contextlib.suppress(RoomError):
            self._room(code).followers.pop(seat, None)

    def guess(self, code: str, seat: str, number: int, word: str) -> str:
        """One guess a seat; a second one replaces the first. Gives the word as counted.

        Args:
            number: of the poll that it answers.

        Raises:
            RoomError: no such room or seat, this poll is over, or no word.
        """
        word = tidy_guess(word)
        with self._lock:
            room = self._room(code)
            if seat not in room.followers:
                raise RoomError("join the room before guessing")
            if room.poll_text is None or room.revealed:
                raise RoomError("no poll is running now")
            if number != room.polls:
                raise RoomError("the question has changed; guess again for the new one")
            if len(room.guesses) >= MAX_FOLLOWERS and seat not in room.guesses:
                raise RoomError(f"this poll has all the {MAX_FOLLOWERS} guesses it can hold")
            room.guesses[seat] = word
            return word

    # --- inside --------------------------------------------------------------

    def _room(self, code: str) -> _Room:
        self._end_old()
        room = self._rooms.get(tidy_code(code))
        if room is None:
            raise RoomError(f"there is no room {tidy_code(code)}; it may have ended")
        return room

    def _controlled(self, code: str, key: str) -> _Room:
        room = self._room(code)
        if not hmac.compare_digest(room.key.encode(), key.encode("utf-8", "replace")):
            raise RoomError("the key is not this room's; only its teacher can do that")
        room.seen = self._clock()
        return room

    def _state(self, room: _Room, for_teacher: bool = False) -> RoomState:
        self._free_seats(room)
        poll = None
        if room.poll_text is not None:
            tally = count_guesses(room.guesses.values()) if for_teacher or room.revealed else ()
            poll = Poll(room.polls, room.poll_text, tally, len(room.guesses), room.revealed, room.model, room.answer)
        return RoomState(room.code, room.view, len(room.followers), poll, room.lent)

    def _sit(self, room: _Room, seat: str) -> None:
        """This seat is taken, from now on; a RoomError if it is a new one and the room is full."""
        if seat not in room.followers:
            self._free_seats(room)
            if len(room.followers) >= MAX_FOLLOWERS:
                raise RoomError(f"room {room.code} is full ({MAX_FOLLOWERS} followers)")
        room.followers[seat] = self._clock()

    def _free_seats(self, room: _Room) -> None:
        now = self._clock()
        room.followers = {seat: seen for seat, seen in room.followers.items() if now - seen < FOLLOWER_IDLE}

    def _end_old(self) -> None:
        now = self._clock()
        self._rooms = {c: r for c, r in self._rooms.items() if now - r.born < MAX_AGE and now - r.seen < MAX_IDLE}

    def _end_abandoned(self) -> bool:
        """End the room that its teacher left longest ago and nobody follows; whether there was one.

        A teacher's tab gives a sign every two seconds, and once a minute from behind other tabs.
        """
        now = self._clock()
        for room in sorted(self._rooms.values(), key=lambda room: room.seen):
            self._free_seats(room)
            if now - room.seen > ABANDONED and not room.followers:
                del self._rooms[room.code]
                return True
        return False

    def _new_code(self) -> str:
        while True:
            code = "".join(secrets.choice(ALPHABET) for _ in range(CODE_LENGTH))
            if code not in self._rooms:
                return code


def _number(secret: bytes, visitor: str) -> str:
    """The visitor's number to whoever holds the secret; a random one for ''."""
    if not visitor:
        return secrets.token_urlsafe(16)
    return hashlib.blake2b(visitor.encode("utf-8", "replace"), key=secret, digest_size=16).hexdigest()


def _check_view(view: View) -> None:
    """RoomError for a view past the bounds."""
    if not re.fullmatch(r"[a-z]{1,20}", view.page):
        raise RoomError(f"{view.page[:20]!r} is no page")
    settings = (*view.widgets, *view.parameters)
    if len(settings) > MAX_PARAMETERS:
        raise RoomError(f"the page has more than {MAX_PARAMETERS} settings; the room can't carry them")
    for name, value in settings:
        if len(name) > MAX_NAME or len(str(value)) > MAX_VALUE:
            raise RoomError(f"the setting {name[:MAX_NAME]!r} is too long for a room ({MAX_VALUE} characters)")

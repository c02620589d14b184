"""The server's start: the default model is loaded before the first visitor comes, and /ready says so.

torch is imported by the thread that loads, so that the server answers at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor

from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from streamlit import config

from ui import history, messages, served, settings, uploads
from ui.bell import BELL
from ui.look import AddLook
from ui.packed import SendPacked
from ui.sockets import DropWhatComesTooLate, TurnAway
from ui.ticks import wait_for_pictures
from ui.visitors import GiveCookie

#: Seconds after which a model that could not be loaded is tried again: a disk, a hub or memory may come back.
AGAIN = 30.0
#: Files and connections that the server may have open at once, where its system lets it.
CONNECTIONS = 10240
#: Seconds for which a file that was made for a click waits to be fetched.
FETCHED_WITHIN = 10.0


class Start:
    """What happens beside the pages when the server starts.

    Attributes:
        ready: whether the default model is loaded.
        problem: one line that says why it could not be, '' while there is none.
    """

    def __init__(self) -> None:
        self.ready, self.problem = False, ""
        self._asked = ThreadPoolExecutor(1, "ready")
        self._of_the_engine: Callable[[], str] = str

    @property
    def routes(self) -> list[Route]:
        """/ready on the explorer's own port, and what its pages fetch."""
        return [Route("/ready", self._answer, methods=["GET", "HEAD"]), *served.routes()]

    @property
    def middleware(self) -> list[Middleware]:
        """What every answer of the server goes through."""
        return [Middleware(each) for each in (TurnAway, GiveCookie, DropWhatComesTooLate, SendPacked, AddLook)]

    @contextlib.asynccontextmanager
    async def lifespan(self, app: object) -> AsyncIterator[None]:
        """Begin to load, and don't wait for it; when the server is told to stop, end what would outlive it."""
        allow_many_connections()
        BELL.hang_in(asyncio.get_running_loop())
        every_page_through_app()
        ask_nobody_outside()
        read_the_look_once()
        wait_for_pictures()
        history.keep_addresses()
        keep_files_until_fetched()
        uploads.bound()
        messages.bound()
        threading.Thread(target=self.begin, name="start", daemon=True).start()
        yield
        if "ui.training" in sys.modules:  # not where nothing was ever trained or shown
            sys.modules["ui.training"].close()

    def begin(self) -> None:
        """Serve the metrics if asked to, and load the default model, however often that takes."""
        try:
            from bert_core.serving.metrics import serve_if_asked
            from bert_core.training.live.places import remove_left_behind
            from ui import shell, state  # noqa: F401 - the first visitor finds all of it imported

            for line in settings.misread():
                logging.getLogger("both_ways").warning(line)
            with contextlib.suppress(OSError):  # there may be no folder for them here at all
                remove_left_behind()
            serve_if_asked(lambda: not self.trouble())
        except BaseException as error:  # a thread has nobody else to tell
            self._say(error)
            return
        while not self.load():
            time.sleep(AGAIN)

    def load(self) -> bool:
        """Load the default model; whether it is there now."""
        try:
            from ui import state

            self._of_the_engine = state.start_engine().problem
            self.ready = True
        except BaseException as error:  # a tokenizer's panic is no Exception
            self._say(error)
        return self.ready

    def _say(self, error: BaseException) -> None:
        """At /ready, and once in the log."""
        problem = " ".join(str(error).split()) or type(error).__name__
        if problem != self.problem:
            self.problem = problem
            logging.getLogger("both_ways").error("not ready: %s", problem)

    def trouble(self) -> str:
        """Why nobody can be answered now, '' if somebody can; a cluster is asked, for which one may have to wait."""
        return self._of_the_engine() if self.ready else self.problem or "the model is loading"

    async def _answer(self, request: Request) -> PlainTextResponse:
        # In a thread of its own: those that Streamlit shares may all be making files for a while.
        trouble = await asyncio.get_running_loop().run_in_executor(self._asked, self.trouble)
        if trouble:
            return PlainTextResponse(f"not ready: {trouble}\n", status_code=503)
        return PlainTextResponse("ready\n")


def allow_many_connections() -> None:
    """Have a class fit in: a browser's first visit takes seven connections, and macOS gives a program 256."""
    with contextlib.suppress(ImportError, OSError, ValueError):  # Windows counts none
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = CONNECTIONS if hard == resource.RLIM_INFINITY else min(CONNECTIONS, hard)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def every_page_through_app() -> None:
    """Tell Streamlit that app.py navigates, before the first visitor's run would.

    Because of the folder pages/ it would start that visitor's page without app.py, with another sidebar, and only
    then go through it (`shell.open_page` sees to that where this private switch is gone).
    """
    with contextlib.suppress(ImportError):
        from streamlit.runtime.pages_manager import PagesManager

        PagesManager.uses_pages_directory = False


def ask_nobody_outside() -> None:
    """Refuse the sockets of other origins' pages without asking the internet for this server's own address first.

    Streamlit asks an address of Amazon's at each of them, in the thread that serves everybody, who waits for up to
    two seconds where there is no way out. An address of its own is named by `server.corsAllowedOrigins`.
    """
    with contextlib.suppress(ImportError):
        from streamlit import net_util

        net_util.get_external_ip = lambda: None


def read_the_look_once() -> None:
    """Keep each section of the settings as it is at the server's start.

    Streamlit goes through all its settings six times at the beginning of every run, for the colours that stand in
    .streamlit/config.toml, in the thread that serves everybody: a twentieth of all there is to do for a class.
    """
    with contextlib.suppress(AttributeError):
        kept = functools.cache(config.get_options_for_section)
        config.get_options_for_section = lambda section: dict(kept(section))


def keep_files_until_fetched() -> None:
    """Keep a file that was made for a click until its browser has had the time to fetch it.

    Streamlit forgets it at the second end of a script, whosever: where a class types, that is a tenth of a second,
    and the browser gets a 404 for its file.
    """
    with contextlib.suppress(ImportError):
        from streamlit.runtime.media_file_manager import MediaFileMetadata as File

        def mark_for_delete(self: File) -> None:
            self.unused_since = getattr(self, "unused_since", time.monotonic())
            self._is_marked_for_delete = time.monotonic() - self.unused_since > FETCHED_WITHIN

        File.mark_for_delete = mark_for_delete

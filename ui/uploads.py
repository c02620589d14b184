"""What is uploaded and kept in memory is bounded, for a visitor and for the server.

Streamlit keeps every file that is put below its address for as long as the
session lasts, whether or not a page asked for one, and bounds each file alone.
"""

from __future__ import annotations

import contextlib
import functools
import sys

import streamlit as st
from starlette.exceptions import HTTPException
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from ui import visitors

#: Streamlit's cookie against forged requests.
XSRF_COOKIE = "_streamlit_xsrf"
#: Files and bytes of a session: its newest ones. A page asks for one file, and leaves it behind when it is left.
FILES, BYTES = 4, 12 * 2**20
#: Bytes of all sessions together.
MOST = 256 * 2**20


def why_not() -> str:
    """Why this browser's files are refused, in a line; '' where they are taken.

    Streamlit compares a number in a cookie with one in the request, so that no other site can send a file for a
    visitor; without the cookie the uploader would say no more than "403".
    """
    is_asked_for = st.context.headers and st.get_option("server.enableXsrfProtection")  # no headers: no browser
    if not is_asked_for or XSRF_COOKIE in st.context.cookies:
        return ""
    return "No file can be uploaded: your browser keeps no cookies of this site. Allow them, then reload the page."


def bound() -> None:
    """Make Streamlit's store of uploads bounded; once done, nothing changes."""
    with contextlib.suppress(ImportError):
        from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager as Store

        add = getattr(Store.add_file, "__wrapped__", Store.add_file)

        @functools.wraps(add)
        def add_file(self: Store, session_id: str, file: UploadedFileRec) -> None:
            """Keep a file, in the place of the session's oldest ones; HTTPException if the server is full."""
            if not visitors.is_connected(session_id):  # it left while this came, and nothing would end the file
                raise HTTPException(400, "The tab that sent this file is gone.")
            stored = [(session, one) for session, files in list(self.file_storage.items())
                      for one in list(files.values()) if (session, one.file_id) != (session_id, file.file_id)]
            own = [one for session, one in stored if session == session_id]
            goes = 0
            while own[goes:] and (len(own[goes:]) >= FILES or _bytes(file, *own[goes:]) > BYTES):
                goes += 1
            if _bytes(file, *(one for _, one in stored)) - _bytes(*own[:goes]) > MOST:
                raise HTTPException(413, "The server keeps as many uploads as it can; try again in a few minutes.")
            for one in (*own[:goes], file):  # one put again is the newest
                self.remove_file(session_id, one.file_id)
            add(self, session_id, file)

        Store.add_file = add_file


def _bytes(*files: UploadedFileRec) -> int:
    """What they take, by what is there and not by what was announced; a name may be as long as a file."""
    return sum(sys.getsizeof(kept) for file in files for kept in (file.data, file.name, file.type, file.file_id))

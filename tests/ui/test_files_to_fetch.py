"""A file that was made for a click is there when its browser comes for it, however many others type meanwhile."""

import time

import pytest
from streamlit.runtime.media_file_manager import MediaFileManager, MediaFileMetadata
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage

from ui import server


@pytest.fixture
def files(monkeypatch):
    monkeypatch.setattr(MediaFileMetadata, "mark_for_delete", MediaFileMetadata.mark_for_delete)  # it comes back
    server.keep_files_until_fetched()
    return MediaFileManager(MemoryMediaFileStorage("/media"))


def test_others_scripts_that_end_take_no_file_away_until_it_had_its_time(files, monkeypatch):
    placeholder = files.add_deferred(lambda: "a,b", "text/csv", "here", "map.csv")
    name = files.execute_deferred(placeholder).rsplit("/", 1)[1].split(".")[0]
    for _ in range(50):
        files.remove_orphaned_files()
    assert files.read_file(name).content == b"a,b"
    later = time.monotonic() + server.FETCHED_WITHIN + 1
    monkeypatch.setattr(time, "monotonic", lambda: later)
    for _ in range(2):
        files.remove_orphaned_files()
    assert files.read_file(name) is None

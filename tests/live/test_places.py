"""What a killed server left behind goes with the next one's start; a living server's folder stays."""

import os
import tempfile
import time

import pytest

from bert_core.training.live.places import claim_folder, remove_left_behind


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def aged(folder):
    """The folder as if its server had been started an hour ago."""
    os.utime(folder / "server.lock", (time.time() - 3600,) * 2)
    return folder


def test_folders_of_servers_that_are_no_more_go_and_no_others():
    living, lock = claim_folder()
    killed, its_lock = claim_folder()
    its_lock.release()
    (killed / "run").mkdir()
    (killed / "run" / "text.txt").write_text("a visitor's text")
    aged(living), aged(killed)
    remove_left_behind()
    assert living.exists()
    assert not killed.exists()
    lock.release()
    remove_left_behind()
    assert not living.exists()


def test_what_is_no_servers_folder_stays(temporary):
    (temporary / "both-ways-notes").mkdir()
    begun, lock = claim_folder()  # made this moment, and its lock not taken yet
    lock.release()
    kept, lock = claim_folder()
    lock.release()
    elsewhere = aged(kept.rename(temporary / "elsewhere"))
    (temporary / "both-ways-link").symlink_to(elsewhere)
    linked, lock = claim_folder()
    lock.release()
    (linked / "server.lock").unlink()
    (linked / "server.lock").symlink_to(elsewhere / "server.lock")
    remove_left_behind()
    assert {path.name for path in temporary.iterdir()} == {"both-ways-notes", begun.name, linked.name, "elsewhere",
                                                           "both-ways-link"}

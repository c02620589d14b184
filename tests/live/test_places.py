"""What a killed server left behind goes with the next one's start; a living server's folder stays."""

import tempfile

import pytest

from bert_core.training.live.places import claim_folder, remove_left_behind


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_folders_of_servers_that_are_no_more_go_and_no_others():
    living, lock = claim_folder()
    killed, its_lock = claim_folder()
    its_lock.close()
    (killed / "run").mkdir()
    (killed / "run" / "text.txt").write_text("a visitor's text")
    remove_left_behind()
    assert living.exists()
    assert not killed.exists()
    lock.close()
    remove_left_behind()
    assert not living.exists()


def test_what_is_no_servers_folder_stays(temporary):
    (temporary / "both-ways-notes").mkdir()
    begun = temporary / "both-ways-begun"  # made this moment, and not locked yet
    begun.mkdir()
    (begun / "server.lock").touch()
    kept, lock = claim_folder()
    lock.close()
    elsewhere = kept.rename(temporary / "elsewhere")
    (temporary / "both-ways-link").symlink_to(elsewhere)
    remove_left_behind()
    assert {path.name for path in temporary.iterdir()} == {"both-ways-notes", "both-ways-begun", "elsewhere",
                                                           "both-ways-link"}

"""Every notebook runs from top to bottom, with fewer steps than in class."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path, monkeypatch):
    monkeypatch.setenv("NOTEBOOK_STEPS", "12")
    monkeypatch.setenv("NOTEBOOK_EPOCHS", "2")
    monkeypatch.setenv("NOTEBOOK_WAY", "frozen")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    notebook = nbformat.read(path, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)
    client = NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": path.parent}})
    done = client.execute()
    printed = [cell.outputs for cell in done.cells if cell.cell_type == "code" and cell.outputs]
    assert len(printed) >= 4
    if path.stem == "classification_fine_tuning":  # its second section shows both baselines before anything is tuned
        assert "bag of words 50.0%" in str(printed)
        assert "np.float" not in str(printed)


def test_there_is_one_for_each_exercise_and_one_from_scratch():
    assert [path.stem for path in NOTEBOOKS] == ["classification_fine_tuning", "encoder_from_scratch", "mlm_training"]

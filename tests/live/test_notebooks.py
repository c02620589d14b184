"""Every notebook runs from top to bottom, with fewer steps than in class."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SHORTER = {"NOTEBOOK_STEPS": "12", "NOTEBOOK_EPOCHS": "2", "NOTEBOOK_WAY": "frozen", "OMP_NUM_THREADS": "1"}
#: What a notebook before has left goes: its names, its way to bert_core, and that; torch is imported once.
FORGET = f"""
import sys
for name in [name for name in sys.modules if name.partition(".")[0] == "bert_core"]:
    del sys.modules[name]
sys.path[:] = [path for path in sys.path if path != {str(ROOT)!r}]
get_ipython().run_line_magic("reset", "-f")
"""


@pytest.fixture(scope="module")
def client():
    """One kernel for all of them, in their folder."""
    made = NotebookClient(nbformat.v4.new_notebook(), timeout=300, kernel_name="python3",
                          resources={"metadata": {"path": ROOT / "notebooks"}})
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SHORTER.items():
            patch.setenv(name, value)
        with made.setup_kernel():
            yield made


def run(client: NotebookClient, *sources: str) -> list[list]:
    """The outputs of cells of code, run in a kernel that has forgotten those before; their first error is raised."""
    cells = [nbformat.v4.new_code_cell(source) for source in (FORGET, *sources)]
    client.nb = nbformat.v4.new_notebook(cells=cells)
    client.reset_execution_trackers()
    return [client.execute_cell(cell, index).outputs for index, cell in enumerate(cells)][1:]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path, client):
    notebook = nbformat.read(path, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)
    printed = [out for out in run(client, *(cell.source for cell in notebook.cells if cell.cell_type == "code")) if out]
    assert len(printed) >= 4
    if path.stem == "classification_fine_tuning":  # its second section shows both baselines before anything is tuned
        assert "bag of words 50.0%" in str(printed)
        assert "np.float" not in str(printed)


@pytest.mark.parametrize("lost", ["there", "torch", "import bert_core"])
def test_a_notebook_finds_nothing_that_another_has_left(client, lost):
    run(client, f"import sys, torch\nsys.path.insert(0, {str(ROOT)!r})\nimport bert_core\nthere = True")
    with pytest.raises(CellExecutionError, match="NameError|ModuleNotFoundError"):
        run(client, lost)


def test_there_is_one_for_each_exercise_and_one_from_scratch():
    assert [path.stem for path in NOTEBOOKS] == ["classification_fine_tuning", "encoder_from_scratch", "mlm_training"]

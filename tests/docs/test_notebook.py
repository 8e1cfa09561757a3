"""The notebook runs from its first cell to its last, and learns something."""

import re
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "quickstart.ipynb"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_notebook_trains_on_the_digits(tmp_path):
    nbformat, nbclient = (
        pytest.importorskip(name) for name in ("nbformat", "nbclient")
    )
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    said = "".join(
        output.get("text", "")
        for cell in notebook.cells
        for output in cell.get("outputs", [])
    )
    accuracies = re.findall(r"epoch \d: accuracy ([\d.]+)%", said)
    assert len(accuracies) == 4
    assert float(accuracies[-1]) > 60
    assert "smaller than raw" in said


def test_the_notebook_is_stored_without_what_it_printed():
    nbformat = pytest.importorskip("nbformat")
    for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
        assert not cell.get("outputs"), cell["id"]
        assert cell.get("execution_count") is None

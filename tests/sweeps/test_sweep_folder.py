import pytest

from lightsplit.errors import RunError
from lightsplit.sweeps import SweepFolder, expand, read_sweep
from lightsplit.sweeps.sweep_file import Sweep


def test_the_requested_sweep_is_kept_and_gives_the_same_cells(tmp_path):
    sweep = Sweep(
        "grid",
        title="A grid",
        common={"seed": [0, 1], "epochs": 2},
        cells=({"codec": "raw"}, {"codec": "topk", "ratio": [4, 8]}),
        exclude=({"ratio": 4, "seed": 1},),
    )
    with SweepFolder(tmp_path / "out").opened(resume=False) as folder:
        folder.write(sweep)
    again = read_sweep(tmp_path / "out" / "sweep.toml")
    keys = [{cell.key for cell in expand(one)} for one in (sweep, again)]
    assert keys[0] == keys[1]
    assert len(keys[0]) == 5


def test_a_place_that_cannot_be_a_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("mine")
    for place in ("file", "file/out"):
        folder = SweepFolder(tmp_path / place)
        with pytest.raises(RunError, match="cannot make"), folder.opened(resume=True):
            pass


def test_the_lock_is_given_back(tmp_path):
    for _ in range(2):
        with SweepFolder(tmp_path / "out").opened(resume=True):
            pass

import json

import pytest

from lightsplit.sweeps.sweeping import MOST_LOSSES
from lightsplit.sweeps.work import ERROR_FILE, Advance, Ended

pytestmark = pytest.mark.slow

TWO = "[grid]\nseed = [0, 1]\n"


def records(folder):
    return {
        path.parent.name: json.loads(path.read_text())
        for path in folder.path.glob("*/record.json")
    }


def test_every_cell_leaves_a_run_folder(write_sweep, sweep_run, inline):
    run = sweep_run(write_sweep(TWO), inline())
    state = run.run()
    assert len(state.finished) == 2
    assert not state.left
    made = records(run._folder)
    assert sorted(record["seed"] for record in made.values()) == [0, 1]
    assert all(name.endswith(tuple(state.cells)) for name in made)


def test_finished_cells_are_never_run_again(write_sweep, sweep_run, inline):
    sweep_run(write_sweep(TWO), inline()).run()
    workers = inline()
    wider = write_sweep("[grid]\nseed = [1, 2, 0]\n")
    state = sweep_run(wider, workers).run()
    assert len(state.kept) == 2
    assert len(workers.started) == 1


def test_a_damaged_record_is_made_again_from_the_checkpoint(
    write_sweep, sweep_run, inline
):
    run = sweep_run(write_sweep(TWO), inline())
    run.run()
    whole = records(run._folder)
    broken = next(run._folder.path.glob("*/record.json"))
    broken.write_text(broken.read_text()[:100])
    workers = inline()
    sweep_run(write_sweep(TWO), workers).run()
    assert len(workers.started) == 1
    assert records(run._folder) == whole


def test_a_failed_cell_does_not_stop_the_others_and_keeps_its_error(
    write_sweep, sweep_run, inline
):
    sweep = write_sweep("[grid]\nclients = [99, 3]\n")
    run = sweep_run(sweep, inline())
    state = run.run()
    assert (len(state.finished), len(state.failed)) == (1, 1)
    (key,) = state.failed
    assert "99 clients" in state.failed[key]
    (file,) = run._folder.path.glob(f"*/{ERROR_FILE}")
    assert file.parent.name.endswith(key)
    assert state.failed[key] in file.read_text()


def test_an_unexpected_failure_is_kept_with_its_traceback(
    write_sweep, sweep_run, inline, monkeypatch
):
    def explode(*_, **__):
        raise ZeroDivisionError("all of a sudden")

    monkeypatch.setattr("lightsplit.sweeps.work.run", explode)
    run = sweep_run(write_sweep(TWO), inline())
    assert set(run.run().failed.values()) == {"ZeroDivisionError: all of a sudden"}
    texts = [file.read_text() for file in run._folder.path.glob(f"*/{ERROR_FILE}")]
    assert len(texts) == 2
    assert all("Traceback" in text for text in texts)


def test_a_cell_that_failed_is_tried_again_and_its_error_forgotten(
    write_sweep, sweep_run, inline, monkeypatch
):
    with monkeypatch.context() as patch:
        patch.setattr("lightsplit.sweeps.work.run", lambda *_, **__: 1 / 0)
        sweep_run(write_sweep(TWO), inline()).run()
    run = sweep_run(write_sweep(TWO), inline())
    assert len(run.run().finished) == 2
    assert not list(run._folder.path.glob(f"*/{ERROR_FILE}"))


def lost(order):
    return Ended(order.key, "lost", "gone")


def test_the_cell_of_a_dead_worker_is_run_again(write_sweep, sweep_run, inline):
    workers = inline(faults={1: lost})
    state = sweep_run(write_sweep(TWO), workers).run()
    assert len(state.finished) == 2
    assert len(workers.started) == 3


def test_a_word_that_comes_after_the_end_of_its_cell_is_not_waited_for(
    write_sweep, sweep_run, inline
):
    class Late(inline):
        def events(self, timeout_seconds):
            (*_, ended) = super().events(timeout_seconds)
            return [ended, Advance(ended.key, 1, 2)]

    state = sweep_run(write_sweep(TWO), Late()).run()
    assert len(state.finished) == 2
    assert not state.running


def test_a_cell_that_kills_every_worker_is_given_up(write_sweep, sweep_run, inline):
    starts = range(1, MOST_LOSSES + 2)
    workers = inline(faults=dict.fromkeys(starts, lost))
    run = sweep_run(write_sweep(TWO), workers)
    state = run.run()
    assert list(state.failed.values()) == ["gone"]
    assert len(state.finished) == 1
    (file,) = run._folder.path.glob(f"*/{ERROR_FILE}")
    assert "gone" in file.read_text()


def test_a_stopped_sweep_resumes_where_it_was(write_sweep, sweep_run, inline):
    workers = inline()
    run = sweep_run(write_sweep(TWO), workers, watch=lambda state: run.stop())
    stopped = run.run()
    assert not stopped.finished
    assert len(stopped.left) == 2
    whole = sweep_run(write_sweep(TWO), inline())
    assert len(whole.run().finished) == 2


def test_a_cell_continued_from_its_checkpoint_equals_one_that_was_not_stopped(
    write_sweep, sweep_run, inline, tmp_path
):
    sweep = write_sweep("")
    first = inline()
    run = sweep_run(sweep, first, watch=lambda _state: None)
    first.stop()
    assert run.run().left
    sweep_run(sweep, inline()).run()
    (stopped,) = run._folder.path.glob("*/model.safetensors")
    weights = stopped.read_bytes()
    for file in sorted(stopped.parent.rglob("*"), reverse=True):
        file.unlink() if file.is_file() else file.rmdir()
    sweep_run(sweep, inline()).run()
    assert stopped.read_bytes() == weights


@pytest.mark.parametrize("outcome", ["done", "stopped"])
def test_a_worker_that_does_not_see_the_folder_sends_its_files(
    write_sweep, sweep_run, tmp_path, outcome
):
    from dataclasses import replace

    from lightsplit.sweeps.work import run_cell, unpack

    run = sweep_run(write_sweep(""), None)
    (cell,) = run.state.cells.values()
    order = replace(
        run._order,
        key=cell.key,
        settings=cell.experiment.tables(),
        sweep_folder=str(tmp_path / "not here"),
        folder_name="cell",
    )
    ended = run_cell(order, lambda _event: None, lambda: outcome == "stopped")
    assert ended.outcome == outcome
    unpack(ended.files, tmp_path / "back")
    assert (tmp_path / "back" / "checkpoint" / "latest").is_file()
    assert (tmp_path / "back" / "record.json").is_file() == (outcome == "done")


def test_files_that_are_sent_back_stay_inside_their_folder(tmp_path):
    import io
    import zipfile

    from lightsplit.sweeps.work import unpack

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("../../outside", b"x")
    unpack(buffer.getvalue(), tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b" / "outside").is_file()
    assert not (tmp_path / "outside").exists()

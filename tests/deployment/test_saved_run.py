"""A restarted server is in the state of its last checkpoint."""


def test_a_restored_run_is_the_saved_one(net, tmp_path):
    first = net.make_run(tmp_path)
    assert first._saved.exists
    first._boundary.number, first._boundary.sealed_side = 2, b"side"
    first.progress.note_turn(0, 1, 2)
    first._steps._server.applied = [(0, 0)]
    first.save()
    assert first._saved.oldest_steps == [0, 0, 0]  # of the checkpoint before
    first.progress.note_turn(1, 1, 2)
    first.save()
    assert first._saved.oldest_steps == [1, 0, 0]
    again = net.make_run(tmp_path, name="another")
    assert again.run == "run"
    assert (again._boundary.number, again._boundary.sealed_side) == (2, b"side")
    assert again.progress == first.progress
    assert again._steps._server.applied == [(0, 0)]
    assert again._saved.oldest_steps == [1, 0, 0]


def test_a_run_is_saved_before_its_first_turn(net, tmp_path):
    run = net.make_run(tmp_path, has_begun=False)
    assert not run._saved.exists
    run.begin()
    assert run._saved.exists

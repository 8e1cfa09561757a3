"""The order of turns, while they are applied and handed in."""

from lightsplit.runs.plan import RunPlan


def test_nobody_has_a_turn_before_the_run_has_begun(net, tmp_path):
    turns = net.make_run(tmp_path, has_begun=False).turns
    assert (turns.current, turns.oldest, turns.of(0)) == (None, None, None)
    assert (turns.is_begun, turns.is_at_boundary) == (False, True)
    assert turns.position == (0, 0)


def test_the_first_client_begins(net, tmp_path):
    turns = net.make_run(tmp_path).turns
    assert turns.is_begun
    assert (turns.current.client, turns.current.number) == (0, 0)
    assert turns.of(0) is turns.current is turns.oldest
    assert turns.of(1) is None


def test_nobody_has_a_turn_after_the_end(net, tmp_path):
    turns = net.make_run(tmp_path).turns
    turns.end()
    assert (turns.current, turns.of(0)) == (None, None)


def test_an_evaluation_follows_the_last_turn_with_private_heads(net, tmp_path):
    for heads in ("private", "shared"):
        run = net.make_run(tmp_path / heads, (1,), plan=RunPlan(), heads=heads)
        assert run.turns.current is not None
        assert run.turns.evaluates_next == (heads == "private")


def test_a_late_turn_keeps_its_first_step(net, tmp_path):
    run = net.make_run(tmp_path, heads="private")
    late = run.turns.current
    run.answer(late, net.code(0, 0))
    run.answer(late, net.gradient(0, 0))
    assert run.turns.pace(late).first_step == 0
    assert run.start_next_early(late)
    assert run.turns.pace(late).first_step == 0
    assert run.progress.client_steps == [1, 0, 0]
    assert run.turns.late is late


def test_the_pace_of_a_turn_stays_and_the_next_turn_goes_on_from_it(net, tmp_path):
    run = net.make_run(tmp_path, heads="private")
    first = run.turns.current
    pace = run.turns.pace(first)
    run.answer(first, net.code(0, 0))
    run.answer(first, net.gradient(0, 0))
    assert run.start_next_early(first)
    following = run.turns.pace(run.turns.current)
    assert following.run_step == pace.run_step + first.steps
    assert run.turns.pace(first) == pace

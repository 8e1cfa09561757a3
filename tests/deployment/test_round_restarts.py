from lightsplit.deployment.round_restarts import RoundRestarts


def test_an_owner_that_made_a_round_fail_is_left_out_if_the_others_are_enough():
    restarts = RoundRestarts()
    restarts.note({2})
    assert restarts.fit({0, 1, 2}, 2) == {0, 1}
    assert restarts.fit({0, 1, 2}, 3) == {0, 1, 2}


def test_every_failure_counts_until_the_round_is_over():
    restarts = RoundRestarts()
    assert (restarts.owners, restarts.count) == (set(), 0)
    restarts.note({2})
    restarts.note({1, 2})
    assert (restarts.owners, restarts.count) == ({1, 2}, 3)
    restarts.clear()
    assert restarts.fit({0, 1, 2}, 1) == {0, 1, 2}

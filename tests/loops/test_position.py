from lightsplit.loops.position import Position, number_of


def test_a_position_survives_as_a_tensor():
    here = Position(3, 7, number_of("f" * 32))
    assert Position.of(here.to_tensor()) == here

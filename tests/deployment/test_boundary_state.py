import pytest
import torch

from lightsplit.deployment.boundary_state import BoundaryState
from lightsplit.protocol.control import Finished


@pytest.mark.parametrize(("number", "sealed"), [(0, b""), (1, b"side"), (2, b"")])
def test_a_captured_state_can_be_returned_to_more_than_once(number, sealed, net):
    server = net.Ends().server
    boundary = BoundaryState(server.side)
    boundary.number, boundary.sealed_side = number, sealed
    captured = boundary.capture()
    before = {name: t.clone() for name, t in server.side.state().items()}
    for _ in range(2):
        boundary.number, boundary.sealed_side = 9, b"later"
        with torch.no_grad():
            for weight in server.side.modules.parameters():
                weight.add_(1)
        boundary.put_back(captured)
        assert (boundary.number, boundary.sealed_side) == (number, sealed)
        after = server.side.state()
        assert all(torch.equal(after[name], before[name]) for name in before)


def test_the_end_names_the_turn_that_sealed_the_side(net):
    boundary = BoundaryState(net.Ends().server.side)
    assert boundary.finished("schedule") == Finished("schedule", 0, b"")
    boundary.number, boundary.sealed_side = 3, b"side"
    assert boundary.finished("patience") == Finished("patience", 2, b"side")

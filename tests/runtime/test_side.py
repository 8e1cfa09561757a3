import pytest
import torch

from lightsplit.errors import RunError


def test_a_state_goes_in_where_it_came_out(pair, make_batches, optimizer):
    first = pair("lightsplit-l", optimizer=optimizer)
    second = pair("lightsplit-l", optimizer=optimizer)
    for inputs, labels in make_batches(3):
        first.client.step(inputs, labels)
    copied = {k: v.clone() for k, v in first.side.state().items()}
    second.side.load(copied)
    after = second.side.state()
    assert after.keys() == copied.keys()
    assert all(torch.equal(after[name], copied[name]) for name in copied)
    assert any(name.startswith("optimizer.") for name in copied)


def test_a_handed_over_side_continues_as_the_original_would(
    pair, make_batches, optimizer
):
    stays = pair("lightsplit-f", optimizer=optimizer)
    moves = pair("lightsplit-f", optimizer=optimizer)
    data = make_batches(6)
    for inputs, labels in data[:3]:
        stays.client.step(inputs, labels)
        moves.client.step(inputs, labels)
    heir = pair("lightsplit-f", optimizer=optimizer)
    heir.client.send = moves.server.handle
    heir.side.load({k: v.clone() for k, v in moves.side.state().items()})
    heir.client.steps = 3
    for inputs, labels in data[3:]:
        stays.client.step(inputs, labels)
        heir.client.step(inputs, labels)
    theirs = heir.side.state()
    assert all(torch.equal(v, theirs[k]) for k, v in stays.side.state().items())


def test_a_state_of_other_modules_is_refused(pair):
    with pytest.raises(RunError, match="does not fit these modules"):
        pair("lightsplit-l").side.load({"head.0.weight": torch.zeros(1)})

from torch import nn

from lightsplit.results import tensors
from lightsplit.runtime.side_bytes import most_side_bytes


def test_the_bound_holds_every_optimizer_with_room_to_spare(pair, make_batches):
    ours = pair("lightsplit-l")
    for inputs, labels in make_batches(2):
        ours.client.step(inputs, labels)
    side = len(tensors.to_bytes(ours.side.state()))
    parts = ours.parts
    bound = most_side_bytes(parts.head, parts.tail, ours.codec.encoder)
    assert side < bound < 2**25


def test_the_bound_grows_with_the_weights():
    small, large = nn.Linear(10, 10), nn.Linear(1000, 1000)
    assert most_side_bytes(large, None) - most_side_bytes(small) > 8 * 3_900_000

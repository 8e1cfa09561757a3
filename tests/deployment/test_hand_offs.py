import pytest
import torch

from lightsplit.deployment.hand_offs import HandOffs
from lightsplit.errors import ConfigError, SealError
from lightsplit.transports.sealing import SealingKey

KEY = SealingKey.generate()


def make(net, key=KEY):
    ends = net.Ends()
    client = ends.client_with(ends.side, 0)
    return client, HandOffs(client, ends.contract, key)


def changed(client):
    with torch.no_grad():
        for weight in client.side.modules.parameters():
            weight.add_(1)
    return client


def test_the_next_client_gets_the_very_side(net):
    giver, sealing = make(net)
    taker, opening = make(net)
    sealed = sealing.seal("run", 3) if changed(giver) else b""
    opening.open(sealed, "run", 3)
    mine, theirs = taker.side.state(), giver.side.state()
    assert mine.keys() == theirs.keys()
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)


@pytest.mark.parametrize(("run", "turn"), [("other", 3), ("run", 2)])
def test_a_side_opens_in_its_own_run_and_turn_alone(run, turn, net):
    _, hand_offs = make(net)
    sealed = hand_offs.seal("run", 3)
    with pytest.raises(SealError):
        hand_offs.open(sealed, run, turn)


def test_another_key_does_not_open_a_side(net):
    sealed = make(net)[1].seal("run", 3)
    with pytest.raises(SealError):
        make(net, SealingKey.generate())[1].open(sealed, "run", 3)


def test_a_side_does_not_travel_without_a_key(net):
    with pytest.raises(ConfigError, match="a key is needed, the same at every client"):
        make(net, None)

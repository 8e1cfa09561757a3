"""A predicting client's reaction to the server's welcome."""

from functools import partial

import pytest
import torch

from lightsplit.deployment import prediction
from lightsplit.deployment.endpoint import Endpoint
from lightsplit.deployment.prediction import predicting
from lightsplit.errors import ConfigError, ProtocolError, SealError, TransportError
from lightsplit.protocol import CodeMessage
from lightsplit.protocol.control import Hello, Ready, Welcome
from lightsplit.results import tensors
from lightsplit.transports.sealing import SealingKey

NOWHERE = Endpoint("127.0.0.1:9")
KEY = SealingKey.generate()


class Line:
    """A line to a server of the same ends; it breaks where the test says so."""

    def __init__(self, server, welcome, log, *, breaks_after=99):
        self._server = server
        self._welcome = welcome
        self._left = breaks_after
        self.log = log

    def call(self, message):
        self.log.append(message)
        if isinstance(message, Hello):
            return self._welcome
        self._left -= 1
        if self._left < 0:
            raise TransportError("idle for too long")
        return self._server.handle(message)

    def close(self):
        self.log.append("closed")


@pytest.fixture
def ask(net, monkeypatch):
    """Return what predicts over given lines, one after the other."""

    def ask(*lines, heads="shared", key=KEY, times=1):
        ends = net.Ends(heads=heads)
        log = []
        left = [partial(line, ends.server, log=log) for line in lines]
        monkeypatch.setattr(prediction, "open_line", lambda *_: left.pop(0)())
        client = ends.client_with(ends.side, 0)
        inputs = torch.rand(4, 3, generator=torch.Generator().manual_seed(0))
        with predicting(client, ends.contract, NOWHERE, name="bob", key=key):
            got = [client.predict(inputs) for _ in range(times)]
        assert log[-1] == "closed"
        twin = net.Ends(heads=heads)
        expected = twin.client_with(twin.side, 0).predict(inputs)
        return got, expected, log, ends

    return ask


def sealed(net, *, turn, key=KEY):
    ends = net.Ends()
    blob = tensors.to_bytes(ends.side.state())
    side = key.seal(blob, run="r", turn=turn, contract=ends.contract.digest)
    return Welcome(1, "r", turn, side)


def test_the_newest_side_is_opened_and_used(ask, net):
    got, expected, log, _ = ask(partial(Line, welcome=sealed(net, turn=3)))
    assert torch.equal(got[0], expected)
    assert isinstance(log[1], CodeMessage)
    assert (log[0].purpose, log[1].client, log[1].is_training) == ("predict", 1, False)


@pytest.mark.parametrize("turn", [0, 7])
def test_a_side_that_travels_is_never_replaced_by_the_first_weights(ask, turn):
    with pytest.raises(ProtocolError, match="predict after the first turn"):
        ask(partial(Line, welcome=Welcome(1, "r", turn)))


def test_private_heads_need_no_key(ask):
    line = partial(Line, welcome=Welcome(1, "r", 7))
    got, expected, _, _ = ask(line, heads="private", key=None)
    assert torch.equal(got[0], expected)


def test_a_missing_key_and_another_key_are_refused(ask, net):
    with pytest.raises(ConfigError, match="a key is needed"):
        ask(partial(Line, welcome=sealed(net, turn=3)), key=None)
    with pytest.raises(SealError):
        ask(partial(Line, welcome=sealed(net, turn=3, key=SealingKey.generate())))


def test_only_a_welcome_answers_a_hello(ask):
    with pytest.raises(ProtocolError, match="expected a welcome, got Ready"):
        ask(partial(Line, welcome=Ready(1)))


def test_a_line_that_was_cut_is_opened_once_more(ask, net):
    welcome = sealed(net, turn=3)
    first = partial(Line, welcome=welcome, breaks_after=1)
    got, expected, log, _ = ask(first, partial(Line, welcome=welcome), times=3)
    assert all(torch.equal(one, expected) for one in got)
    assert sum(isinstance(one, Hello) for one in log) == 2


def test_a_server_that_is_gone_is_an_error(ask, net):
    gone = partial(Line, welcome=sealed(net, turn=3), breaks_after=0)
    with pytest.raises(TransportError, match="idle"):
        ask(gone, gone)

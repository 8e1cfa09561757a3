"""Everything a server has before the first message, for attackers to build on.

    experiment ─► contract, codec, a network like the server's, a tail like the client's

Every call makes new modules with fresh weights: an attack's copies are its own. They
hold none of the victim's weights; the server's own weights come with every exchange.
"""

from functools import partial

from torch import Tensor, nn

from lightsplit import seeding
from lightsplit.attacks import Setup
from lightsplit.codecs import Code, Codec
from lightsplit.errors import AuditError
from lightsplit.experiments import Experiment, pieces
from lightsplit.experiments.cuts import Cuts, make_codec, make_cuts, make_formats
from lightsplit.protocol import Contract
from lightsplit.runtime import ServerSide
from lightsplit.splitting import SplitModel


class ServerNetwork(nn.Module):
    """A server side as one network, under the names of its own state."""

    def __init__(self, side: ServerSide) -> None:
        super().__init__()
        self._side = side
        for name, module in side.modules.items():
            self.add_module(name, module)

    def forward(self, code: Code) -> Code:
        """Return the output for a code."""
        return self._side.forward(code)


class TailNetwork(nn.Module):
    """A tail behind the decoder of the back cut: outputs to logits."""

    def __init__(self, decoder: nn.Module, tail: nn.Module) -> None:
        super().__init__()
        self.decoder = decoder
        self.tail = tail

    def forward(self, output: Code) -> Tensor:
        """Return the logits for an output."""
        logits: Tensor = self.tail(self.decoder(output))
        return logits


def server_setup(experiment: Experiment, contract: Contract, seed: int) -> Setup:
    """Return everything the server of a run has before it begins."""
    return Setup(
        contract=contract,
        formats=make_formats(experiment),
        codec=partial(_codec, experiment, contract.activation_shape),
        server=partial(_server, experiment, seed),
        tail=partial(_tail, experiment, seed),
        device=pieces.make_device(experiment.training.device),
    )


def fresh_head(experiment: Experiment, seed: int) -> nn.Module:
    """Return a head like the victim's, with weights of the attacker's own."""
    return fresh_parts(experiment, seed).head


def fresh_parts(experiment: Experiment, seed: int) -> SplitModel:
    """Return the model, cut, with weights of the attacker's own."""
    drawn = seeding.derive(seed, "attacker")
    own = experiment.changed(training={"seed": drawn}, task={"weights": None})
    return pieces.load_parts(own)


def _codec(experiment: Experiment, shape: tuple[int, ...]) -> Codec:
    return make_codec(experiment, shape, weights_of="attacker")


def _server(experiment: Experiment, seed: int) -> nn.Module:
    return ServerNetwork(pieces.make_server(experiment, _cuts(experiment, seed)).side)


def _tail(experiment: Experiment, seed: int) -> nn.Module:
    cuts = _cuts(experiment, seed)
    if cuts.parts.tail is None or cuts.output_codec is None:
        raise AuditError("the client of this run has no tail, so there is none to copy")
    return TailNetwork(cuts.output_codec.decoder, cuts.parts.tail)


def _cuts(experiment: Experiment, seed: int) -> Cuts:
    return make_cuts(experiment, fresh_parts(experiment, seed))

"""What a server has before the first message, for attackers to build on.

    experiment ─► contract, codec, a network like the server's, a tail like the client's

Every call makes new modules with fresh weights: an attack's copies are its own. None of
the victim's weights is in them; the server's own come with every exchange.
"""

from functools import partial

from torch import Tensor, nn

from lightsplit import seeding
from lightsplit.attacks import Setup
from lightsplit.codecs import Code, Codec
from lightsplit.errors import AuditError
from lightsplit.experiments import Experiment, Job, pieces
from lightsplit.runtime import ServerSide
from lightsplit.splitting import SplitModel


class ServerNetwork(nn.Module):
    """A server side as one network, under the names of its own state."""

    def __init__(self, side: ServerSide) -> None:
        super().__init__()
        self._side = side
        for name, module in side.modules.items():
            self.add_module(name, module)

    def forward(self, code: Code) -> Tensor:
        """Return the output for a code."""
        return self._side.forward(code).values


def server_setup(job: Job, seed: int) -> Setup:
    """Return what the server of a run has before it begins."""
    experiment, shape = job.experiment, job.contract.activation_shape
    return Setup(
        contract=job.contract,
        codec=partial(_codec, experiment, shape),
        server=partial(_server, experiment, shape, seed),
        tail=partial(_tail, experiment, seed),
        device=pieces.make_device(experiment.device),
    )


def fresh_parts(experiment: Experiment, seed: int) -> SplitModel:
    """Return the model, cut, with weights that are the attacker's."""
    drawn = seeding.derive(seed, "attacker")
    settings = experiment.model_copy(update={"seed": drawn, "weights": ""})
    return pieces.load_parts(settings)


def _codec(experiment: Experiment, shape: tuple[int, ...]) -> Codec:
    return pieces.make_codec(experiment, shape, weights_of="attacker")


def _server(experiment: Experiment, shape: tuple[int, ...], seed: int) -> nn.Module:
    parts = fresh_parts(experiment, seed)
    server = pieces.make_server(experiment, parts, _codec(experiment, shape))
    return ServerNetwork(server.side)


def _tail(experiment: Experiment, seed: int) -> nn.Module:
    tail = fresh_parts(experiment, seed).tail
    if tail is None:
        raise AuditError(f"{experiment.model} has no tail to make another one of")
    return tail

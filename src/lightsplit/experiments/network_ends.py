"""What each end of a networked run keeps of the model: its own part.

Both build the whole model, because its first weights are drawn in one go. The other
end's part is let go of once the model is cut.
"""

from lightsplit.errors import TransportError
from lightsplit.experiments import pieces
from lightsplit.experiments.client_data import ClientData
from lightsplit.experiments.config import Experiment
from lightsplit.experiments.cuts import Cuts, make_cuts
from lightsplit.experiments.own_secret import ClientSecrets
from lightsplit.experiments.record import count_parameters
from lightsplit.protocol import Contract, Reply, Request
from lightsplit.runtime import ClientSide, Server


def server_end(experiment: Experiment) -> tuple[Server, Contract, dict[str, int]]:
    """Return the server, the contract, and the number of parameters of every part."""
    cuts = make_cuts(experiment, pieces.load_parts(experiment))
    server = pieces.make_server(experiment, cuts)
    return server, cuts.contract, count_parameters(*cuts[:3])


def client_end(
    experiment: Experiment, secrets: ClientSecrets, data: ClientData | None = None
) -> tuple[ClientSide, Contract]:
    """Return the client's side and the contract; refuse data that cannot train it."""
    cuts = client_cuts(experiment, secrets)
    if data is not None:
        data.check([cuts.parts.whole, cuts.codec.encoder, cuts.codec.decoder])
    return pieces.make_client_side(experiment, cuts), cuts.contract


def client_cuts(experiment: Experiment, secrets: ClientSecrets) -> Cuts:
    """Return the cuts as a networked client makes them.

    The client uses the head, the tail and the encoder. The backbone and the decoder are
    not the server's; they only provide the shapes.
    """
    parts = pieces.load_parts(experiment, secrets.first_weights)
    return make_cuts(experiment, parts, secrets.first_weights)


def not_connected(_request: Request) -> Reply:
    """Stand in for ``send`` until the client is connected."""
    raise TransportError("not connected")

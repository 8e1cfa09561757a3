"""One server on several processes, which ``torchrun`` starts with one command.

Rank 0 is the server. The other ranks compute parts of its batches; they open no port,
read no data and write nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from lightsplit.errors import ConfigError
from lightsplit.experiments import pieces
from lightsplit.experiments.config import Experiment
from lightsplit.experiments.cuts import make_cuts
from lightsplit.runtime import JoiningServer, Server
from lightsplit.runtime.ranks import Ranks, joined_ranks, number_of_ranks, work


@contextmanager
def spread_over_ranks(server: Server) -> Iterator[None]:
    """Let all ranks compute the server's batches while the block runs."""
    if number_of_ranks() == 1:
        yield
        return
    joining = _joining(server)
    with joined_ranks(joining.side):
        joining.ranks = Ranks(joining.side)
        try:
            yield
        finally:
            joining.ranks.close()


def assist_experiment(experiment: Experiment) -> None:
    """Compute parts of the batches of rank 0 until its run ends."""
    cuts = make_cuts(experiment, pieces.load_parts(experiment))
    server = _joining(pieces.make_server(experiment, cuts))
    with joined_ranks(server.side):
        work(server.side)


def _joining(server: Server) -> JoiningServer:
    if not isinstance(server, JoiningServer):
        raise ConfigError(
            f"{number_of_ranks()} ranks share the joined batch of a parallel round: "
            "give --rounds parallel, or start one process without torchrun"
        )
    return server

"""Worker processes that compute the owners of a simulation, from its settings."""

import tomllib
from functools import cache
from pathlib import Path

from lightsplit.errors import ConfigError
from lightsplit.experiments import pieces
from lightsplit.experiments.backdoors import poisoned
from lightsplit.experiments.config import Experiment, make_experiment
from lightsplit.experiments.cuts import make_cuts
from lightsplit.protocol import Reply, Request
from lightsplit.runtime import BatchSource, Client, ClientSide
from lightsplit.simulation import CopiedSide, Crew, Gathering, RoundWorker
from lightsplit.simulation.round_worker import Line
from lightsplit.transports import ByteMeter, through
from lightsplit.transports.sealing import KEY_BYTES, SealingKey

NO_KEY = SealingKey(bytes(KEY_BYTES))  # on one machine there is nobody to hide from


def make_crew(experiment: Experiment, data_dir: Path | None, workers: int) -> Crew:
    """Return the processes that compute the owners of parallel rounds."""
    if not experiment.is_parallel:
        raise ConfigError(
            "workers compute owners who work at the same time: --workers needs "
            f"--rounds parallel, got {experiment.owners.rounds}"
        )
    if workers < 1:
        raise ConfigError(f"workers must be at least 1, got {workers}")
    return Crew(workers, make_worker, (experiment.to_toml(), data_dir))


def make_worker(line: Line, settings: str, data_dir: Path | None) -> RoundWorker:
    """Return a worker of the run that an experiment file describes."""
    experiment = make_experiment(tomllib.loads(settings))
    dataset = pieces.load_dataset(experiment, data_dir)
    held = pieces.split_data(experiment, dataset)
    cuts = make_cuts(experiment, pieces.load_parts(experiment))
    gathering, meter = Gathering(_refuse), ByteMeter()
    send = through(meter, gathering.send)
    shared: CopiedSide | None = None

    def make_side() -> ClientSide:
        return pieces.make_client_side(experiment, pieces.private_cuts(cuts))

    if cuts.contract.averages_side:
        side = make_side()
        shared = CopiedSide(side, NO_KEY, cuts.contract.batch_size)

    def make_client() -> Client:
        mine = make_side() if shared is None else side
        return pieces.make_client(experiment, mine, send)

    @cache
    def batches(index: int) -> BatchSource:
        own = pieces.make_batches(experiment, dataset.train, held[index], index)
        return poisoned(experiment, own, index)

    return RoundWorker(
        line,
        gathering=gathering,
        meter=meter,
        make_client=make_client,
        batches=batches,
        shared=shared,
    )


def _refuse(request: Request) -> Reply:
    raise AssertionError(f"a worker sends nothing outside a round, got {request.kind}")

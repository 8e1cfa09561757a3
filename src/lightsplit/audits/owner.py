"""An owner's folder of a networked run, opened for an audit.

    experiment.toml ─► contract, codec, wire      client.safetensors ─► head and encoder
    secret ─► the order of the batches            sent.tape ─► every message
    the owner's own files ─► the truth behind every code

The server's weights are not there, nor are the other owners' data: attacks that need
them do not run.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from lightsplit.attacks import Exchange
from lightsplit.audits.options import AuditOptions
from lightsplit.data import Batches
from lightsplit.deployment.state_folder import StateFolder
from lightsplit.errors import ConfigError, RunError
from lightsplit.experiments import Experiment, make_experiment, pieces, read_experiment
from lightsplit.experiments.backdoors import poisoned
from lightsplit.experiments.client_data import ClientData, find_data
from lightsplit.experiments.cuts import Cuts, make_codec, make_cuts, make_formats
from lightsplit.experiments.deploy import SIDE
from lightsplit.experiments.own_end import OwnEnd
from lightsplit.experiments.own_secret import OwnSecret
from lightsplit.experiments.record import count_parameters, describe_run
from lightsplit.experiments.recording import DataPlace, recorded_data
from lightsplit.protocol import Contract, Wire
from lightsplit.results import RunFolder, tensors
from lightsplit.results.settings import merge
from lightsplit.runtime import ClientSide, Secret
from lightsplit.transports import tape


def is_joined(folder: RunFolder) -> bool:
    """Return whether the folder is that of an owner in a networked run."""
    return any((folder.path / name).exists() for name in (SIDE, tape.FILE_NAME))


@dataclass(frozen=True, eq=False)
class Owner:
    """One owner's part of a networked run.

    Attributes:
        path: of the owner's folder.
        experiment: of the run.
        cuts: as this owner makes them; backbone and decoder are not the server's.
        data: of the owner.
        places: where the exchanges lie in the recording, in order.
        index: which client this is.
    """

    path: Path
    experiment: Experiment
    cuts: Cuts
    data: ClientData
    places: tuple[tape.Place, ...]
    index: int

    @property
    def contract(self) -> Contract:
        """The contract of the run."""
        return self.cuts.contract

    @cached_property
    def batches(self) -> Batches:
        """The batches that this client trained on."""
        return self.data.batches(self.index)

    def batch(self, step: int) -> tuple[Any, Any]:
        """Return the inputs whose code was sent in ``step``, and labels as trained."""
        return poisoned(self.experiment, self.batches, self.index).batch(step)

    def true_labels(self, step: int) -> Any:
        """Return the true labels of ``step``; a client may train on drawn ones."""
        return self.data.train.batch(self.batches.rows(step))[1]

    def read(self, place: tape.Place) -> Exchange:
        """Return an exchange of the recording."""
        return Exchange(*tape.read(self.path / tape.FILE_NAME, place))

    @cached_property
    def wire(self) -> Wire:
        """The wire as everybody knows it: a learned codec has fresh weights."""
        shape = self.contract.activation_shape
        codec = make_codec(self.experiment, shape, weights_of="attacker")
        return Wire(codec, self.cuts.output_codec, make_formats(self.experiment))

    @cached_property
    def side(self) -> ClientSide | None:
        """The owner's trained modules, if its folder has them."""
        state = self._state()
        if state is None:
            return None
        side = pieces.make_client_side(self.experiment, self.cuts)
        side.load(state)
        return side

    def begin_record(self, folder: RunFolder) -> None:
        """Write a record for the audit's figures, unless there is one."""
        if folder.record_file.exists():
            return
        steps = len({one.step for one in self.places if one.what == tape.CODE})
        share = len(self.batches.indices) / len(self.batches)
        described = describe_run(self.experiment, self.contract, self.wire)
        at_end = self._figures_at_end().get("certificate", {})
        folder.write_record(
            {
                **described,
                "certificate": described["certificate"] | at_end,
                "client": self.index,
                "steps": steps,
                "samples": round(steps * share),
                "bytes": self._bytes(),
                "parameters": count_parameters(*self.cuts[:3]),
            }
        )

    def _state(self) -> dict[str, Any] | None:
        """Return the side after the run, or after the last turn of a killed client."""
        if (self.path / SIDE).exists():
            return tensors.load(self.path / SIDE)
        kept = StateFolder(self.path)
        step = None if self.contract.side_travels else kept.newest_step()
        return None if step is None else tensors.from_bytes(kept.load_side(step))

    def _figures_at_end(self) -> dict[str, Any]:
        """Return the owner's figures of a run that has ended; else nothing."""
        text = RunFolder(self.path).experiment_file.read_text(encoding="utf-8")
        return OwnEnd(self.path, text).figures or {}

    def _bytes(self) -> dict[str, int]:
        """Return the bytes sent, with hand-offs; before the run's end, those recorded.

        The recording has codes and gradients as frames, and no hand-offs.
        """
        at_end = self._figures_at_end()
        if at_end:
            return dict(at_end["bytes"])
        is_u = self.contract.topology == "u"
        kinds = {
            tape.EVALUATION: ("evaluation", "evaluation"),
            tape.CODE: ("code", "output" if is_u else "code_gradient"),
            tape.GRADIENT: ("output_gradient", "code_gradient"),
        }
        counts = dict.fromkeys((name for pair in kinds.values() for name in pair), 0)
        for place in self.places:
            asked, replied = kinds[place.what]
            counts[asked] += place.request
            counts[replied] += place.reply
        return {**counts, "total": sum(counts.values())}


def open_owner(
    folder: RunFolder, options: AuditOptions, data_dir: Path | None = None
) -> Owner:
    """Return the owner whose folder it is, or the reason why it cannot be audited."""
    file = folder.path / tape.FILE_NAME
    if not file.exists():
        raise RunError(
            f"{folder.path} has no recording of what this owner sent; join with "
            "--record to be able to audit"
        )
    found = tuple(tape.places(file))
    if not any(one.what == tape.CODE for one in found):
        raise RunError(f"{file} holds no code of a training step: nothing to attack")
    index = found[-1].client
    if options.client not in (0, index):
        raise ConfigError(f"{folder.path} is of client {index}, got {options.client}")
    experiment = _experiment(folder, options)
    own = _secret(folder, options)
    place = _data_place(folder, options, data_dir)
    return Owner(
        path=folder.path,
        experiment=experiment,
        cuts=make_cuts(experiment, pieces.load_parts(experiment, own), own),
        data=find_data(experiment, own, **place._asdict()),
        places=tuple(one for one in found if one.client == index),
        index=index,
    )


def _experiment(folder: RunFolder, options: AuditOptions) -> Experiment:
    tables = read_experiment(folder.experiment_file)
    if options.task is not None:
        tables = merge(tables, {"task": {"name": options.task}})
    return make_experiment(tables).changed(training={"device": options.device})


def _secret(folder: RunFolder, options: AuditOptions) -> Secret:
    """Return what the client drew its batches from; the file tells if it was given."""
    given = Secret.load(Path(options.secret)) if options.secret else None
    mine = OwnSecret.find(given, folder.path)
    if given is None and (mine.file is None or not mine.file.exists()):
        raise RunError(
            f"{folder.path} has no secret, so nobody knows which samples it sent when; "
            "this client was given one: give it again with --secret"
        )
    return mine.of_experiment(folder.experiment_file.read_text())


def _data_place(
    folder: RunFolder, options: AuditOptions, data_dir: Path | None
) -> DataPlace:
    if options.data is not None:
        return DataPlace(own_data=Path(options.data))
    if data_dir is not None:
        return DataPlace(data_dir=data_dir)
    return recorded_data(folder.path)

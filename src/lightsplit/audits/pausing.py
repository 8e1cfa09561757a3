"""An audit during training that can be stopped and resumed.

    RUN/audit-checkpoint/step-00000200/    as any checkpoint of a run, and beside it
        attack-0.safetensors …             networks and optimizers of each attack
        progress.json                      the audit's options, and its scores so far

An attack's random draws depend on its seed and its iterations alone, so an interrupted
audit ends like one that was not. The folder is removed when the audit is done.
"""

import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lightsplit.attacks import Observes
from lightsplit.audits.options import AuditOptions
from lightsplit.audits.watching import Trajectory
from lightsplit.errors import ContractError, RunError
from lightsplit.experiments import Job
from lightsplit.results import RunFolder, tensors
from lightsplit.runs import checkpoint_folder
from lightsplit.simulation import checkpoint

NOT_COMPARED = (
    "during",
    "score_every",
    "save_every",
    "resume",
    "device",
    "task",
    "data",
    "secret",
)


class Pauses:
    """Saves an audit every so many steps of training, and resumes it."""

    def __init__(
        self,
        folder: RunFolder,
        job: Job,
        learners: Sequence[Observes],
        trajectory: Trajectory,
        options: AuditOptions,
    ) -> None:
        self._folder = _place(folder)
        self._job = job
        self._learners = learners
        self._trajectory = trajectory
        self._every = options.save_every if learners else None
        self._audit = describe(options)
        self._saved = 0

    def save_if_due(self) -> None:
        """Save if enough steps have passed since the last save."""
        steps = self._job.trainer.progress.steps
        if self._every is not None and steps - self._saved >= self._every:
            self.save()

    def save(self) -> None:
        """Save the attacks' learning so far, unless saving is switched off."""
        if self._every is None:
            return
        files = {
            f"attack-{number}.safetensors": tensors.to_bytes(attack.state())
            for number, attack in enumerate(self._learners)
        }
        content = {"audit": self._audit, "trajectory": self._trajectory.lines}
        trainer, contract = self._job.trainer, self._job.contract.digest
        checkpoint.save(self._folder, trainer, contract, files=files, content=content)
        self._saved = trainer.progress.steps

    def resume(self) -> None:
        """Load trainer, attacks and scores as they were saved."""
        contract = self._job.contract.digest
        newest, content = checkpoint_folder.read(self._folder, contract)
        if content.get("audit") != self._audit:
            raise RunError(
                f"{newest} belongs to an audit with other options; give the same "
                "options, or begin again without --resume"
            )
        checkpoint.load(self._folder, self._job.trainer, contract)
        for number, attack in enumerate(self._learners):
            attack.load(tensors.load(newest / f"attack-{number}.safetensors"))
        for name, lines in content.get("trajectory", {}).items():
            self._trajectory.add(name, *lines)
        self._saved = self._job.trainer.progress.steps

    def forget(self) -> None:
        """Remove the saved state."""
        shutil.rmtree(self._folder, ignore_errors=True)


def is_paused(folder: RunFolder, options: AuditOptions) -> bool:
    """Return whether this very audit was interrupted and saved."""
    try:
        contract = folder.read_record()["contract"]
        _, content = checkpoint_folder.read(_place(folder), contract)
    except (RunError, ContractError):
        return False
    return content.get("audit") == describe(options)


def describe(options: AuditOptions) -> dict[str, Any]:
    """Return the options that must be the same when an audit is resumed."""
    kept = {k: v for k, v in asdict(options).items() if k not in NOT_COMPARED}
    return {**kept, "attacks": sorted(options.attacks)}


def _place(folder: RunFolder) -> Path:
    return folder.path / "audit-checkpoint"

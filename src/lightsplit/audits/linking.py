"""Which of the victim's images are in which step, for attacks that link codes.

    step ─► the victim's batch ─► for each row the number of a target, or -1

Only attacks that watch training are told: a finished run sends no more codes.
"""

from functools import partial

import torch
from torch import Tensor

from lightsplit.attacks import Linked
from lightsplit.audits.gathering import TrueClient, copied_client
from lightsplit.audits.victim import Victim
from lightsplit.audits.watching import total_steps
from lightsplit.data import Batches


def link(victim: Victim) -> Linked:
    """Return what links the victim's codes over epochs."""
    batches = victim.job.shares[victim.client]
    return Linked(
        steps_per_pass=len(batches),
        passes=total_steps(victim) // len(batches),
        images=len(victim.rows),
        targets_of=partial(_targets_of, batches, victim.rows),
        client_now=partial(_client_now, victim),
    )


def _targets_of(batches: Batches, targets: Tensor, step: int) -> Tensor:
    is_target = batches.rows(step)[:, None] == targets[None, :]
    return torch.where(is_target.any(dim=1), is_target.int().argmax(dim=1), -1)


def _client_now(victim: Victim) -> TrueClient:
    return copied_client(victim.side, victim.job.experiment).train()

"""The choices of a client that takes part in a networked run."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from lightsplit.errors import ConfigError, TransportError
from lightsplit.protocol.control import Finished, Grant
from lightsplit.runs.evaluation import BY_ACCURACY, LabelledBatches, Scoring
from lightsplit.runtime import Secret
from lightsplit.transports import ByteMeter, tape
from lightsplit.transports.key_agreement import AgreedKey
from lightsplit.transports.sealing import SealingKey

_LOG = logging.getLogger(__name__)


def log_away(error: TransportError) -> None:
    """Log that the server could not be reached and that the client tries again."""
    _LOG.warning("%s; trying again", error)


def log_warning(text: str) -> None:
    """Log that the server went back."""
    _LOG.warning("%s", text)


class TurnFigures(NamedTuple):
    """What a client knows of one of its turns.

    Attributes:
        turn: its number in the run.
        steps: of this client after the turn.
        loss: mean over the turn's samples; None if it had no steps.
        test: figures on this client's test set by name, if they were due.
        objectives: the mean of each objective.
    """

    turn: int
    steps: int
    loss: float | None
    test: Mapping[str, float]
    objectives: Mapping[str, float]


@dataclass(frozen=True)
class JoinOptions:
    """Everything that a client may choose for itself.

    Attributes:
        key: of the hand-offs; needed with shared heads and more than one client.
        run: the name of the run that the key was agreed for; empty if it was given.
        secret: seeds everything that this client draws; without it the client makes a
            random one at its first start and keeps it in the folder.
        state_folder: keeps the client's state between turns: a side that does not
            travel, or the part of a travelling side that stays; and the log of turns.
        test: batches of a test set, if the client has one.
        scoring: of the test set.
        reports: whether the client tells the server its losses and accuracies.
        give_up_seconds: how long the client tries to reach the server again.
        watch: called with every Grant, and with Finished.
        ended: called with Finished once the client's side is that of the run's end, and
            before the client tells the server, which waits until everything is saved
            here.
        allows_rollback: whether the client follows a server that went back.
        went_back: called with a warning when the server went back; logs it by default.
        agreed: called with the key that the clients agreed on.
        away: called each time the server cannot be reached; logs that by default.
        turned: called with the figures of every turn of this client, before it is
            handed in.
        meter: counts this client's bytes.
        records: whether every exchange is also written to the folder, for an audit.
    """

    key: SealingKey | None = None
    run: str = ""
    secret: Secret | None = None
    state_folder: Path | None = None
    test: LabelledBatches | None = None
    scoring: Scoring = BY_ACCURACY
    reports: bool = True
    give_up_seconds: float = 600.0
    watch: Callable[[Grant | Finished], None] = field(default=lambda _next: None)
    ended: Callable[[Finished], None] = field(default=lambda _finished: None)
    allows_rollback: bool = True
    went_back: Callable[[str], None] = log_warning
    agreed: Callable[[AgreedKey], None] = field(default=lambda _key: None)
    away: Callable[[TransportError], None] = log_away
    turned: Callable[[TurnFigures], None] = field(default=lambda _figures: None)
    meter: ByteMeter = field(default_factory=ByteMeter)
    records: bool = False

    @property
    def tape(self) -> Path:
        """The file that exchanges are written to."""
        if self.state_folder is None:
            raise ConfigError("a recording needs a folder for this client's state")
        return self.state_folder / tape.FILE_NAME

"""The hand-in of an owner at the end of a parallel round."""

from collections.abc import Mapping

from lightsplit.deployment.roster import Member, Roster
from lightsplit.errors import ProtocolError
from lightsplit.protocol import Contract
from lightsplit.protocol.control import TurnDone
from lightsplit.runs.evaluation import LOSS, Evaluation, Report, mean_evaluation


def check_done(
    contract: Contract, member: Member, done: TurnDone, *, hands_on: bool
) -> None:
    """Raise unless a hand-in is legal; ``hands_on`` allows the shared side in it."""
    if done.side and not (contract.averages_side and hands_on):
        raise ProtocolError(
            f"no side was asked of {member.name}, got {len(done.side)} bytes of one",
            code="too-large",
        )
    names = _names(contract)
    if done.figures and len(done.figures) != len(names):
        raise ProtocolError(
            f"{member.name}: expected the figures {', '.join(names)}, got "
            f"{len(done.figures)} numbers",
            code="contract-mismatch",
        )


def evaluated(
    contract: Contract, roster: Roster, told: Mapping[int, TurnDone], asked: list[int]
) -> Evaluation | None:
    """Return the figures of the owners that were asked for some; None without any."""
    reports = [
        _report(contract, roster[one], told[one]) for one in asked if told[one].figures
    ]
    return mean_evaluation(reports) if reports else None


def _report(contract: Contract, member: Member, done: TurnDone) -> Report:
    """Return the test figures of an owner by name."""
    figures = dict(zip(_names(contract), done.figures, strict=True))
    return Report(figures, done.samples, member.name)


def _names(contract: Contract) -> tuple[str, ...]:
    return (LOSS, *contract.metrics)

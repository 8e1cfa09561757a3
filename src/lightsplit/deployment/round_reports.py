"""What an owner hands in at the end of a parallel round."""

from lightsplit.deployment.roster import Member
from lightsplit.errors import ProtocolError
from lightsplit.protocol import Contract
from lightsplit.protocol.control import TurnDone
from lightsplit.runs.evaluation import LOSS, Report


def check_done(contract: Contract, member: Member, done: TurnDone) -> None:
    """Raise unless a hand-in is legal in this run."""
    if done.side and not contract.averages_side:
        raise ProtocolError(
            f"no side travels in this run, got {len(done.side)} bytes of one",
            code="too-large",
        )
    names = _names(contract)
    if done.figures and len(done.figures) != len(names):
        raise ProtocolError(
            f"{member.name}: expected the figures {', '.join(names)}, got "
            f"{len(done.figures)} numbers",
            code="contract-mismatch",
        )


def report(contract: Contract, member: Member, done: TurnDone) -> Report:
    """Return the test figures of an owner by name."""
    figures = dict(zip(_names(contract), done.figures, strict=True))
    return Report(figures, done.samples, member.name)


def _names(contract: Contract) -> tuple[str, ...]:
    return (LOSS, *contract.metrics)

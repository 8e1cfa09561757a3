"""What a client accepts as a turn: a server may err, or lie about where the run stands.

A turn that cannot belong to the run is refused before anything of the client's is
loaded, trained or deleted.
"""

from lightsplit.errors import ProtocolError
from lightsplit.protocol import Contract
from lightsplit.protocol.control import Grant
from lightsplit.protocol.phases import PHASES, RELEASE, TRAIN


def check_grant(
    grant: Grant, contract: Contract, *, batches: int, steps: int | None
) -> None:
    """Raise unless the contract and the client's own count allow a turn.

    Args:
        grant: of the server.
        contract: of the run.
        batches: of the client per epoch.
        steps: the most that the client has done since it was started; None before its
            first turn.
    """
    phases = PHASES if contract.sends_once else (TRAIN,)
    if grant.phase not in phases:
        raise _refused(grant, f"phase {' or '.join(phases)}", repr(grant.phase))
    longest = contract.turn_steps or batches
    if grant.phase == RELEASE:
        longest = batches
    if grant.steps > longest:
        raise _refused(grant, f"at most {longest} steps", f"{grant.steps}")
    if grant.done > grant.steps:
        raise _refused(grant, f"at most {grant.steps} steps done", f"{grant.done}")
    if grant.oldest_step > grant.first_step:
        raise _refused(
            grant,
            f"an oldest step up to its first step {grant.first_step}",
            f"{grant.oldest_step}",
        )
    if steps is not None and grant.first_step > steps:
        raise _refused(grant, f"a first step up to {steps}", f"{grant.first_step}")
    if grant.side and not contract.shares_side:
        raise _refused(grant, "no side", f"{len(grant.side)} bytes")


def _refused(grant: Grant, expected: str, got: str) -> ProtocolError:
    return ProtocolError(
        f"turn {grant.turn}: expected {expected}, got {got}; the server is in error or "
        "not honest, and nothing of this client's was changed"
    )

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
    longest = contract.turn_steps or batches
    if grant.phase == RELEASE:
        longest = batches
    turn, first = grant.turn, grant.first_step
    rules: tuple[tuple[bool, str, object], ...] = (
        (grant.phase in phases, f"phase {' or '.join(phases)}", repr(grant.phase)),
        (grant.steps <= longest, f"at most {longest} steps", grant.steps),
        (grant.done <= grant.steps, f"at most {grant.steps} steps done", grant.done),
        (
            grant.oldest_step <= first,
            f"an oldest step up to its first step {first}",
            grant.oldest_step,
        ),
        (
            grant.oldest_turn <= turn,
            f"an oldest round up to {turn}",
            grant.oldest_turn,
        ),
        (steps is None or first <= steps, f"a first step up to {steps}", first),
        (
            contract.shares_side or not grant.side,
            "no side",
            f"{len(grant.side)} bytes",
        ),
    )
    for is_kept, expected, got in rules:
        if not is_kept:
            raise ProtocolError(
                f"turn {turn}: expected {expected}, got {got}; the server is in error "
                "or not honest, and nothing of this client's was changed"
            )

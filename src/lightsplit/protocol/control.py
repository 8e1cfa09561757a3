"""What client and server say to each other besides the messages of a step.

    client                                   server
    Hello(name, contract, purpose)  ──►
                                    ◄──  Welcome(index, run)      or Refusal
    Ready(batches)                  ──►
                                    ◄──  Grant(turn, steps, …)    when it is its turn
      … the four messages of each step, steps times; codes and outputs of the test set …
    TurnDone(turn, sealed side)     ──►
                                    ◄──  Grant(…) for its next turn, or Finished
    Heard()                         ──►  after Finished; the stream ends

A client always waits for the answer to what it sent, but for the last, which has none;
the server never speaks first.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Hello:
    """Client to server: who I am, what for, and the contract as I understand it."""

    name: str
    contract: str
    purpose: str = "train"  # or "predict"


@dataclass(frozen=True)
class Welcome:
    """Server to client: which client you are in which run.

    Attributes:
        index: position of the client, from which its randomness derives.
        run: random name of the run; hand-offs are bound to it.
        turn: for prediction with shared heads, the turn that left ``side``.
        side: for prediction with shared heads, the newest sealed side; else empty.
    """

    index: int
    run: str
    turn: int = 0
    side: bytes = b""


@dataclass(frozen=True)
class Ready:
    """Client to server: how many batches I have per epoch."""

    batches: int


@dataclass(frozen=True)
class Grant:
    """Server to client: your turn.

    Attributes:
        turn: number of the turn in the whole run.
        steps: how many steps it has; 0 is a turn for evaluation alone.
        done: steps of it that the server has applied already (a repeated turn).
        first_step: the client's own number of the first one.
        oldest_step: a private side as of this step or later may still be asked for.
        evaluate: try the test set after the last step.
        side: with shared heads, the sealed side that the last turn left; empty for the
            very first turn and with private heads.
    """

    turn: int
    steps: int
    first_step: int
    done: int = 0
    oldest_step: int = 0
    evaluate: bool = False
    side: bytes = b""


@dataclass(frozen=True)
class TurnDone:
    """Client to server: the turn is over; here is the sealed side for the next one.

    Attributes:
        turn: the turn's number.
        side: with shared heads, sealed; else empty.
        loss: mean training loss, if the client chose to report it.
        accuracy, test_loss: on the client's test set, if it was tried and reported.
    """

    turn: int
    side: bytes = b""
    loss: float | None = None
    accuracy: float | None = None
    test_loss: float | None = None


@dataclass(frozen=True)
class Finished:
    """Server to client: the run is over; with shared heads, here is the last side."""

    reason: str = "schedule"
    turn: int = 0
    side: bytes = b""


@dataclass(frozen=True)
class Heard:
    """Client to server: I know that the run is over."""


@dataclass(frozen=True)
class Refusal:
    """Server to client: no, and why. ``code`` is one of protocol.wire.REFUSALS."""

    code: str
    text: str


Control = Hello | Welcome | Ready | Grant | TurnDone | Finished | Heard | Refusal

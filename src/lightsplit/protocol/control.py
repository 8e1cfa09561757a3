"""Control messages: everything that is sent besides the messages of a step.

    client                                   server
    Hello(name, contract, purpose)  ──►
                                    ◄──  Welcome(index, run)      or Refusal
    Ready(batches)                  ──►
                                    ◄──  Grant(turn, steps, …)    when it is its turn
      … the four messages of each step, steps times; codes and outputs of the test set …
    TurnDone(turn, sealed side)     ──►
                                    ◄──  Grant(…) for its next turn, or Finished
    Heard()                         ──►  after Finished; the stream ends

A client waits for the answer to every message but the last, which has none. The server
never speaks first.

A client with a loop of its own needs no turns:

    Hello(…, purpose="loop")        ──►  ◄──  Welcome(index, run)
    Update("start", updates made)   ──►  ◄──  Updated(…)
      … the four messages of each step …
    Update("apply", …)              ──►  ◄──  Updated(…)      when its optimizer steps
"""

from dataclasses import dataclass

from lightsplit.protocol.phases import TRAIN


@dataclass(frozen=True)
class Hello:
    """Client to server: my name, my purpose, and the contract as I understand it."""

    name: str
    contract: str
    purpose: str = "train"  # or "predict", or "loop" for a loop without turns


@dataclass(frozen=True)
class Welcome:
    """Server to client: your number and the name of the run.

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
    """Client to server: the number of my batches per epoch."""

    batches: int


@dataclass(frozen=True)
class Grant:
    """Server to client: your turn.

    Attributes:
        turn: number of the turn in the whole run.
        steps: number of steps; 0 is a turn for evaluation alone.
        done: steps of it that the server has applied already (a repeated turn).
        first_step: the client's own number of the first step.
        oldest_step: the server may still ask for a private side of this step or later.
        evaluate: whether to evaluate on the test set after the last step.
        side: with shared heads, the sealed side that the last turn left; empty for the
            very first turn and with private heads.
        run_step: steps of all clients before this turn, in its phase of the run.
        run_steps: steps of all clients in the whole phase.
        phase: of the run (``protocol.phases``).
        tested: codes of the client's test set that the server has.
        oldest_turn: in parallel rounds with shared heads, the server may still ask for
            the side of this round or later.
        hand_on: in parallel rounds with shared heads, whether to hand in the sealed
            side, for an owner who comes late.
    """

    turn: int
    steps: int
    first_step: int
    done: int = 0
    oldest_step: int = 0
    evaluate: bool = False
    side: bytes = b""
    run_step: int = 0
    run_steps: int = 0
    phase: str = TRAIN
    tested: int = 0
    hand_on: bool = False
    oldest_turn: int = 0


@dataclass(frozen=True)
class TurnDone:
    """Client to server: the turn is over; here is the sealed side for the next one.

    Attributes:
        turn: the turn's number.
        side: with shared heads, sealed; else empty.
        loss: mean training loss, if the client chose to report it.
        figures: on the client's test set, if evaluated and reported: the loss, then
            the metrics in the order of the contract; else empty.
        samples: of the test set, if there are figures; they weigh by it.
    """

    turn: int
    side: bytes = b""
    loss: float | None = None
    figures: tuple[float, ...] = ()
    samples: int = 0


@dataclass(frozen=True)
class Finished:
    """Server to client: the run is over; with shared heads, here is the last side."""

    reason: str = "schedule"
    turn: int = 0
    side: bytes = b""


@dataclass(frozen=True)
class Heard:
    """Client to server: I have received Finished."""


@dataclass(frozen=True)
class Update:
    """Client to server, in a loop without turns: what my optimizer has done.

    Attributes:
        action: ``apply`` asks for the update of the server's weights; ``keep`` asks the
            server to save them, because the client saves its own; ``start`` says where
            a client stands that begins or has loaded a checkpoint; ``again`` asks where
            the server stands after a broken line.
        number: of the update to apply; otherwise the updates that this client has made.
        rate: the learning rate of the client's optimizer now.
        base_rate: the learning rate that its schedule began with.
    """

    action: str
    number: int
    rate: float = 1.0
    base_rate: float = 1.0


@dataclass(frozen=True)
class Updated:
    """Server to client, in a loop without turns: where I stand with you.

    Attributes:
        number: updates of this client that were applied.
        saved: those of them that a restart of the server cannot lose.
        messages: of the next update that were answered.
    """

    number: int
    saved: int
    messages: int = 0


@dataclass(frozen=True)
class Refusal:
    """Server to client: no, and why. ``code`` is one of protocol.frames.REFUSALS."""

    code: str
    text: str


Control = (
    Hello
    | Welcome
    | Ready
    | Grant
    | TurnDone
    | Finished
    | Heard
    | Update
    | Updated
    | Refusal
)

"""Watches the clients while they train, and says what is to be done about them.

    begin(client) ─► a turn, its messages pass the collector ─► end(client) ─► Ruling

    on_flag   warn   the verdict is told and recorded, nothing else happens
              skip   turns of a flagged client run and are undone, until it is cleared
              stop   the run ends

Verdicts fall at the end of a window of rounds, when every client has had its turns:
only then are they comparable. So what a client did before it was flagged stays done.
Only a detector that judges turns (SafeSplit) undoes the very turn that it sets aside.

Of several detectors the first one acts; the others judge the same evidence and are told
and recorded beside it.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from lightsplit.backdoors import (
    Detector,
    Evidence,
    EvidenceCollector,
    Verdict,
    flat_weights,
)
from lightsplit.errors import ConfigError
from lightsplit.runtime import State

OnFlag = Literal["warn", "skip", "stop"]


class Ruling(NamedTuple):
    """What follows from a turn.

    Attributes:
        verdict: the new one of the detector that acts, at the end of a window.
        restore: the state to go back to, where the turn is to be undone.
        others: the verdicts of the detectors that only watch, on the same evidence.
    """

    verdict: Verdict | None = None
    restore: State | None = None
    others: tuple[Verdict, ...] = ()


class Guard:
    """Detectors with their evidence, and the rule for what the first one flags.

    Args:
        detectors: that judge; the first one acts, the others only watch.
        collector: through which the messages pass.
        backbone: whose weights a detector that judges turns looks at.
        on_flag: what to do about a flagged client.
        every: rounds between verdicts; 0 is once per epoch.
    """

    def __init__(
        self,
        detectors: Sequence[Detector],
        collector: EvidenceCollector,
        backbone: nn.Module,
        *,
        on_flag: OnFlag = "warn",
        every: int = 0,
    ) -> None:
        first = detectors[0]
        if first.judges_turns and on_flag == "stop":
            raise ConfigError(
                f"{first.name} sets turns aside and accuses nobody: "
                "on_flag must be warn or skip"
            )
        self.detectors = tuple(detectors)
        self.collector = collector
        self.on_flag = on_flag
        self.every = every
        self.flagged: tuple[int, ...] = ()
        self._backbone = backbone
        self._turns: deque[tuple[Evidence, State]] = deque(maxlen=first.clients)
        self._weights_before: Tensor | None = None
        self._state_before: State | None = None

    @property
    def detector(self) -> Detector:
        """The detector that acts."""
        return self.detectors[0]

    @property
    def is_stopping(self) -> bool:
        """Say whether the run is to end now."""
        return self.on_flag == "stop" and bool(self.flagged)

    def begin(self, client: int, capture: Callable[[], State]) -> None:
        """Get ready for a turn; ``capture`` returns the state that it starts from."""
        if self.detector.judges_turns:
            self._weights_before = flat_weights(self._backbone)
        elif self.on_flag == "skip" and client in self.flagged:
            self._state_before = capture()

    def end(
        self, client: int, *, ends_window: bool, capture: Callable[[], State]
    ) -> Ruling:
        """Judge, if it is time to, and say whether the turn is to be undone."""
        if self.detector.judges_turns:
            return self._judge_turn(client, ends_window, capture)
        restore, self._state_before = self._state_before, None
        if not ends_window:
            return Ruling(restore=restore)
        verdict, *others = self._judge_window()
        return Ruling(verdict, restore, tuple(others))

    def state(self) -> State:
        """Return everything that verdicts to come depend on, for a checkpoint."""
        known = {
            "evidence": self.collector.state(),
            **{room: judge.state() for room, judge in self._rooms().items()},
            "flagged": {str(client): torch.ones(()) for client in self.flagged},
            **{f"turn-{age}": _packed(*turn) for age, turn in enumerate(self._turns)},
        }
        return {
            f"{room}/{name}": tensor
            for room, tensors in known.items()
            for name, tensor in tensors.items()
        }

    def load(self, state: State) -> None:
        """Go on from what ``state`` returned."""
        rooms: dict[str, State] = {}
        for key, tensor in state.items():
            room, name = key.split("/", 1)
            rooms.setdefault(room, {})[name] = tensor
        self.collector.load(rooms.get("evidence", {}))
        for room, judge in self._rooms().items():
            judge.load(rooms.get(room, {}))
        self.flagged = tuple(sorted(map(int, rooms.get("flagged", {}))))
        ages = sum(room.startswith("turn-") for room in rooms)
        self._turns.extend(_unpacked(rooms[f"turn-{age}"]) for age in range(ages))

    def _rooms(self) -> dict[str, Detector]:
        """Return where in a checkpoint each detector keeps what it remembers."""
        watching = {f"watching-{judge.name}": judge for judge in self.detectors[1:]}
        return {"detector": self.detector, **watching}

    def _judge_window(self) -> list[Verdict]:
        window = self.collector.window()
        verdicts = [judge.judge(window) for judge in self.detectors]
        self.collector.clear()
        self.flagged = verdicts[0].flagged
        return verdicts

    def _judge_turn(
        self, client: int, ends_window: bool, capture: Callable[[], State]
    ) -> Ruling:
        assert self._weights_before is not None  # noqa: S101 begin() has been called
        weights = (self._weights_before, flat_weights(self._backbone))
        state = capture() if self.on_flag == "skip" else {}
        self._turns.append((Evidence(client, weights=weights), state))
        verdict = self.detector.judge([evidence for evidence, _ in self._turns])
        self.flagged = verdict.flagged
        restore = None
        if self.on_flag == "skip" and verdict.flags[-1]:
            restore = self._newest_benign(verdict)
        return Ruling(verdict if ends_window else None, restore)

    def _newest_benign(self, verdict: Verdict) -> State:
        """Return the state after the newest benign turn; else after the one before."""
        states = [state for _, state in self._turns]
        benign = [
            state
            for state, is_flagged in zip(states, verdict.flags, strict=True)
            if not is_flagged
        ]
        return benign[-1] if benign else states[-2]


def _packed(evidence: Evidence, state: State) -> State:
    assert evidence.weights is not None  # noqa: S101 a turn always has them
    before, after = evidence.weights
    facts = {
        "client": torch.tensor(evidence.client),
        "before": before,
        "after": after,
    }
    return facts | {f"state/{key}": tensor for key, tensor in state.items()}


def _unpacked(tensors: State) -> tuple[Evidence, State]:
    weights = (tensors["before"], tensors["after"])
    state = {
        key.removeprefix("state/"): tensor
        for key, tensor in tensors.items()
        if key.startswith("state/")
    }
    return Evidence(int(tensors["client"]), weights=weights), state

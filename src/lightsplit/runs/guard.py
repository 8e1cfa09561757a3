"""Judges the clients while they train, and decides whether to undo or stop.

    begin(client) ─► a turn, its messages pass the collector ─► end(client) ─► Ruling

    on_flag   warn   show and record the verdict, and do nothing else
              skip   undo every turn of a flagged client, until it is cleared
              stop   end the run

Detectors judge at the end of a window of rounds: only then has every client had its
turns, and clients can be compared. Turns before the verdict are not undone. Only a
detector that judges single turns (SafeSplit) undoes the very turn that it rejects.

Of several detectors the first one acts. The others judge the same evidence; their
verdicts are shown and recorded beside the first one's.
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
    """The guard's decision after a turn.

    Attributes:
        verdict: of the detector that acts; None unless a window has ended.
        restore: the state to return to; None unless the turn must be undone.
        others: verdicts of the other detectors on the same evidence.
    """

    verdict: Verdict | None = None
    restore: State | None = None
    others: tuple[Verdict, ...] = ()


class Guard:
    """Collects evidence, lets detectors judge it, and acts on the first one's flags.

    Args:
        detectors: the first one acts, the others only judge.
        collector: of evidence; all messages pass through it.
        backbone: its weights are the evidence of a detector that judges turns.
        on_flag: the action against a flagged client.
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
                f"{first.name} rejects turns and flags no client: "
                "on_flag must be warn or skip, got stop"
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
        """Return whether the run must end now."""
        return self.on_flag == "stop" and bool(self.flagged)

    def begin(self, client: int, capture: Callable[[], State]) -> None:
        """Prepare for a turn; ``capture`` returns the state before it."""
        if self.detector.judges_turns:
            self._weights_before = flat_weights(self._backbone)
        elif self.on_flag == "skip" and client in self.flagged:
            self._state_before = capture()

    def end(
        self, client: int, *, ends_window: bool, capture: Callable[[], State]
    ) -> Ruling:
        """Judge if a judgement is due, and say whether to undo the turn."""
        if self.detector.judges_turns:
            return self._judge_turn(client, ends_window, capture)
        restore, self._state_before = self._state_before, None
        if not ends_window:
            return Ruling(restore=restore)
        verdict, *others = self._judge_window()
        return Ruling(verdict, restore, tuple(others))

    def state(self) -> State:
        """Return everything that later verdicts depend on, for a checkpoint."""
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
        """Resume from the tensors that ``state`` returned."""
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
        """Return each detector by the prefix of its tensors in a checkpoint."""
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
        """Return the state after the newest benign turn, or after the turn before."""
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

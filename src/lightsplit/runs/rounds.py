"""Rounds, and which owners took part in each.

    round          the same number of batches of every owner who takes part: one in
                   parallel rounds, a turn's in rounds of SplitFed
    participation  for every round, which owners reached each of its stages

    codes ⊇ gradients ⊇ shares ⊇ done

An owner may leave a round at any stage. In a parallel round, the owners that sent a
code were in the joined forward pass, those that sent an output gradient were in the
update of the backbone, and with shared heads those that sent a share were in the update
of head and tail. In a round of SplitFed, either all of an owner's steps are in the
backbone (``gradients``; ``codes`` lists the same owners) or none are. Steps count only
for owners that handed the round in: others repeat their batches when they come back.
"""

import itertools
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from lightsplit import seeding
from lightsplit.errors import RunError
from lightsplit.results import atomic
from lightsplit.results.appending import append_line, whole_lines
from lightsplit.runs.schedule import Schedule, Turn
from lightsplit.runtime import Pace

FILE_NAME = "participation.jsonl"
STAGES = ("codes", "gradients", "shares", "done")


class Attendance(NamedTuple):
    """The owners that reached each stage of a round, by number and in order."""

    codes: tuple[int, ...]
    gradients: tuple[int, ...]
    shares: tuple[int, ...]
    done: tuple[int, ...]

    @classmethod
    def full(cls, owners: Sequence[int]) -> "Attendance":
        """Return the attendance of owners that all stay to the end."""
        whole = tuple(sorted(owners))
        return cls(whole, whole, whole, whole)

    def to_line(self, number: int) -> str:
        """Return a line of the file; a stage with the same owners is left out."""
        line: dict[str, Any] = {"round": number, "codes": list(self.codes)}
        for before, stage in itertools.pairwise(STAGES):
            if getattr(self, stage) != getattr(self, before):
                line[stage] = list(getattr(self, stage))
        return json.dumps(line)

    @classmethod
    def from_line(cls, line: Mapping[str, Any], clients: int) -> "Attendance":
        """Return the attendance in a line; raise ValueError if it cannot be one."""
        found: list[tuple[int, ...]] = []
        allowed = set(range(clients))
        for stage in STAGES:
            owners = line.get(stage, found[-1] if found else None)
            if owners is None or not set(owners) <= allowed:
                raise ValueError(f"{stage}: expected some of {sorted(allowed)}")
            allowed = set(owners)
            found.append(tuple(sorted(allowed)))
        return cls(*found)


class Participation:
    """The attendance of every round of a run, in a file that is only added to.

    Args:
        file: ``participation.jsonl``.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def add(self, number: int, attendance: Attendance) -> None:
        """Add the attendance of a round that is over; ``sync`` puts it on the disk."""
        line = attendance.to_line(number).encode()
        append_line(self._file, line, waits=False)

    def sync(self) -> None:
        """Wait until every line is on the disk, before a checkpoint relies on them."""
        if self._file.exists():
            with self._file.open("ab") as file:
                os.fsync(file.fileno())

    def go_back(self, number: int) -> None:
        """Forget round ``number`` and all after it: they will be repeated."""
        if not self._file.exists():
            return
        lines = [line for _, line in whole_lines(self._file)]
        kept = [line for line in lines if json.loads(line)["round"] < number]
        if len(kept) < len(lines):
            atomic.write_bytes(self._file, b"".join(line + b"\n" for line in kept))


def read_participation(file: Path, clients: int) -> list[Attendance]:
    """Return the attendance of every round, beginning with the first."""
    if not file.is_file():
        raise RunError(f"there is no file {file}")
    found: list[Attendance] = []
    for number, line in whole_lines(file):
        try:
            told = json.loads(line)
            if told["round"] != len(found):
                raise ValueError(f"expected round {len(found)}, got {told['round']}")
            found.append(Attendance.from_line(told, clients))
        except (ValueError, KeyError, TypeError) as error:
            raise RunError(
                f"line {number} of {file} is not the attendance of a round of "
                f"{clients} owners: {error}"
            ) from error
    return found


@dataclass(frozen=True)
class Round:
    """A turn of every owner.

    Attributes:
        number: in the run.
        turn: the last of its owners' turns; epochs and evaluations follow from it.
        steps_of: each owner.
        place: steps of all owners before it, if all took part in every round.
    """

    number: int
    turn: Turn
    steps_of: tuple[int, ...]
    place: int

    @property
    def steps(self) -> int:
        """Of all owners, if all take part."""
        return sum(self.steps_of)


def drawn_owners(able: set[int], most: int, *, seed: int, number: int) -> set[int]:
    """Return the owners of a round: all who are able, or some of them by lot.

    Args:
        able: owners who could take part.
        most: how many may; 0 is all.
        seed: of the run.
        number: of the round.
    """
    if not most or len(able) <= most:
        return set(able)
    lot = seeding.numpy_generator(seed, "owners of a round", number)
    return set(lot.choice(sorted(able), most, replace=False).tolist())


def drawn_order(owners: int, *, seed: int, number: int) -> list[int]:
    """Return all owners in the order in which they work, drawn anew for each round.

    Absent owners are left out, and the others keep their order.
    """
    lot = seeding.numpy_generator(seed, "order of a round", number)
    order: list[int] = lot.permutation(owners).tolist()
    return order


def splitfed_paces(
    round_: Round, run_steps: int, *, seed: int | None = None
) -> dict[int, Pace]:
    """Return the owners of a round in their order, with the place of their steps.

    Args:
        round_: of SplitFed.
        run_steps: of all owners in the whole run.
        seed: of the run, where owners work one after the other (v2); None where they
            work at the same time (v1), each with the rates that a lone one would have.
    """
    owners, place = len(round_.steps_of), round_.place
    order = list(range(owners))
    if seed is not None:
        order = drawn_order(owners, seed=seed, number=round_.number)
    found: dict[int, Pace] = {}
    for owner in order:
        steps = round_.steps_of[owner]
        found[owner] = Pace(0, steps, place, run_steps)
        place += 0 if seed is None else steps
    return found


def with_absent(batches: Sequence[int], clients: int) -> list[int]:
    """Fill in batches for owners that have not come yet: the mean of the others'."""
    known = [count for count in batches if count]
    mean = math.ceil(sum(known) / len(known))
    found = [count or mean for count in batches]
    return found + [mean] * (clients - len(found))


def rounds(schedule: Schedule, first: int = 0) -> Iterator[Round]:
    """Yield the rounds of a schedule from round ``first`` on."""
    last, per_epoch = len(schedule.batches) - 1, schedule.rounds_per_epoch
    total = schedule.total_steps
    for number in itertools.count(first):
        place = schedule.place_of(number)
        if place >= total:
            return
        epoch, position = divmod(number, per_epoch)
        steps = tuple(schedule.round_steps(position))
        ends = (True, position == per_epoch - 1)
        turn = Turn(epoch, number, last, steps[last], *ends)
        yield Round(number, turn, steps, place)

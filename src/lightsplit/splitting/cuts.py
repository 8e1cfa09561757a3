"""Where a cut lies in a trace, and who has which value.

    input ─► head … head_until │ … backbone … │ tail_from … tail ─► output
             segment 0         │  segment 1   │ segment 2

Both parties run the model's own code, and each has the real modules of its own segments
only. So a value is right at a party if everything that it was made from is: inputs that
the party has, its own parameters, constants, and the tensors that it received.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from lightsplit.errors import SplitError
from lightsplit.splitting.traces import Call, Op, Trace, Value

Argument = Literal["head_until", "tail_from"]
HEAD, BACKBONE, TAIL = range(3)
NO_TAIL = Call("", start=math.inf, stop=math.inf)


class CutRefusedError(SplitError):
    """One of the two cuts is not possible; ``argument`` names it."""

    def __init__(self, argument: Argument, path: str, reason: str) -> None:
        super().__init__(f"cannot cut at {argument}={path!r}: {reason}")
        self.argument = argument
        self.path = path


@dataclass(frozen=True)
class Place:
    """The names of the two cuts, and of the inputs that the server gets as well."""

    head_until: str
    tail_from: str | None
    share: tuple[str, ...] = ()

    def refused(self, segment: int, reason: str) -> CutRefusedError:
        """Return the refusal of the cut where ``segment`` begins."""
        if segment == TAIL and self.tail_from is not None:
            return CutRefusedError("tail_from", self.tail_from, reason)
        return CutRefusedError("head_until", self.head_until, reason)

    def tail_too_early(self) -> CutRefusedError:
        """Return the refusal of a tail that does not come after the head."""
        last = repr(self.head_until)
        reason = f"the tail must start after the head's last module, {last}"
        return self.refused(TAIL, reason)

    def check_nesting(self) -> None:
        """Refuse a tail that starts in the head's last module, or that contains it."""
        head, tail = f"{self.head_until}.", f"{self.tail_from}."
        if self.tail_from and (head.startswith(tail) or tail.startswith(head)):
            raise self.tail_too_early()


@dataclass(frozen=True)
class Cut:
    """A trace in three segments.

    Attributes:
        trace: of one forward pass.
        place: of the cuts.
        front: the call that ends the head.
        back: the call that starts the tail; NO_TAIL if the backbone runs to the end.
    """

    trace: Trace
    place: Place
    front: Call
    back: Call

    @property
    def has_tail(self) -> bool:
        """Whether there is a tail."""
        return self.back is not NO_TAIL

    def segment(self, position: float) -> int:
        """Return the segment that a position lies in."""
        if position <= self.front.stop:
            return HEAD
        return BACKBONE if position < self.back.start else TAIL

    def segments(self, call: Call) -> set[int]:
        """Return the segments that a call lies in."""
        return set(range(self.segment(call.start), self.segment(call.stop) + 1))

    def made_in(self, value: Value) -> int:
        """Return the segment that made a value; inputs are made in the head."""
        op = self.trace.makers.get(value)
        return HEAD if op is None else self.segment(op.at)

    def right(
        self,
        own: Iterable[int] = (),
        inputs: Iterable[str] = (),
        received: Iterable[Value] = (),
        since: float = math.inf,
    ) -> set[Value]:
        """Return the values that are right at a party.

        Args:
            own: the segments whose parameters and random numbers the party has.
            inputs: names of the inputs that it has.
            received: values that it receives.
            since: the position of receiving them.
        """
        own, waiting = set(own), set(received)
        found = set(self.trace.constants)
        found |= {self.trace.inputs[name] for name in inputs}
        for op in self.trace.ops:
            if waiting and op.at > since:
                found |= waiting
                waiting = set()
            is_open = not (op.states or op.is_random)
            is_possible = is_open or self.segment(op.at) in own
            if is_possible and found.issuperset(op.reads):
                found.update(op.makes)
        return found | waiting

    @cached_property
    def common(self) -> set[Value]:
        """The values that both parties make by themselves."""
        return self.right(inputs=self.place.share)

    @cached_property
    def at_server(self) -> set[Value]:
        """The values that are right at the server, if all of the front cut arrives."""
        inputs, front = self.place.share, self.front
        return self.right((BACKBONE,), inputs, front.gives, front.stop)

    @cached_property
    def at_client(self) -> set[Value]:
        """The values that are right at the client, once it has the output."""
        own, inputs = (HEAD, TAIL), self.trace.inputs
        return self.right(own, inputs, self.sent_back, self.back.start)

    @cached_property
    def at_tail(self) -> set[Value]:
        """The values that are right where nothing but the tail and its input is."""
        return self.right((TAIL,), (), self.sent_back, self.back.start)

    @cached_property
    def sent_back(self) -> list[Value]:
        """The values that cross the back cut."""
        made = [
            value
            for value in dict.fromkeys(self.back.takes)
            if self.made_in(value) == BACKBONE
        ]
        alone = self.right((HEAD, TAIL), self.trace.inputs)
        foreign = [value for value in made if value not in alone] or made
        if self.has_tail and not foreign:
            raise self.place.refused(TAIL, "no module is left for the backbone")
        return foreign

    @property
    def results(self) -> list[Value]:
        """What the server has to make."""
        return self.sent_back if self.has_tail else list(self.trace.outputs)

    def entering(
        self, targets: Iterable[Value], segment: int, right: set[Value]
    ) -> Iterator[tuple[Value, Op | None]]:
        """Yield what ``targets`` need of earlier segments, and what reads it there.

        Values that are ``right`` without crossing are left out. What the model returns
        is read by no operation.
        """
        seen = set[Value]()
        waiting: list[tuple[Value, Op | None]] = [(value, None) for value in targets]
        while waiting:
            value, reader = waiting.pop(0)
            if value in seen or value in right:
                continue
            seen.add(value)
            if self.made_in(value) < segment:
                yield value, reader
            else:
                op = self.trace.makers[value]
                waiting.extend((read, op) for read in op.reads)

    @cached_property
    def sent(self) -> list[Value]:
        """The values of the front cut that the server needs."""
        needed = dict(self.entering(self.results, BACKBONE, self.common))
        return [value for value in dict.fromkeys(self.front.gives) if value in needed]

    @cached_property
    def sent_and_read_on(self) -> set[Value]:
        """Those that the client keeps using, as in a skip to the tail."""
        if not self.has_tail:
            return set()
        wanted = list(self.trace.outputs)
        for op in self.trace.ops:
            if op.decides and self.segment(op.at) != HEAD:
                wanted.extend(op.reads)
        read = dict(self.entering(wanted, BACKBONE, set(self.sent_back)))
        return {value for value in self.sent if value in read}

    @cached_property
    def sent_back_and_read_on(self) -> set[Value]:
        """Those outputs that the tail keeps using after its first module."""
        late = [op.reads for op in self.trace.ops if op.at > self.back.stop]
        read = {value for reads in late for value in reads} | set(self.trace.outputs)
        return {value for value in self.sent_back if value in read}

    @property
    def tail_needs(self) -> str:
        """What the tail needs besides the output; empty if nothing."""
        if not self.has_tail:
            return ""
        found = self.entering(self.trace.outputs, TAIL, self.at_tail)
        names = (self.trace.describe(value, self.back.start) for value, _ in found)
        return next(names, "")

    def end_of(self, part: int) -> float:
        """Return the position at which a part stops to run the model's code."""
        if part == BACKBONE:
            return self.back.start
        return math.inf if self.has_tail else self.front.stop

    def makes_for(self, part: int) -> set[str]:
        """Return the modules elsewhere that make what a part has to make itself."""
        own = {part} if part != HEAD else {HEAD, TAIL}
        right = {HEAD: self.at_client, BACKBONE: self.common}.get(part)
        right = self.at_tail if right is None else right
        read = {v for op in self.trace.ops if self._runs(op, own) for v in op.reads}
        if (part == BACKBONE) != self.has_tail:  # the part that returns them
            read |= set(self.trace.outputs)
        wanted = (read & right) - set(self.sent_back)
        makers = [
            op
            for op in self.trace.ops
            if not self._runs(op, own) and not wanted.isdisjoint(op.makes)
        ]
        return {
            call.path
            for call in self.trace.calls
            if any(call.start < op.at < call.stop for op in makers)
        }

    def _runs(self, op: Op, own: set[int]) -> bool:
        return self.segment(op.at) in own


def several(names: list[str], may: str) -> str:
    """Return that too much crosses a cut, and what may."""
    listed = ", ".join(names)
    if len(names) == 1:
        return f"{listed} would cross there, and the tensor at the cut would not"
    return f"{len(names)} values cross there and only {may} may: {listed}"


def shared_state(names: str) -> str:
    """Return why parts of both sides cannot use the same state."""
    return f"the parts on both sides use {names}, and shared state cannot be cut"

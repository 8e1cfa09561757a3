"""The plan of a cut: what becomes of each module and each state in each part.

A module that runs only in a part is kept: the part holds the very module. One that runs
only elsewhere is replaced by a stand-in. One that does both, such as the model itself,
is opened: the part has a copy of it, which runs the model's own code.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from torch import nn

from lightsplit.splitting.arguments import Blank
from lightsplit.splitting.checks import check, refuse_decisions
from lightsplit.splitting.crossing import Crossing
from lightsplit.splitting.cuts import BACKBONE, HEAD, NO_TAIL, TAIL, Cut, Place
from lightsplit.splitting.modules import ModuleNames
from lightsplit.splitting.traces import Call, Trace, Value


class Fate(Enum):
    """What becomes of a module in one part."""

    KEPT = "kept"
    OPENED = "opened"
    STOOD_IN = "stood in"


@dataclass(frozen=True)
class Plan:
    """A cut that was checked.

    Attributes:
        place: of the cut.
        activation: what crosses the front cut.
        output: what crosses the back cut; None without a tail.
        tail_needs: what the tail needs besides the output; empty if nothing.
        fates: of the outermost modules that are kept or stood in, and of all that are
            opened, by part and first name.
        states: the parts that use a parameter or saved buffer, by its first name.
        results: of the modules: a nest, and the forms of the tensors in it.
    """

    place: Place
    activation: Crossing
    output: Crossing | None
    tail_needs: str
    fates: Mapping[int, Mapping[str, Fate]]
    states: Mapping[str, frozenset[int]]
    results: Mapping[str, tuple[Any, tuple[Blank, ...]]]

    def fate(self, part: int, path: str) -> Fate:
        """Return what becomes of a module in a part, perhaps with one around it."""
        while path not in self.fates[part]:
            path = path.rpartition(".")[0]
        return self.fates[part][path]


def make_plan(model: nn.Module, traces: Sequence[Trace], place: Place) -> Plan:
    """Return the plan of a cut; raise CutRefusedError with the reason."""
    names = ModuleNames(model)
    cuts = [_locate(names, trace, place) for trace in traces]
    for cut in cuts:
        check(cut)
    states = _segments_of_states(cuts)
    parts = (HEAD, BACKBONE) if place.tail_from is None else (HEAD, BACKBONE, TAIL)
    fates = {part: _fates(names, cuts, states, part) for part in parts}
    for part in (HEAD, BACKBONE):
        stood_in = [p for p, fate in fates[part].items() if fate is Fate.STOOD_IN]
        for cut in cuts:
            refuse_decisions(cut, part, stood_in)
    return Plan(
        place=place,
        activation=_activation(cuts),
        output=None if place.tail_from is None else _output(cuts),
        tail_needs=next(filter(None, (cut.tail_needs for cut in cuts)), ""),
        fates=fates,
        states=states,
        results={
            call.path: (call.result, call.forms)
            for cut in cuts
            for call in cut.trace.calls
        },
    )


def _locate(names: ModuleNames, trace: Trace, place: Place) -> Cut:
    front = _one_call(names, trace, place, HEAD)
    if place.tail_from is None:
        return Cut(trace, place, front, NO_TAIL)
    back = _one_call(names, trace, place, TAIL)
    if back.start < front.stop:
        raise place.tail_too_early()
    return Cut(trace, place, front, back)


def _one_call(names: ModuleNames, trace: Trace, place: Place, segment: int) -> Call:
    path = place.head_until if segment == HEAD else place.tail_from
    calls = trace.calls_of.get(names.first[path or ""], [])
    if not calls:
        raise place.refused(
            segment, f"the forward pass never calls it in {trace.mode} mode"
        )
    if len(calls) > 1:
        raise place.refused(segment, f"the forward pass calls it {len(calls)} times")
    return calls[0]


def _activation(cuts: list[Cut]) -> Crossing:
    found = [
        _crossing(cut, cut.front, (cut.front.gives, cut.front.forms), cut.sent)
        for cut in cuts
    ]
    read_on = [[v in cut.sent_and_read_on for v in cut.sent] for cut in cuts]
    return _agreed(cuts[0], HEAD, found, read_on)


def _output(cuts: list[Cut]) -> Crossing:
    found = [
        _crossing(cut, cut.back, (cut.back.takes, cut.back.taken), cut.sent_back)
        for cut in cuts
    ]
    read_on = [[v in cut.sent_back_and_read_on for v in cut.sent_back] for cut in cuts]
    return _agreed(cuts[0], TAIL, found, read_on)


def _crossing(
    cut: Cut,
    at: Call,
    found: tuple[Sequence[Value], Sequence[Blank]],
    values: Sequence[Value],
) -> Crossing:
    before = at.stop if at is cut.front else at.start
    all_values, forms = found
    places = tuple(
        tuple(place for place, each in enumerate(all_values) if each == value)
        for value in values
    )
    return Crossing(
        path=at.path,
        names=tuple(cut.trace.describe(value, before) for value in values),
        places=places,
        forms=tuple(forms[each[0]] for each in places),
        is_read_on=(),
    )


def _agreed(
    cut: Cut, segment: int, found: list[Crossing], read_on: list[list[bool]]
) -> Crossing:
    """Return the crossing of both modes; refuse one that is another in training."""
    first, *others = found
    if any(other.places != first.places for other in others):
        raise cut.place.refused(
            segment,
            "other tensors cross there in training mode than in evaluation mode",
        )
    is_read_on = tuple(any(each) for each in zip(*read_on, strict=True))
    return replace(first, is_read_on=is_read_on)


def _segments_of_states(cuts: list[Cut]) -> dict[str, frozenset[int]]:
    found: dict[str, frozenset[int]] = {}
    for cut in cuts:
        for op in cut.trace.ops:
            for name in op.states:
                before = found.get(name, frozenset())
                found[name] = before | {cut.segment(op.at)}
    return found


def _segments_of_modules(cuts: list[Cut]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for cut in cuts:
        for call in cut.trace.calls:
            found.setdefault(call.path, set()).update(cut.segments(call))
    return found


def _fates(
    names: ModuleNames, cuts: list[Cut], states: Mapping[str, Iterable[int]], part: int
) -> dict[str, Fate]:
    called = _segments_of_modules(cuts)
    needed = set[str]().union(*(cut.makes_for(part) for cut in cuts))
    found: dict[str, Fate] = {}
    waiting = [""]
    while waiting:
        path = waiting.pop()
        below = names.below(path)
        segments = set[int]().union(*(called.get(each, ()) for each in below))
        read = {s for name in names.states_below(path) for s in states.get(name, ())}
        if segments:
            fate = _fate(segments, part, is_needed=not needed.isdisjoint(below))
        else:
            fate = _fate(read, part, is_needed=bool(read))
        is_list = path not in called and (segments or names.is_list(path))
        if fate is Fate.STOOD_IN and is_list:  # code takes its modules one by one
            fate = Fate.OPENED
        found[path] = fate
        if fate is Fate.OPENED:
            waiting.extend(names.children(path))
    return found


def _fate(segments: set[int], part: int, *, is_needed: bool) -> Fate:
    if part in segments:
        with_client = {HEAD, TAIL} if part != BACKBONE else {BACKBONE}
        return Fate.KEPT if segments <= with_client else Fate.OPENED
    if part == HEAD and segments == {BACKBONE, TAIL}:  # the tail begins inside it
        return Fate.OPENED
    return Fate.OPENED if is_needed else Fate.STOOD_IN

"""Refusals of a cut, each with its reason.

Everything that would cross besides the tensors at a cut is named, with the module that
made it and the one that reads it.
"""

import math
from collections.abc import Collection, Sequence

from lightsplit.splitting.arguments import Blank
from lightsplit.splitting.crossing import unjoinable
from lightsplit.splitting.cuts import BACKBONE, HEAD, TAIL, Cut, several, shared_state
from lightsplit.splitting.traces import Op, Value

_MAX_NAMED = 4


def check(cut: Cut) -> None:
    """Raise CutRefusedError unless only what can travel crosses each cut."""
    _refuse_empty_backbone(cut)
    _check_front(cut)
    if cut.has_tail:
        _check_back(cut)
    _refuse_kept(cut)
    _refuse_checkpoints(cut)
    _refuse_shared_state(cut)


def refuse_decisions(cut: Cut, part: int, stood_in: Collection[str]) -> None:
    """Refuse code that a party runs and that branches on numbers it does not have."""
    right = cut.at_server if part == BACKBONE else cut.at_client
    hidden = [call for call in cut.trace.calls if call.path in stood_in]
    for op in cut.trace.ops:
        if not op.decides or op.at > cut.end_of(part):
            continue
        is_early = op.at < cut.back.start < math.inf
        known = right - set(cut.sent_back) if is_early else right
        missing = [value for value in op.reads if value not in known]
        if not missing or any(call.start < op.at < call.stop for call in hidden):
            continue
        owner = "server" if part == BACKBONE else "client"
        made = cut.trace.describe(missing[0], op.at)
        raise cut.place.refused(
            HEAD if part == BACKBONE else TAIL,
            f"{cut.trace.place(op)} branches on numbers that the {owner} does not have "
            f"({op.name} of {made})",
        )


def _refuse_empty_backbone(cut: Cut) -> None:
    if not any(cut.made_in(value) == BACKBONE for value in cut.results):
        segment = TAIL if cut.has_tail else HEAD
        raise cut.place.refused(segment, "no module is left for the backbone")


def _check_front(cut: Cut) -> None:
    needed = dict(cut.entering(cut.results, BACKBONE, cut.common))
    crossing = needed.keys() & set(cut.front.gives)
    if not crossing and not needed:
        reason = "no value computed before it is used after it"
        raise cut.place.refused(HEAD, reason)
    if needed.keys() != crossing:
        raise cut.place.refused(HEAD, _explained(cut, needed, HEAD))
    _refuse_unjoinable(cut, HEAD, cut.sent, (cut.front.gives, cut.front.forms))


def _check_back(cut: Cut) -> None:
    wrong = [value for value in cut.trace.outputs if value not in cut.at_client]
    if wrong:
        needed = dict(cut.entering(wrong, TAIL, cut.at_client))
        needed = dict.fromkeys(cut.sent_back) | needed
        raise cut.place.refused(TAIL, _explained(cut, needed, TAIL))
    _refuse_unjoinable(cut, TAIL, cut.sent_back, (cut.back.takes, cut.back.taken))


def _refuse_unjoinable(
    cut: Cut,
    segment: int,
    values: list[Value],
    found: tuple[Sequence[Value], Sequence[Blank]],
) -> None:
    """Refuse several tensors that cannot travel as one, or that tell an input."""
    if len(values) == 1:
        return
    needed = dict.fromkeys(values)
    if any(_sources(cut, value) for value in values):
        raise cut.place.refused(segment, _explained(cut, needed, segment))
    at = cut.front.stop if segment == HEAD else cut.back.start
    names = [cut.trace.describe(value, at) for value in values]
    reason = unjoinable(names, [found[1][found[0].index(value)] for value in values])
    if reason:
        listed = several(names, "tensors with a row for each sample and a gradient")
        raise cut.place.refused(segment, f"{listed}; {reason}")


def _refuse_kept(cut: Cut) -> None:
    """Refuse an object in the output that holds values of the other party."""
    right = cut.at_client if cut.has_tail else cut.at_server
    for value in cut.trace.kept:
        if value not in right:
            made = cut.trace.describe(value, math.inf)
            raise cut.place.refused(
                TAIL,
                f"the model's output keeps {made}, which stays with the other party; "
                "if that is a transformer's cache, set model.config.use_cache = False",
            )


def _explained(cut: Cut, needed: dict[Value, Op | None], segment: int) -> str:
    at = cut.front.stop if segment == HEAD else cut.back.start
    main = cut.front.gives if segment == HEAD else tuple(cut.sent_back)
    names, inputs = [], set[str]()
    for value in sorted(needed):
        name, op = cut.trace.describe(value, at), needed[value]
        sources = _sources(cut, value)
        inputs |= sources
        notes = (
            [f"made from {_listed(sources)}"] if sources and "input" not in name else []
        )
        if value not in main or len(needed.keys() & set(main)) > 1:
            reader = "the model's output" if op is None else cut.trace.reader(value, op)
            notes.append(f"read by {reader}")
        names.append(f"{name} ({', '.join(notes)})" if notes else name)
    rest = len(names) - _MAX_NAMED
    listed = several(names[:_MAX_NAMED] if rest > 1 else names, _may(cut, segment))
    if rest > 1:
        listed = listed.replace(f"{_MAX_NAMED} values", f"{len(names)} values", 1)
        listed += f" and {rest} more"
    if inputs:
        return f"{listed}; the server gets an input only if share names it"
    return listed


def _may(cut: Cut, segment: int) -> str:
    """Return what may cross a cut."""
    if segment == HEAD:
        return f"what {cut.place.head_until!r} makes"
    return f"what {cut.place.tail_from!r} takes"


def _sources(cut: Cut, value: Value) -> set[str]:
    """Return the inputs that a value was made from, if from nothing else."""
    if value not in cut.right(inputs=cut.trace.inputs):
        return set()
    seen, waiting = {value}, [value]
    while waiting:
        op = cut.trace.makers.get(waiting.pop())
        for read in op.reads if op is not None else ():
            if read not in seen:
                seen.add(read)
                waiting.append(read)
    inputs = cut.trace.inputs.items()
    return {name for name, given in inputs if given in seen}


def _listed(names: Collection[str]) -> str:
    words = " and ".join(repr(name) for name in sorted(names))
    return f"the input {words}" if len(names) == 1 else f"the inputs {words}"


def _refuse_checkpoints(cut: Cut) -> None:
    places = [(HEAD, cut.front)] + ([(TAIL, cut.back)] if cut.has_tail else [])
    for segment, at in places:
        around = [
            call
            for call in cut.trace.calls
            if call.start <= at.start and call.stop >= at.stop
        ]
        if any(call.is_checkpointed for call in around):
            raise cut.place.refused(
                segment,
                "gradient checkpointing runs over the cut, and would run it again in "
                "the backward pass; turn it off for the modules around the cut",
            )


def _refuse_shared_state(cut: Cut) -> None:
    readers: dict[str, dict[int, Op]] = {}
    for op in cut.trace.ops:
        for name in op.states:
            readers.setdefault(name, {}).setdefault(cut.segment(op.at), op)
    for name, found in readers.items():
        if BACKBONE in found and len(found) > 1:
            first, second = sorted((min(found.keys() - {BACKBONE}), BACKBONE))
            one, two = (_name_at(cut, name, found[each]) for each in (first, second))
            names = repr(one) if one == two else f"{one!r} as {two!r}"
            raise cut.place.refused(second, shared_state(names))


def _name_at(cut: Cut, name: str, op: Op) -> str:
    """Return the name of a state that fits the module that reads it."""
    path, names = cut.trace.calls[op.call].path, cut.trace.states[name]
    fitting = [each for each in names if path and each.startswith(f"{path}.")]
    return (fitting or list(names))[0]

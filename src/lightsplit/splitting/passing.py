"""Which results of modules nothing in a part reads, except stand-ins.

A stand-in looks only at the shapes of its arguments, never at the numbers, so such a
result needs no memory: one zero, repeated, in the right shape. If the model's own code
writes into a tensor, every entry needs its own memory.
"""

from collections.abc import Sequence

from lightsplit.splitting.cuts import HEAD, TAIL
from lightsplit.splitting.plans import Fate, Plan
from lightsplit.splitting.traces import Trace, Value


def passed_on(traces: Sequence[Trace], plan: Plan, part: int) -> frozenset[str]:
    """Return the modules whose results only stand-ins of the part read."""
    stood_in = {path for path in plan.fates[part] if _is_stood_in(plan, part, path)}
    called: set[str] = set()
    read: set[str] = set()
    for trace in traces:
        values = _read_by_code(trace, stood_in)
        called.update(call.path for call in trace.calls)
        read.update(
            call.path for call in trace.calls if not values.isdisjoint(call.gives)
        )
    return frozenset(called - read)


def _is_stood_in(plan: Plan, part: int, path: str) -> bool:
    if plan.fates[part][path] is not Fate.STOOD_IN:
        return False
    is_filled = part == HEAD and TAIL in plan.fates
    return not (is_filled and plan.fate(TAIL, path) is Fate.KEPT)


def _read_by_code(trace: Trace, stood_in: set[str]) -> set[Value]:
    """Return the values that are read outside of stand-ins, now or when overwritten."""
    spans = [(one.start, one.stop) for one in trace.calls if one.path in stood_in]
    read = {*trace.outputs, *trace.kept}
    for op in reversed(trace.ops):
        is_inside = any(start < op.at < stop for start, stop in spans)
        if not is_inside:
            read.update(op.reads)
        elif not read.isdisjoint(op.makes):  # the code keeps using the same tensor
            read.update(op.overwrites)
    return read

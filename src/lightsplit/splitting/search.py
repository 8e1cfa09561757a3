"""Where a model can be cut: found by trying, with the same steps as the cut itself."""

from collections.abc import Iterator

from torch import nn

from lightsplit.errors import SplitError
from lightsplit.splitting.cuts import Argument, Plan, plan, refuse_nested
from lightsplit.splitting.graphs import Trace
from lightsplit.splitting.tracing import trace


class Cutter:
    """Plans cuts of one model and keeps its traces."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.paths = [
            name for name, _ in model.named_modules(remove_duplicate=False) if name
        ]
        self._traces: dict[frozenset[str], Trace | SplitError] = {}

    def plan(self, head_until: str, tail_from: str | None = None) -> Plan:
        """Return how to cut at existing paths, or raise ``SplitError``."""
        opened = _ancestors(head_until)
        if tail_from is not None:
            refuse_nested(head_until, tail_from)
            opened |= _ancestors(tail_from)
        return plan(self._trace(opened), head_until, tail_from)

    def allows(self, head_until: str, tail_from: str | None = None) -> bool:
        """Return whether the cuts are possible."""
        try:
            self.plan(head_until, tail_from)
        except SplitError:
            return False
        return True

    def calls(self, argument: Argument, inside: str = "") -> Iterator[str]:
        """Yield the paths of all modules that are called, in the order of execution.

        A module that holds others comes after them where the head could end with it,
        and before them where the tail could start with it.
        """
        try:
            found = self._trace(_ancestors(f"{inside}.x" if inside else "x"))
        except SplitError:
            return
        for node in found.graph.nodes:
            path = str(node.target)
            is_inside = path.startswith(f"{inside}." if inside else "")
            if node.op != "call_module" or found.is_floating(node) or not is_inside:
                continue
            if argument == "tail_from":
                yield path
            if any(True for _ in found.attribute(path).children()):
                yield from self.calls(argument, path)
            if argument == "head_until":
                yield path

    def _trace(self, opened: frozenset[str]) -> Trace:
        if opened not in self._traces:
            try:
                self._traces[opened] = trace(self.model, opened)
            except SplitError as error:
                self._traces[opened] = error
        found = self._traces[opened]
        if isinstance(found, SplitError):
            raise found
        return found


def nearest(order: list[str], legal: list[str], path: str) -> list[str]:
    """Return the legal paths just before and just after ``path``.

    A path that is not called itself stands where its holder or what it holds is.
    """
    related = [
        place
        for place, each in enumerate(order)
        if f"{each}.".startswith(f"{path}.") or f"{path}.".startswith(f"{each}.")
    ]
    if path in order:
        related = [order.index(path)]
    places = [order.index(each) for each in legal]
    if not related:
        return legal[:1] + legal[1:][-1:]
    before = [place for place in places if place < related[0]][-1:]
    after = [place for place in places if place >= related[0]][:1]
    return [order[place] for place in before + after]


def _ancestors(path: str) -> frozenset[str]:
    names = path.split(".")
    return frozenset(".".join(names[:count]) for count in range(len(names)))

"""The search for possible cuts: each is tried with the steps of a real cut."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from torch import nn

from lightsplit.errors import SplitError
from lightsplit.splitting import sequential
from lightsplit.splitting.arguments import Arguments, Signature, Template
from lightsplit.splitting.cuts import Argument, Place
from lightsplit.splitting.loading import with_zero_weights
from lightsplit.splitting.modules import ModuleNames
from lightsplit.splitting.plans import Plan, make_plan
from lightsplit.splitting.recording import record
from lightsplit.splitting.traces import Trace


class Cutter:
    """Plans cuts of one model, which it runs on the example at most twice."""

    def __init__(
        self, model: nn.Module, example: Any = None, share: tuple[str, ...] = ()
    ) -> None:
        self.model = model
        self.example = example
        self.share = share
        self.paths = ModuleNames(model).paths

    @cached_property
    def signature(self) -> Signature:
        """The names of the model's inputs."""
        return Signature.of(self.model)

    @cached_property
    def given(self) -> Arguments:
        """The example as arguments of the model."""
        if self.example is None:
            raise SplitError(
                f"{type(self.model).__name__} is cut by what it does with a batch: "
                "give split an example of its inputs, example=…; shapes and types "
                "matter, numbers do not"
            )
        return self.signature.spread(self.example)

    @cached_property
    def template(self) -> Template:
        """The form of the inputs."""
        return Template.of(self.signature, self.given)

    @cached_property
    def traces(self) -> list[Trace]:
        """What the model does with the example, in evaluation and in training mode."""
        unknown = [name for name in self.share if name not in self.template.names]
        if unknown:
            known = ", ".join(map(repr, self.template.names))
            raise SplitError(
                f"cannot share {unknown[0]!r}: the example has no such input, it has "
                f"{known}"
            )
        model = with_zero_weights(self.model)
        return [
            record(model, self.signature, self.given, training=training)
            for training in (False, True)
        ]

    def is_chain(self, place: Place) -> bool:
        """Return whether the cut needs no example."""
        return sequential.is_chain(self.model, place.head_until, place.tail_from)

    def place(self, head_until: str, tail_from: str | None = None) -> Place:
        """Return the place of a cut at existing paths."""
        return Place(head_until, tail_from, self.share)

    def plan(self, place: Place) -> Plan:
        """Return the plan of a cut, or raise ``SplitError``."""
        place.check_nesting()
        return make_plan(self.model, self.traces, place)

    def allows(self, head_until: str, tail_from: str | None = None) -> bool:
        """Return whether the cuts are possible."""
        place = self.place(head_until, tail_from)
        try:
            place.check_nesting()
            if self.is_chain(place):
                sequential.slices(self.model, place)
            else:
                self.plan(place)
        except SplitError:
            return False
        return True

    def calls(self, argument: Argument) -> list[str]:
        """Return the paths of all modules that are called, in the order of execution.

        A module that holds others comes after them if the head may end with it, and
        before them if the tail may start with it.
        """
        is_tail = argument == "tail_from"
        if self.example is None:
            if not sequential.is_plain(self.model):
                return []
            return list(sequential.calls(self.model, is_tail=is_tail))
        return list(dict.fromkeys(_called(self.traces[0], is_tail=is_tail)))


def _called(trace: Trace, *, is_tail: bool) -> Iterator[str]:
    ordered = sorted(trace.calls, key=lambda call: call.start if is_tail else call.stop)
    return (call.path for call in ordered if call.path)


def nearest(order: list[str], legal: list[str], path: str) -> list[str]:
    """Return the legal paths just before and just after ``path``.

    A path that is not called itself takes the position of its parent or children.
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

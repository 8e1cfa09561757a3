"""Batches with other inputs than the example: may the client's forward pass take them?

The server runs on the example's inputs, and has of the batch the shared ones alone. So
a batch may have more where that makes no difference between the cuts: labels for a loss
in the tail, token types for an embedding in the head. The client runs the model's own
code there as well, with stand-ins, so two dry runs of the client decide: one with the
batch, and one with the batch in the example's form. Between the cuts both must do the
same, and nothing there may read what is new.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from lightsplit.errors import SplitError
from lightsplit.nesting import tensors_in
from lightsplit.splitting.arguments import Arguments, Blank, Signature, Template
from lightsplit.splitting.plans import Plan
from lightsplit.splitting.recording import Recorder, left_as_it_was
from lightsplit.splitting.stand_ins import StandIn
from lightsplit.splitting.traces import Call, Op, Trace, Value, plain_in

_ENTERING = ("detach", "to")


@dataclass(frozen=True)
class Novelty:
    """How the inputs of a batch differ from the example's, besides their numbers.

    Attributes:
        added: names of inputs that the example did not have.
        changed: names and values of those that are no tensors and have other values.
        missing: names of inputs that only the example had.
    """

    added: tuple[str, ...]
    changed: tuple[tuple[str, tuple[Any, ...]], ...]
    missing: tuple[str, ...]

    @classmethod
    def of(
        cls, signature: Signature, template: Template, given: Arguments
    ) -> "Novelty | None":
        """Return the difference; None if there is none."""
        known, found = _present(signature, template.given), _present(signature, given)
        if known == found:
            return None
        return cls(
            added=tuple(name for name in found if name not in known),
            changed=tuple(
                (name, value)
                for name, value in found.items()
                if name in known and known[name] != value
            ),
            missing=tuple(name for name in known if name not in found),
        )

    def __str__(self) -> str:
        changed = tuple(name for name, _ in self.changed)
        parts = (
            ("has the input {}, which the example did not have", self.added),
            ("has another {} than the example", changed),
            ("lacks the input {}, which the example had", self.missing),
        )
        words = [
            form.format(" and ".join(map(repr, names)))
            for form, names in parts
            if names
        ]
        return f"the batch {', and '.join(words)}"


def check_novelty(
    parts: tuple[nn.Module, nn.Module],
    plan: Plan,
    novelty: Novelty,
    trial: "Trial",
) -> None:
    """Raise SplitError unless the novelty makes no difference between the cuts.

    Args:
        parts: head and tail of the model.
        plan: of the cut.
        novelty: of the batch.
        trial: the batch, and the client's forward pass without a server.
    """
    expected, found = (
        _Between(trial.record(parts, given), plan)
        for given in (trial.usual, trial.given)
    )
    for name in novelty.added:
        reader = found.reader_of(name)
        if reader:
            raise SplitError(
                f"the batch has the input {name!r}, which the example did not have, "
                f"and {reader}, so the server would run without it: split with an "
                "example that has it"
            )
    if found.events != expected.events:
        raise SplitError(
            f"{novelty}, and the forward pass between the cuts is another one with "
            "this batch, while the server runs the example's: split with an example "
            "that is as the batches are"
        )


@dataclass(frozen=True)
class Trial:
    """A batch for dry runs of the client.

    Attributes:
        signature: of the model's forward pass.
        template: of the example.
        batch: the inputs.
        run: the client's forward pass, with outputs that only have the right form.
    """

    signature: Signature
    template: Template
    batch: Arguments
    run: Callable[[Arguments], Any]

    @property
    def given(self) -> Arguments:
        """The batch; no two of its inputs are the same tensor."""
        return self.batch.copied()

    @property
    def usual(self) -> Arguments:
        """The batch in the form of the example; zeros are what it lacks."""
        leaves = dict(self.signature.leaves(self.batch))
        forms = dict(zip(self.template.names, self.template.forms, strict=True))
        both = [name for name in forms if name in leaves]

        def make(name: str, form: Blank) -> Tensor:
            if name in leaves:
                return leaves[name].clone()
            if not both:
                return torch.zeros(form.shape, dtype=form.dtype)
            return form.zeros(leaves[both[0]], forms[both[0]])

        return self.template.fill(make)

    def record(self, parts: tuple[nn.Module, nn.Module], given: Arguments) -> "_Dry":
        """Return what the client does with a batch."""
        head, tail = parts
        named = head.named_modules()
        stand_ins = {path: one for path, one in named if isinstance(one, StandIn)}
        recorder = Recorder(head, training=head.training)
        with left_as_it_was(head, tail), torch.no_grad():
            for one in stand_ins.values():
                one.forget()
            recorder.run(self.signature, given, self.run)
            closed = {path for path, one in stand_ins.items() if one.needs_numbers}
        return _Dry(recorder.trace, set(stand_ins), closed)


class _Dry(NamedTuple):
    """A dry run.

    Attributes:
        trace: what happened, inside stand-ins too.
        stand_ins: the paths of all stand-ins.
        closed: those that did not run without numbers, so that nothing is known of
            what they do inside.
    """

    trace: Trace
    stand_ins: set[str]
    closed: set[str]


class _Between:
    """A client's forward pass between the cuts, where the server has the modules."""

    def __init__(self, dry: _Dry, plan: Plan) -> None:
        self._trace, self._stand_ins, self._closed = dry
        self._front = self._trace.calls_of[plan.activation.path][0]
        self._sent = {self._front.gives[each[0]] for each in plan.activation.places}
        assert plan.output is not None  # noqa: S101  the client has a tail
        self._back = self._trace.calls_of[plan.output.path][0]
        self._replaced = {self._back.takes[each[0]] for each in plan.output.places}

    @cached_property
    def events(self) -> list[tuple[Any, ...]]:
        """What is called and computed there."""
        called: list[tuple[Any, ...]] = [
            (call.path, len(call.takes), call.plain)
            if call.path in self._closed
            else (call.path,)
            for call in self._calls()
        ]
        done = [
            (op.name, self._call(op).path, len(op.reads), op.plain)
            for op in self._ops(since=self._front.stop)
        ]
        return called + done

    def reader_of(self, name: str) -> str:
        """Return what reads an input there, or what was made from it; else nothing."""
        wrong = self._made_from(name)
        for op in self._ops(since=0):
            if wrong.isdisjoint(op.reads):
                continue
            if self._call(op).path in self._stand_ins:
                return f"{self._call(op).path!r} reads it at the server"
            if op.decides and self._call(op).stop > self._front.stop:
                return f"{self._trace.place(op)} branches on it"
        for call in self._calls():
            if call.path in self._closed and not wrong.isdisjoint(call.takes):
                return f"{call.path!r} takes it at the server"
        if not wrong.isdisjoint(self._replaced):
            return f"{self._back.path!r} takes what the server makes with it"
        return ""

    def _calls(self) -> Iterator[Call]:
        for call in self._trace.calls:
            if self._front.stop < call.start < self._back.start:
                yield call

    def _ops(self, since: float) -> Iterator[Op]:
        """Yield what is computed, without how values enter a stand-in."""
        for op in self._trace.ops:
            is_entering = (
                self._call(op).path in self._stand_ins and op.name in _ENTERING
            )
            if since < op.at < self._back.start and not is_entering:
                yield op

    def _call(self, op: Op) -> Call:
        return self._trace.calls[op.call]

    def _made_from(self, name: str) -> set[Value]:
        """Return the values made from an input, except through the activation."""
        given = self._trace.inputs.get(name)
        wrong = set[Value]() if given is None else {given}
        for op in self._trace.ops:
            if op.at > self._front.stop:  # the server gets the activation
                wrong -= self._sent
            if not wrong.isdisjoint(op.reads):
                wrong.update(op.makes)
        return wrong


def _present(signature: Signature, given: Arguments) -> dict[str, tuple[Any, ...]]:
    """Return the inputs by name: nothing of tensors, and the values of others."""
    found: dict[str, tuple[Any, ...]] = {
        name: () for name, _ in signature.leaves(given)
    }
    for name, nest in signature.named(given).items():
        values = tuple(plain_in(nest))
        if values and nest is not None:
            has_tensors = next(tensors_in(nest), None) is not None
            found[f"{name} beside its tensors" if has_tensors else name] = values
    return found

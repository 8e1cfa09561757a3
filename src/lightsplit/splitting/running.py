"""The three parts at work: each runs the model's own forward pass, or a piece of it.

head(inputs)         runs until head_until has returned
backbone(activation) runs on blanks, takes over at head_until, stops at tail_from
tail(output)         runs on blanks, takes over at tail_from
head.through(tail, exchange, inputs)   is the client's one ordinary forward pass:
    at head_until it calls exchange(activation), at tail_from it goes on with the
    output; what the tail needs of the head is simply there
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Never

import torch
from torch import Tensor, nn

from lightsplit.errors import SplitError
from lightsplit.splitting.arguments import (
    Arguments,
)
from lightsplit.splitting.crossing import Crossing
from lightsplit.splitting.cuts import HEAD, TAIL
from lightsplit.splitting.new_inputs import Novelty, Trial, check_novelty
from lightsplit.splitting.plans import Fate
from lightsplit.splitting.recipes import Recipe
from lightsplit.splitting.recording import is_under_checkpoint
from lightsplit.splitting.stand_ins import repeated_zero

Exchange = Callable[[Tensor], Tensor]


class Part(nn.Module):
    """What the parts of a model have in common; the model's class comes after it."""

    recipe: Recipe

    def run_whole(self, given: Arguments) -> Any:
        """Return the result of the model's own forward pass."""
        return super().forward(*given.args, **given.kwargs)

    def run_until_stopped(self, given: Arguments) -> Tensor:
        """Return the tensor at which a hook stops the forward pass."""
        try:
            self.run_whole(given)
        except _Stopped as stop:
            return stop.tensor
        raise _not_reached(self.recipe.plan.activation)


class Head(Part):
    """The client's first part, and the client's whole forward pass."""

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        """Return the activation of a batch."""
        cut = self.recipe.plan.activation

        def stop(_: nn.Module, args: Any, result: Any) -> Never:  # noqa: ARG001
            raise _Stopped(cut.join(cut.tensors(result)))

        given = self.recipe.signature.spread(*args, **kwargs)
        self.recipe.refuse_new_inputs(given)
        with self.get_submodule(cut.path).register_forward_hook(stop):
            return self.run_until_stopped(given)

    def companions(self, *args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
        """Return the inputs that the server gets as well, in the order of share."""
        given = self.recipe.signature.spread(*args, **kwargs)
        leaves = dict(self.recipe.signature.leaves(given))
        missing = [name for name in self.recipe.plan.place.share if name not in leaves]
        if missing:
            raise SplitError(
                f"expected the shared input {missing[0]!r} in every batch, got none"
            )
        return tuple(leaves[name] for name in self.recipe.plan.place.share)

    def through(
        self, tail: "Tail", exchange: Exchange, *args: Any, **kwargs: Any
    ) -> Any:
        """Return the model's output, with the server's part done by ``exchange``.

        A batch may have inputs that the example lacked where only head and tail read
        them.
        """
        given = self.recipe.signature.spread(*args, **kwargs)
        self._check_inputs(tail, given)
        return self._pass(tail, exchange, given)

    def _check_inputs(self, tail: "Tail", given: Arguments) -> None:
        recipe = self.recipe
        novelty = Novelty.of(recipe.signature, recipe.template, given)
        if novelty is None or (novelty, self.training) in recipe.accepted:
            return
        front, back = recipe.plan.activation, recipe.output

        def without_server(given: Arguments) -> Any:
            return self._pass(tail, lambda z: back.form.zeros(z, front.form), given)

        trial = Trial(recipe.signature, recipe.template, given, without_server)
        check_novelty((self, tail), recipe.plan, novelty, trial)
        recipe.accepted.add((novelty, self.training))

    def _pass(self, tail: "Tail", exchange: Exchange, given: Arguments) -> Any:
        cut, output = self.recipe.plan.activation, self.recipe.output
        is_passed_on = cut.path in self.recipe.passed_on
        received: list[Tensor] = []
        drawing = _Generator()

        def send(_: nn.Module, args: Any, result: Any) -> Any:  # noqa: ARG001
            _refuse_checkpoint()
            tensors = cut.tensors(result)
            received.append(exchange(cut.join(tensors)))
            drawing.keep(tensors[0])
            on = [
                one.clone() if is_read_on else _zeros(one, is_passed_on)
                for one, is_read_on in zip(tensors, cut.is_read_on, strict=True)
            ]
            return cut.replaced(result, on)

        front = self.get_submodule(cut.path)
        back = self.get_submodule(output.path)
        enter = _entering(output, received, drawing)
        with (
            _filled(self, tail),
            front.register_forward_hook(send),
            back.register_forward_pre_hook(enter, with_kwargs=True),
        ):
            found = self.run_whole(given)
        if received:  # nothing has taken it
            raise _not_reached(output)
        return found


def run_client(
    head: nn.Module, tail: nn.Module, exchange: Exchange, inputs: Any
) -> Any:
    """Return the model's output; ``exchange`` turns the activation into the output.

    Parts of one model make one forward pass; other modules are called in a row.
    """
    if isinstance(head, Head) and isinstance(tail, Tail):
        return head.through(tail, exchange, inputs)
    return tail(exchange(head(inputs)))


def companions_of(head: nn.Module, inputs: Any) -> tuple[Tensor, ...]:
    """Return the inputs of a batch that are shared with the server."""
    return head.companions(inputs) if isinstance(head, Head) else ()


class Backbone(Part):
    """The server's part."""

    def forward(self, activation: Tensor, companions: Sequence[Tensor] = ()) -> Any:
        """Return the output for an activation and the inputs that are shared."""
        plan = self.recipe.plan
        cut = plan.activation

        drawing = _Generator(activation)

        def receive(_: nn.Module, args: Any, result: Any) -> Any:  # noqa: ARG001
            drawing.restore()
            return cut.replaced(result, cut.apart(activation))

        known = self.recipe.companions(companions)
        given = self.recipe.blank_inputs(activation, cut.form, known)
        with self.get_submodule(cut.path).register_forward_hook(receive):
            if plan.output is None:
                return self.run_whole(given)
            back = self.get_submodule(plan.output.path)
            stop = _stopping(plan.output)
            with back.register_forward_pre_hook(stop, with_kwargs=True):
                return self.run_until_stopped(given)


class Tail(Part):
    """The client's last part."""

    def forward(self, output: Tensor) -> Any:
        """Return the model's output for an output of the backbone."""
        plan, cut = self.recipe.plan, self.recipe.output
        if plan.tail_needs:
            raise SplitError(
                f"the tail needs {plan.tail_needs} besides the server's output, so it "
                "runs only with its head, at the client"
            )
        given = self.recipe.blank_inputs(output, cut.form, {})
        back = self.get_submodule(cut.path)
        enter = _entering(cut, [output], _Generator(output))
        with back.register_forward_pre_hook(enter, with_kwargs=True):
            return self.run_whole(given)


class _Stopped(BaseException):
    """Ends a forward pass at a cut."""

    def __init__(self, tensor: Tensor) -> None:
        super().__init__()
        self.tensor = tensor


class _Generator:
    """Torch's generators as they were: what code on blanks draws must not show."""

    def __init__(self, like: Tensor | None = None) -> None:
        if like is not None:
            self.keep(like)

    def keep(self, like: Tensor) -> None:
        """Remember the state now, also of the device that a tensor is on."""
        self._state = torch.default_generator.get_state()
        self._on_device = torch.cuda.get_rng_state() if like.is_cuda else None

    def restore(self) -> None:
        """Go back to that state."""
        torch.default_generator.set_state(self._state)
        if self._on_device is not None:
            torch.cuda.set_rng_state(self._on_device)


def _zeros(like: Tensor, is_passed_on: bool) -> Tensor:
    if is_passed_on:
        return repeated_zero(like.shape, like.dtype, like.device)
    return torch.zeros_like(like)


def _not_reached(cut: Crossing) -> SplitError:
    return SplitError(
        f"the forward pass did not call {cut.path!r} on this batch as it did on the "
        "example, so it cannot be cut there"
    )


def _stopping(cut: Crossing) -> Callable[..., Never]:
    def stop(_: nn.Module, args: Any, kwargs: Any) -> Never:
        raise _Stopped(cut.join(cut.tensors((args, kwargs))))

    return stop


def _entering(
    cut: Crossing, received: list[Tensor], drawing: "_Generator"
) -> Callable[..., Any]:
    def enter(_: nn.Module, args: Any, kwargs: Any) -> Any:
        blanks = cut.tensors((args, kwargs))
        if not received or any(one.is_meta for one in blanks):
            raise _not_reached(cut)
        outputs = cut.apart(received.pop())
        drawing.restore()
        # If the surrounding code keeps using a tensor, that tensor gets the numbers.
        entering = [
            blank.copy_(output) if is_read_on else output
            for blank, output, is_read_on in zip(
                blanks, outputs, cut.is_read_on, strict=True
            )
        ]
        return None if all(cut.is_read_on) else cut.replaced((args, kwargs), entering)

    return enter


def _refuse_checkpoint() -> None:
    if is_under_checkpoint():
        raise SplitError(
            "gradient checkpointing runs over the cut, and would run it again in the "
            "backward pass; turn it off for the module at the cut and those around it"
        )


@contextmanager
def _filled(head: Head, tail: Tail) -> Iterator[None]:
    """Put the tail's modules and states into the places that the head has for them."""
    plan = head.recipe.plan
    filled: list[tuple[dict[str, Any], str]] = []
    for path, fate in plan.fates[HEAD].items():
        if fate is Fate.STOOD_IN and plan.fate(TAIL, path) is Fate.KEPT:
            place = vars(head.get_submodule(path))
            place["filled"] = tail.get_submodule(path)
            filled.append((place, "filled"))
    for name, users in head.recipe.blanks.items():
        if TAIL in users:
            path, _, field = name.rpartition(".")
            place = vars(head.get_submodule(path))
            place[field] = getattr(tail.get_submodule(path), field)
            filled.append((place, field))
    try:
        yield
    finally:
        for place, field in filled:
            if field == "filled":
                place[field] = None
            else:
                del place[field]

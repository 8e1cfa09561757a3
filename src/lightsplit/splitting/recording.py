"""Runs a model once on an example and records what happens.

A function mode sees every operation that Python asks torch for; hooks see the calls of
modules. The model is left as it was: modes, buffers, attributes and the generator.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
import torch.utils.checkpoint
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from lightsplit.errors import SplitError
from lightsplit.nesting import map_tensors, tensors_in
from lightsplit.splitting.arguments import Arguments, Blank, Signature
from lightsplit.splitting.traces import Call, Op, Trace, Value, plain_in

# Functions that use of their arguments the form alone: of all, or of all but the first.
_FORM_ALONE = {"zeros_like", "ones_like", "empty_like", "full_like", "rand_like"}
_FORM_ALONE |= {"randn_like", "randint_like", "new_zeros", "new_ones", "new_empty"}
_FORM_ALONE |= {"new_full", "new_tensor"}
_FORM_OF_OTHERS = {"type_as", "expand_as", "view_as", "reshape_as"}
# Functions whose result, or its shape, leaves the world of tensors.
_DECIDING = {"item", "tolist", "numpy", "equal", "allclose", "is_nonzero", "nonzero"}
_DECIDING |= {"__bool__", "__int__", "__float__", "__index__", "__complex__"}
_DECIDING |= {"__contains__", "__array__", "masked_select", "unique", "argwhere"}
_PLACE = torch.empty(0)
_DRAWING = ("drop", "rand", "bernoulli", "normal", "multinomial", "uniform", "poisson")


def record(
    model: nn.Module, signature: Signature, given: Arguments, *, training: bool
) -> Trace:
    """Return the trace of one forward pass in the given mode."""
    recorder = Recorder(model, training=training)
    given = given.copied()  # a tensor under two names is two inputs
    for name, tensor in signature.leaves(given):
        recorder.trace.inputs[name] = recorder.new_value(tensor)
    with left_as_it_was(model), torch.no_grad():
        for module in model.modules():
            module.training = training
        try:
            with recorder.watching(), recorder:
                output = model(*given.args, **given.kwargs)
        except Exception as error:
            raise does_not_fit(error, recorder.trace.mode) from error
        recorder.trace.outputs = recorder.values(output)
        recorder.trace.kept = recorder.values(list(kept_tensors(output)))
    return recorder.trace


def does_not_fit(error: Exception, mode: str) -> SplitError:
    """Return that the model failed on the example."""
    detail = f"{type(error).__name__}: {' '.join(str(error).split())}"
    return SplitError(f"the example does not fit the model in {mode} mode ({detail})")


class Recorder(TorchFunctionMode):
    """Writes a trace while it is active."""

    def __init__(self, model: nn.Module, *, training: bool) -> None:
        super().__init__()
        self.trace = Trace(training, states=_names_of_states(model))
        self.model = model
        self._position = 0
        self._values: dict[int, Value] = {}
        self._kept: list[Tensor] = []  # so that no id is given twice
        self._open: list[int] = []
        tensors = model.state_dict(keep_vars=True)
        self._states = {id(tensors[name]): name for name in self.trace.states}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Hear of the calls of all modules inside the block."""
        with ExitStack() as stack:
            for path, module in self.model.named_modules():
                hooks = self._hooks(path)
                stack.enter_context(
                    module.register_forward_pre_hook(hooks[0], with_kwargs=True)
                )
                stack.enter_context(module.register_forward_hook(hooks[1]))
            yield

    def run(
        self,
        signature: Signature,
        given: Arguments,
        function: Callable[[Arguments], Any],
    ) -> None:
        """Record a function that runs the model's code, as one call of the model."""
        for name, tensor in signature.leaves(given):
            self.trace.inputs[name] = self.new_value(tensor)
        with self.watching(), self:
            self._enter("", (given.args, given.kwargs))
            self._leave(function(given))

    def new_value(self, tensor: Tensor) -> Value:
        """Return a new value, which the tensor now has."""
        self._kept.append(tensor)
        self._values[id(tensor)] = len(self._kept)
        return len(self._kept)

    def values(self, nest: Any) -> tuple[Value, ...]:
        """Return the value of each tensor in ``nest``."""
        return tuple(self._value(tensor) for tensor in tensors_in(nest))

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run ``func`` and write it down."""
        del types
        before = torch.default_generator.get_state()
        result = func(*args, **(kwargs or {}))
        is_random = not torch.equal(before, torch.default_generator.get_state())
        name = getattr(func, "__name__", "")
        self._note(name, (args, kwargs or {}), result, is_random=is_random)
        return result

    def _note(
        self, name: str, given: tuple[Any, ...], result: Any, *, is_random: bool
    ) -> None:
        args = given_tensors = list(tensors_in(given))
        made = [one for one in tensors_in(result) if id(one) not in self._states]
        decides = name in _DECIDING or _selects(name, given[0])
        if _changes_first(name) and id(args[0]) not in self._states:
            made = [args[0], *(one for one in made if one is not args[0])]
        is_state_changed = _changes_first(name) and id(args[0]) in self._states
        if not made and not decides and not is_state_changed:
            return
        if name in _FORM_ALONE:
            args = []
        elif name in _FORM_OF_OTHERS:
            args = args[:1]
        states = [self._states[id(one)] for one in args if id(one) in self._states]
        reads = [self._value(one) for one in args if id(one) not in self._states]
        changed = {id(one) for one in made}.intersection(map(id, given_tensors))
        overwrites = tuple(self._values[one] for one in changed if one in self._values)
        is_meta = any(one.is_meta for one in made)
        self.trace.ops.append(
            Op(
                at=self._step(),
                name=name.strip("_"),
                call=self._open[-1],
                reads=tuple(dict.fromkeys(reads)),
                makes=tuple(self.new_value(one) for one in made),
                states=tuple(dict.fromkeys(states)),
                is_random=is_random or (is_meta and any(d in name for d in _DRAWING)),
                decides=decides,
                plain=tuple(plain_in(given)),
                overwrites=overwrites,
            )
        )

    def _value(self, tensor: Tensor) -> Value:
        if id(tensor) not in self._values:
            value = self.new_value(tensor)
            if id(tensor) not in self._states:
                self.trace.constants.add(value)
        return self._values[id(tensor)]

    def _step(self) -> int:
        self._position += 1
        return self._position

    def _hooks(self, path: str) -> tuple[Any, Any]:
        def enter(module: nn.Module, args: Any, kwargs: Any) -> None:
            del module
            self._enter(path, (args, kwargs))

        def leave(module: nn.Module, args: Any, result: Any) -> None:
            del module, args
            self._leave(result)

        return enter, leave

    def _enter(self, path: str, given: tuple[Any, Any]) -> None:
        self._open.append(len(self.trace.calls))
        call = Call(
            path,
            self._step(),
            takes=self.values(given),
            taken=tuple(map(Blank.of, tensors_in(given))),
            is_checkpointed=is_under_checkpoint(),
            plain=tuple(plain_in(given)),
        )
        self.trace.calls.append(call)

    def _leave(self, result: Any) -> None:
        call = self.trace.calls[self._open[-1]]
        if self._position == call.start:  # it does nothing, and is a step even so
            self._note("identity", (result,), result, is_random=False)
        self._open.pop()
        call.gives, call.stop = self.values(result), self._step()
        call.forms = tuple(map(Blank.of, tensors_in(result)))
        call.result = map_tensors(lambda _: _PLACE, result)


def kept_tensors(output: Any, depth: int = 5) -> Iterator[Tensor]:
    """Yield the tensors that objects in an output hold, such as a cache of keys."""
    if isinstance(output, Mapping):
        items = list(output.values())
    elif isinstance(output, list | tuple):
        items = list(output)
    elif isinstance(output, Tensor | nn.Module | type) or not hasattr(
        output, "__dict__"
    ):
        return
    else:
        held = list(vars(output).values())
        yield from (one for one in tensors_in(held))
        items = held
    if depth:
        for item in items:
            yield from kept_tensors(item, depth - 1)


def is_under_checkpoint() -> bool:
    """Return whether gradient checkpointing runs the code that calls this."""
    file = torch.utils.checkpoint.__file__
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename != file:
        frame = frame.f_back
    return frame is not None


@contextmanager
def left_as_it_was(*models: nn.Module) -> Iterator[None]:
    """Undo what the block does to modes, buffers, attributes and the generator."""
    modules = dict.fromkeys(each for model in models for each in model.modules())
    attributes = [(module, dict(vars(module))) for module in modules]
    buffers = [
        (module, name, buffer, buffer.detach().clone())
        for module in modules
        for name, buffer in module.named_buffers(recurse=False)
        if not _is_expanded(buffer)
    ]
    with torch.random.fork_rng():
        try:
            yield
        finally:
            for module, before in attributes:
                vars(module).clear()
                vars(module).update(before)
            with torch.no_grad():
                for module, name, buffer, content in buffers:
                    buffer.copy_(content)
                    setattr(module, name, buffer)


def _is_expanded(tensor: Tensor) -> bool:
    """Return whether elements share memory, as in blanks: nothing can write to it."""
    places = zip(tensor.shape, tensor.stride(), strict=True)
    return any(size > 1 and step == 0 for size, step in places)


def _names_of_states(model: nn.Module) -> dict[str, tuple[str, ...]]:
    names: dict[int, list[str]] = {}
    for name, state in model.state_dict(keep_vars=True).items():
        if isinstance(state, Tensor):
            names.setdefault(id(state), []).append(name)
    return {found[0]: tuple(found) for found in names.values()}


def _changes_first(name: str) -> bool:
    if name.startswith("__"):
        return name == "__setitem__" or (name.startswith("__i") and name in _IN_PLACE)
    return name.endswith("_")


_IN_PLACE = {f"__i{name}__" for name in ("add", "sub", "mul", "truediv", "pow", "mod")}
_IN_PLACE |= {f"__i{name}__" for name in ("and", "or", "xor", "floordiv", "matmul")}


def _selects(name: str, args: tuple[Any, ...]) -> bool:
    """Return whether the function picks entries by a mask: their number varies."""
    if name == "where":
        return len(args) == 1
    if name != "__getitem__":
        return False
    return any(one.dtype == torch.bool for one in tensors_in(args[1:]))

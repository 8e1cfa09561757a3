"""The modules that one side owns, with their optimizer.

    client side: head, encoder of the front cut; decoder of the back cut, tail;
                 objectives
    server side: decoder of the front cut, backbone, encoder of the back cut
                 (and the tail in the vanilla topology)

With shared heads one client side travels from client to client as its ``state()``. In
one process the clients simply hold the same object.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from lightsplit.codecs import Code, Codec
from lightsplit.errors import RunError
from lightsplit.finite import all_finite
from lightsplit.objectives import Covered, WeightedObjective, cover
from lightsplit.runtime import code_cache, statistics
from lightsplit.runtime.code_cache import CodeCache
from lightsplit.runtime.crossing import SAMPLES, Crossing
from lightsplit.runtime.optimizer_state import (
    is_optimizer_state,
    load_optimizer_tensors,
    optimizer_tensors,
)
from lightsplit.runtime.precision import Precision
from lightsplit.runtime.side_modules import by_name, kept_buffers
from lightsplit.runtime.statistics import Statistics
from lightsplit.splitting import companions_of, run_client

OptimizerFactory = Callable[[Iterable[nn.Parameter]], Optimizer]
State = dict[str, Tensor]


class Side:
    """Named modules and one optimizer over their trainable parameters.

    Attributes:
        precision: that head, backbone and tail are computed in.
    """

    def __init__(
        self, modules: dict[str, nn.Module], optimizer: OptimizerFactory | None
    ) -> None:
        self.modules = nn.ModuleDict(modules)
        self._trainable = [p for p in self.modules.parameters() if p.requires_grad]
        self.is_trainable = bool(self._trainable)
        self.precision = Precision()
        self.optimizer: Optimizer | None = None
        if optimizer is not None and self.is_trainable:
            self.optimizer = optimizer(self._trainable)
        self._full_rates = [group["lr"] for group in self._groups]
        self._held: list[Tensor | None] = []
        self._kept = kept_buffers(self.modules)
        self._statistics = [
            (module, name)
            for module, name in self._kept
            if all_finite(getattr(module, name))  # a mask may hold -inf
        ]

    @property
    def buffers(self) -> list[Tensor]:
        """Running statistics and the like: a forward pass may change them."""
        return [getattr(module, name) for module, name in self._kept]

    @property
    def statistics(self) -> list[Tensor]:
        """Those of the buffers that were finite before training, and must stay so."""
        return [getattr(module, name) for module, name in self._statistics]

    def check_finite(self) -> None:
        """Raise if training has left a weight or a statistic that is not finite."""
        for tensor in (*self.modules.parameters(), *self.statistics):
            if not all_finite(tensor):
                raise RunError(
                    "the weights are no longer finite, so they are not saved; resume "
                    "from the last checkpoint with a lower learning rate"
                )

    def set_training(self, is_training: bool) -> None:
        """Put every module into training or evaluation mode."""
        self.modules.train(is_training)

    def zero_grad(self) -> None:
        """Forget the gradients of the last step."""
        for parameter in self._trainable:
            parameter.grad = None

    @property
    def trainable(self) -> list[nn.Parameter]:
        """The weights that training changes."""
        return list(self._trainable)

    @property
    def gradients(self) -> list[Tensor]:
        """The gradients at hand."""
        return [p.grad for p in self._trainable if p.grad is not None]

    def hold_gradients(self, *, begins: bool) -> None:
        """Add the gradients at hand to those of the steps before; nothing is updated.

        Args:
            begins: whether the step is the first of a group; earlier gradients, as of
                a turn that was left, are forgotten.
        """
        own = [None if p.grad is None else p.grad.clone() for p in self._trainable]
        self._held = own if begins or not self._held else _sums(self._held, own)

    def set_rate(self, share: float) -> None:
        """Set the learning rate to a share of the one the optimizer was made with."""
        for group, full in zip(self._groups, self._full_rates, strict=True):
            group["lr"] = full * share

    def update(self, *, group: int = 1, clip: float | None = None) -> None:
        """Change the weights by the gradients at hand.

        Args:
            group: how many steps share this update; it takes their mean gradient.
            clip: the largest norm of the gradient.
        """
        if self.optimizer is None:
            return
        if group == 1 and clip is None:
            self.optimizer.step()
            return
        own = [parameter.grad for parameter in self._trainable]
        sums = _sums(self._held, own) if group > 1 and self._held else own
        for parameter, total in zip(self._trainable, sums, strict=True):
            parameter.grad = None if total is None else total / group
        if clip is not None:
            nn.utils.clip_grad_norm_(self._trainable, clip)
        self.optimizer.step()
        self._held = []
        for parameter, gradient in zip(self._trainable, own, strict=True):
            parameter.grad = gradient  # a detector reads the step's own

    @property
    def _groups(self) -> list[dict[str, Any]]:
        return [] if self.optimizer is None else self.optimizer.param_groups

    def state(self) -> State:
        """Return weights, buffers and optimizer state under flat names."""
        weights = dict(self.modules.state_dict())
        return {**weights, **optimizer_tensors(self.optimizer)}

    def load_optimizer(self, state: State) -> None:
        """Load the optimizer's part of a state; without one it starts anew."""
        if self.optimizer is not None:
            load_optimizer_tensors(self.optimizer, state)

    def load(self, state: State) -> None:
        """Load a state that ``state()`` of an equal side returned."""
        weights = {k: v for k, v in state.items() if not is_optimizer_state(k)}
        try:
            self.modules.load_state_dict(weights)
            self.load_optimizer(state)
        except (RuntimeError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise RunError(f"the state does not fit these modules: {reason}") from error


class ClientSide(Side):
    """The client's modules: head and encoder, and in the U-shape decoder and tail.

    Args:
        head: the model up to the front cut.
        tail: the model from the back cut on; None if the server has it (vanilla).
        codec: of the front cut.
        optimizer: makes an optimizer over parameters; None if the caller has one.
        output_codec: of the back cut; None where outputs are sent whole.
        objectives: terms that the client adds to its loss.
        local_tail: ends the client's model where it trains alone, before codes are
            sent once.
        freeze: whether head and tail stay as they are, including running statistics. If
            a codec was trained beforehand for a head, that head stays in any case.
    """

    def __init__(  # noqa: PLR0913
        self,
        head: nn.Module,
        tail: nn.Module | None,
        codec: Codec,
        optimizer: OptimizerFactory | None = None,
        *,
        output_codec: Codec | None = None,
        objectives: Sequence[WeightedObjective] = (),
        local_tail: nn.Module | None = None,
        freeze: bool = False,
    ) -> None:
        ends = [head] if tail is None else [head, tail]
        for_this_head = [head] if codec.is_trained_before else []
        self._frozen = ends if freeze else for_this_head
        for module in self._frozen:
            module.requires_grad_(False)
        modules: dict[str, nn.Module] = {"head": head, "encoder": codec.encoder}
        if tail is not None:
            modules["tail"] = tail
        if output_codec is not None:
            modules["decoder"] = output_codec.decoder
        if local_tail is not None:
            modules["local_tail"] = local_tail
        if objectives:
            modules["objectives"] = by_name(objectives)
        for weighted in objectives:
            weighted.check(codec, has_tail=tail is not None)
        super().__init__(modules, optimizer)
        self.codec = codec
        self.output_codec = output_codec
        self.objectives = tuple(objectives)

    def set_training(self, is_training: bool) -> None:
        """Set the mode as for any side; frozen parts stay in evaluation mode."""
        super().set_training(is_training)
        self.keep_frozen()

    def keep_frozen(self) -> None:
        """Put frozen parts back into evaluation mode."""
        for module in self._frozen:
            module.eval()

    def encode(self, inputs: Any) -> Code:
        """Return the code of a batch of inputs, before an objective disturbs it."""
        covered, _ = self.cover(self.activate(inputs))
        code: Code = self.modules["encoder"](covered)
        return code

    def activate(self, inputs: Any) -> Any:
        """Return the head's activation for a batch of inputs."""
        return self.precision.call(self.modules["head"], inputs)

    def cover(self, activation: Tensor) -> Covered:
        """Return the activation after the objectives have covered it."""
        return cover([one for one, weight in self.objectives if weight], activation)

    def disturb(self, code: Code) -> Code:
        """Return the code as the objectives want it to be sent."""
        for objective, weight in self.objectives:
            code = objective.disturb(code) if weight else code
        return code

    @property
    def releases(self) -> int | None:
        """How often the code of a sample may be sent; None for any number."""
        counts = [objective.releases for objective, weight in self.objectives if weight]
        return min((count for count in counts if count is not None), default=None)

    def run(self, inputs: Any, exchange: Callable[[Tensor], Tensor]) -> Any:
        """Return the model's output; ``exchange`` turns activation into output."""
        head, tail = self.modules["head"], self.modules["tail"]
        exact = self.precision.exact(exchange)
        return self.precision.call(run_client, head, tail, exact, inputs)

    def companions(self, inputs: Any) -> tuple[Tensor, ...]:
        """Return the inputs that the server gets as they are."""
        return companions_of(self.modules["head"], inputs)

    def lift(self, output: Code) -> Tensor:
        """Return what the tail takes, for an output of the server."""
        if "decoder" in self.modules:
            decoded: Tensor = self.modules["decoder"](output)
            return decoded
        return output.values.clone()  # a tail in place must not write into the message

    def decode(self, output: Code) -> Any:
        """Return the logits for an output of the server."""
        lifted = self.lift(output)
        if not self.has_tail:
            return lifted
        return self.precision.call(self.modules["tail"], lifted)

    def decide_alone(self, code: Code) -> Any:
        """Return the local tail's logits for a code of the client's own."""
        rows = self.codec.rows(code).flatten(1)
        return self.precision.call(self.modules["local_tail"], rows)

    @property
    def has_tail(self) -> bool:
        """Return whether the client has the tail and the labels (U-shape)."""
        return "tail" in self.modules


class ServerSide(Side):
    """The server's modules: decoder and backbone, and in the vanilla case the tail.

    Args:
        backbone: the model between the cuts.
        codec: of the front cut.
        optimizer: makes an optimizer over parameters.
        tail: the model from the back cut on, where it is the server's (vanilla).
        output_codec: of the back cut; None where outputs are sent whole.
        freeze_backbone: whether only the parts around the backbone are trained.
        normalisation: whose running statistics are used, one of ``statistics.KINDS``.
        crossing: what crosses at the cuts.

    Attributes:
        normalisation: the running statistics of the normalisation layers.
        released: the codes that clients have sent once.
    """

    def __init__(  # noqa: PLR0913
        self,
        backbone: nn.Module,
        codec: Codec,
        optimizer: OptimizerFactory,
        *,
        tail: nn.Module | None = None,
        output_codec: Codec | None = None,
        freeze_backbone: bool = False,
        normalisation: str = "shared",
        crossing: Crossing = SAMPLES,
    ) -> None:
        self.crossing = crossing
        modules = {"decoder": codec.decoder, "backbone": backbone}
        if tail is not None:
            modules["tail"] = tail
        if output_codec is not None:
            modules["encoder"] = output_codec.encoder
        self.is_frozen = freeze_backbone
        if freeze_backbone:
            backbone.requires_grad_(False)
        super().__init__(modules, optimizer)
        self.codec = codec
        self.output_codec = output_codec
        self.normalisation = Statistics(self.modules, normalisation)
        self.released = CodeCache()

    @property
    def has_tail(self) -> bool:
        """Return whether the server has the tail and the labels (vanilla)."""
        return "tail" in self.modules

    def set_training(self, is_training: bool) -> None:
        """Do as for any side; a frozen backbone keeps its running statistics too."""
        super().set_training(is_training)
        self.normalisation.set_modes()
        if self.is_frozen:
            self.modules["backbone"].eval()

    def state(self) -> State:
        """Do as for any side; add every client's statistics and released codes."""
        own = {**self.normalisation.state(), **self.released.state()}
        return {**super().state(), **own}

    def load(self, state: State) -> None:
        """Do as for any side, with every client's statistics and released codes."""
        own = {k: v for k, v in state.items() if k.startswith(statistics.PREFIX)}
        codes = {k: v for k, v in state.items() if k.startswith(code_cache.PREFIX)}
        self.normalisation.before_load()
        super().load({k: v for k, v in state.items() if k not in own | codes})
        self.normalisation.load(own)
        self.released.load(codes)

    def forward(self, code: Code, companions: Sequence[Tensor] = ()) -> Code:
        """Return the output for a code and what crossed with it."""
        return self.encode(self.compute(self.lift(code), companions))

    def lift(self, code: Code) -> Tensor:
        """Return the decoder's activation for a code."""
        lifted: Tensor = self.modules["decoder"](code)
        return lifted

    def compute(self, lifted: Tensor, companions: Sequence[Tensor] = ()) -> Any:
        """Return the output of the backbone, or of the tail if the server has it."""
        activation, shared = self.crossing.received(lifted, companions)
        given = (activation, shared) if shared else (activation,)
        output = self.precision.call(self.modules["backbone"], *given)
        if isinstance(output, Tensor) and output.dtype in _HALVES:  # by autocast
            output = output.float()
        output = self.crossing.answered(output, companions)
        if self.has_tail:
            output = self.precision.call(self.modules["tail"], output)
        return output

    def encode(self, output: Any) -> Code:
        """Return an output in the form that is sent."""
        if "encoder" in self.modules:
            encoded: Code = self.modules["encoder"](output)
            return encoded
        return Code(output)


_HALVES = (torch.bfloat16, torch.float16)


def _sums(
    held: Sequence[Tensor | None], own: Sequence[Tensor | None]
) -> list[Tensor | None]:
    """Return the sum of two gradients of each parameter, either of which may lack."""
    return [
        a if b is None else b if a is None else a + b
        for a, b in zip(held, own, strict=True)
    ]

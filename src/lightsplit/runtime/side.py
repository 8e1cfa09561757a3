"""The modules that one side owns, with their optimizer.

    client side: head, encoder of the front cut; decoder of the back cut, tail
    server side: decoder of the front cut, backbone, encoder of the back cut
                 (and the tail in the vanilla topology)

With shared heads one client side travels from client to client; what travels is
``state()``. In one process the clients simply hold the same object.
"""

from collections.abc import Callable, Iterable

from torch import Tensor, nn
from torch.optim import Optimizer

from lightsplit.codecs import Code, Codec
from lightsplit.errors import RunError

OptimizerFactory = Callable[[Iterable[nn.Parameter]], Optimizer]
State = dict[str, Tensor]


class Side:
    """Named modules and one optimizer over their trainable parameters."""

    def __init__(
        self, modules: dict[str, nn.Module], optimizer: OptimizerFactory
    ) -> None:
        self.modules = nn.ModuleDict(modules)
        self._trainable = [p for p in self.modules.parameters() if p.requires_grad]
        self.optimizer = optimizer(self._trainable) if self._trainable else None
        self._every = tuple(self.modules.modules())
        self._kept = _kept_buffers(self.modules)

    @property
    def buffers(self) -> list[Tensor]:
        """The running statistics and the like: what a forward pass may change."""
        return [getattr(module, name) for module, name in self._kept]

    def set_training(self, is_training: bool) -> None:
        """Put every module into training or evaluation mode."""
        if any(module.training is not is_training for module in self._every):
            self.modules.train(is_training)

    def zero_grad(self) -> None:
        """Forget the gradients of the last step."""
        # The optimizer's own method does this too, in 30 times the time.
        for parameter in self._trainable:
            parameter.grad = None

    def update(self) -> None:
        """Change the weights by the gradients at hand."""
        if self.optimizer is not None:
            self.optimizer.step()

    def state(self) -> State:
        """Return weights, buffers and optimizer state under flat names."""
        weights = dict(self.modules.state_dict())
        return {**weights, **_optimizer_tensors(self.optimizer)}

    def load(self, state: State) -> None:
        """Take over a state that ``state()`` of an equal side returned."""
        weights = {k: v for k, v in state.items() if not k.startswith(_PREFIX)}
        try:
            self.modules.load_state_dict(weights)
            if self.optimizer is not None:
                _load_optimizer(self.optimizer, state)
        except (RuntimeError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise RunError(f"the state does not fit these modules: {reason}") from error


class ClientSide(Side):
    """What the client runs: head and encoder, and in the U-shape decoder and tail."""

    def __init__(
        self,
        head: nn.Module,
        tail: nn.Module | None,
        codec: Codec,
        optimizer: OptimizerFactory,
        *,
        output_codec: Codec | None = None,
    ) -> None:
        modules: dict[str, nn.Module] = {"head": head, "encoder": codec.encoder}
        if tail is not None:
            modules["tail"] = tail
        if output_codec is not None:
            modules["decoder"] = output_codec.decoder
        super().__init__(modules, optimizer)
        self.codec = codec
        self.output_codec = output_codec
        # By attribute as well: each look into a ModuleDict is a call, felt in a step.
        self._head, self._encoder = head, codec.encoder
        self._decoder = None if output_codec is None else output_codec.decoder
        self._tail = tail

    def encode(self, inputs: Tensor) -> Code:
        """Return the code of a batch of inputs."""
        code: Code = self._encoder(self._head(inputs))
        return code

    def decode(self, output: Code) -> Tensor:
        """Return the logits for what the server sent."""
        if self._decoder is not None:
            decoded = self._decoder(output)
        else:
            # The output is a leaf here; a tail that starts in place may not touch it.
            decoded = output.values.clone()
        logits: Tensor = decoded if self._tail is None else self._tail(decoded)
        return logits

    @property
    def has_tail(self) -> bool:
        """Say whether the tail, and with it the labels, is the client's (U-shape)."""
        return self._tail is not None


class ServerSide(Side):
    """What the server runs: decoder and backbone, and in the vanilla case the tail."""

    def __init__(
        self,
        backbone: nn.Module,
        codec: Codec,
        optimizer: OptimizerFactory,
        *,
        tail: nn.Module | None = None,
        output_codec: Codec | None = None,
        freeze_backbone: bool = False,
    ) -> None:
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
        self._decoder, self._backbone = codec.decoder, backbone
        self._tail = tail
        self._encoder = None if output_codec is None else output_codec.encoder

    @property
    def has_tail(self) -> bool:
        """Say whether the tail, and with it the labels, is the server's (vanilla)."""
        return self._tail is not None

    def set_training(self, is_training: bool) -> None:
        """As for any side; a frozen backbone keeps its running statistics too."""
        super().set_training(is_training)
        if self.is_frozen:
            self._backbone.eval()

    def forward(self, code: Code) -> Code:
        """Return the output for a code."""
        output = self._backbone(self._decoder(code))
        if self._tail is not None:
            output = self._tail(output)
        if self._encoder is not None:
            encoded: Code = self._encoder(output)
            return encoded
        return Code(output)


_PREFIX = "optimizer."


def _kept_buffers(modules: nn.ModuleDict) -> list[tuple[nn.Module, str]]:
    """Return where the buffers are that a state has; a fixed projection is none."""
    kept = modules.state_dict().keys()
    return [
        (module, name)
        for path, module in modules.named_modules()
        for name, _ in module.named_buffers(recurse=False)
        if f"{path}.{name}" in kept
    ]


def _optimizer_tensors(optimizer: Optimizer | None) -> State:
    if optimizer is None:
        return {}
    return {
        f"{_PREFIX}{index}.{name}": value
        for index, slots in optimizer.state_dict()["state"].items()
        for name, value in slots.items()
        if value is not None
    }


def _load_optimizer(optimizer: Optimizer, state: State) -> None:
    slots: dict[int, dict[str, Tensor]] = {}
    for key, value in state.items():
        if key.startswith(_PREFIX):
            index, name = key.removeprefix(_PREFIX).split(".", 1)
            slots.setdefault(int(index), {})[name] = value
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": slots, "param_groups": groups})

"""A codec that sends every second value, or every third."""

from torch import Tensor

from lightsplit.codecs import CODECS, Code, Codec, Decoder, Encoder
from lightsplit.errors import ConfigError


@CODECS.register("halves")
class Halves(Codec):
    """Sends one value out of ``keep`` and repeats it at the receiver.

    Args:
        shape: of one activation.
        keep: send every so many-th value.
        seed: not used.
    """

    name = "halves"

    def __init__(self, shape: tuple[int, ...], keep: int = 4, seed: int = 0) -> None:
        size = 1
        for length in shape:
            size *= length
        super().__init__(shape, -(-size // keep))
        self.encoder = EveryNth(keep)
        self.decoder = Repeated(self.shape, size, keep)

    @classmethod
    def check_options(cls, options):
        """Refuse to keep nothing."""
        if options["keep"] < 1:
            raise ConfigError(f"keep must be at least 1, got {options['keep']}")


class EveryNth(Encoder):
    """Takes every n-th value."""

    def __init__(self, keep: int) -> None:
        super().__init__()
        self.keep = keep

    def forward(self, activation: Tensor) -> Code:
        """Return the code."""
        return Code(activation.flatten(1)[:, :: self.keep])


class Repeated(Decoder):
    """Repeats each value n times."""

    def __init__(self, shape: tuple[int, ...], size: int, keep: int) -> None:
        super().__init__()
        self.shape, self.size, self.keep = shape, size, keep

    def forward(self, code: Code) -> Tensor:
        """Return the activation."""
        whole = code.values.repeat_interleave(self.keep, 1)[:, : self.size]
        return whole.reshape(-1, *self.shape)

"""No codec at the back cut: the output itself crosses it."""

from lightsplit.codecs.output.base import OUTPUT_CODECS, OutputCodec
from lightsplit.codecs.raw import RawEncoder
from lightsplit.errors import ConfigError


@OUTPUT_CODECS.register("raw")
class WholeOutput(OutputCodec):
    """Sends the output as it is."""

    name = "raw"

    def __init__(
        self, shape: tuple[int, ...], *, size: int = 0, seed: int = 0, classes: int = 0
    ) -> None:
        super().__init__(shape, size=size, seed=seed, classes=classes)
        if not self.is_whole:
            raise ConfigError(
                f"{self.name} sends all {self.activation_size} values of an output, "
                f"got output size {size}"
            )
        self.encoder = RawEncoder(self.shape)

"""No codec at the back cut: the output itself crosses it."""

from lightsplit.codecs.output.base import OUTPUT_CODECS, OutputCodec
from lightsplit.codecs.raw import RawEncoder


@OUTPUT_CODECS.register("raw")
class WholeOutput(OutputCodec):
    """Sends the output as it is."""

    name = "raw"

    def __init__(
        self, shape: tuple[int, ...], *, seed: int = 0, classes: int = 0
    ) -> None:
        super().__init__(shape, seed=seed, classes=classes)
        self.encoder = RawEncoder(self.shape)

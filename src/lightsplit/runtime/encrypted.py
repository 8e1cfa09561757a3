"""The server's end of an encrypted prediction: it maps a code that it cannot read."""

from torch import Tensor

from lightsplit.codecs import Code
from lightsplit.errors import ConfigError
from lightsplit.protocol import EncryptedCode, EncryptedOutput
from lightsplit.runtime.server import Server
from lightsplit.runtime.side import ServerSide
from lightsplit.transports.homomorphic import LinearMap, evaluate, linear_map


def answer_encrypted(server: Server, message: EncryptedCode) -> EncryptedOutput:
    """Return the encrypted output for an encrypted code; nothing changes."""
    server.side.normalisation.switch_to(message.client, is_training=False)
    found = map_of(server.side)
    result = evaluate(message.ciphertext, found)
    return EncryptedOutput(message.client, message.step, result)


def map_of(side: ServerSide) -> LinearMap:
    """Return the server's part as a linear map; refuse a part that is not linear."""
    layout = side.codec.layout(1)
    if layout.side or side.codec.packed_bits or not side.codec.is_sample_wise:
        raise ConfigError(
            "encrypted prediction sends a row of numbers for each sample; codec "
            f"{side.codec.name!r} sends more, or mixes samples"
        )
    side.set_training(False)
    shape = layout.values.shape[1:]

    def run(rows: Tensor) -> Tensor:
        output = side.forward(Code(rows.view(-1, *shape)))
        if output.side:
            raise ConfigError(
                "encrypted prediction returns a row of numbers for each sample: choose "
                "output codec raw or linear"
            )
        return output.values

    with side.normalisation.unchanged(1):
        return linear_map(run, layout.values.elements)

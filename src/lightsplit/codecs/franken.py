"""FrankenSplit: a bottleneck distilled before the run, and bytes as short as they go.

    activation (C, H, W) ──conv, conv──► latent (c, h, w) ──round──► values
    values ──range coder, learned frequencies──► bytes ──► values        on the wire
    values ──conv, conv──► activation                                    at the server

``distil`` trains encoder, decoder and frequencies together, on public data, to give
back the activations of a trained head in few bits. It writes them to a file, which both
ends name as ``trained``. A run changes none of them, so no gradient comes back for a
code, and samples differ in how many bytes they take.

Furutanpey, Raith, Dustdar: FrankenSplit, TMC 2024. Their encoder is small strided
residual blocks that read the image in place of the head; ours reads the activation of
the head itself, so that it stands at the cut like any codec. Halvings by stride are two
in place of three or more, the lift is two convolutions in place of a transformer stage,
and the prior is ours (``codecs.prior``).
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from torch.nn.functional import interpolate

from lightsplit.codecs.base import (
    CODECS,
    Code,
    Codec,
    Coded,
    Decoder,
    Encoder,
    Layout,
    TensorSpec,
    check_rows,
    size_of,
)
from lightsplit.codecs.entropy_coding import EntropyCoder, whole_frequencies
from lightsplit.codecs.few_bits import check_count
from lightsplit.codecs.prior import FactorisedPrior
from lightsplit.codecs.self_packed import straight_through
from lightsplit.errors import CodecError, ConfigError
from lightsplit.part_facts import PartFacts

REACH = 31  # a value is a whole number from −31 to 31
_SCALE = 10.0  # of the first latents, so that rounding leaves several levels
_TABLE = "frequencies"


@CODECS.register("franken")
class Franken(Codec):
    """A bottleneck distilled on public data before the run, entropy-coded.

    Args:
        shape: shape of one activation, (C, H, W).
        seed: not used; the weights come from the file.
        trained: the file that ``lightsplit distil`` wrote.
        channels: of the code, whose height and width are a quarter; default: 8.
        hidden: channels between the convolutions; default: 48.
    """

    name = "franken"
    needs_map = True
    is_trained_before = True
    files = frozenset({"trained"})
    encoder: "DistilledEncoder"
    facts = PartFacts(
        source="Furutanpey, Raith, Dustdar, TMC 2024 (FrankenSplit)",
        assumes="a head trained on public data, an activation (C, H, W)",
        client_cost="two strided convolutions, and range coding",
        attacker="knows encoder and lift; trains a decoder on codes",
        status="adapted",
    )

    def __init__(
        self,
        shape: tuple[int, ...],
        seed: int = 0,  # noqa: ARG002  every codec takes a seed, this one draws nothing
        *,
        trained: str | None = None,
        channels: int = 8,
        hidden: int = 48,
    ) -> None:
        size_of(tuple(shape))
        if len(shape) != 3:
            raise ConfigError(f"franken needs a shape (C, H, W), got {shape!r}")
        self.check_options({"channels": channels, "hidden": hidden})
        self.code_shape = (channels, *(-(-size // 4) for size in shape[1:]))
        super().__init__(shape, size_of(self.code_shape))
        self.encoder = DistilledEncoder(self.shape, channels, hidden)
        self.decoder = DistilledDecoder(self.shape, self.code_shape, hidden)
        self.use_frequencies(whole_frequencies(FactorisedPrior(channels).shares(REACH)))
        if trained:
            self._load(Path(trained))

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Raise ConfigError if an option is out of range, before the codec is built."""
        for name in ("channels", "hidden"):
            check_count(name, options.get(name, 1))

    @staticmethod
    def label(options: Mapping[str, Any]) -> str:
        """Return the codec in a few words."""
        return f"franken {options.get('channels', 8)} channels"

    def use_frequencies(self, table: Tensor) -> None:
        """Code values by these frequencies from now on."""
        self._table = table
        self.coder = EntropyCoder(table, self.code_size // len(table))
        self.packed_bits = 32 * self.coder.most_words

    def pack(self, code: Code) -> Code:
        """Return the words of each sample, and the bytes of all."""
        symbols = code.values.view(len(code.values), self.code_shape[0], -1)
        words, written = self.coder.write(symbols)
        return Code(words, (written,))

    def unpack(self, packed: Code) -> Code:
        """Return the values; refuse bytes that no encoder wrote."""
        symbols = self.coder.read(packed.values, packed.side[0])
        return Code(symbols.reshape(len(symbols), -1))

    def packed_layout(self, batch_size: int) -> Layout:
        """Return the layout of the words and of the most bytes."""
        most = TensorSpec(
            (4 * self.coder.most_words * batch_size,), torch.uint8, is_most=True
        )
        return Layout(TensorSpec((batch_size,), torch.int16), (most,))

    def tensors(self) -> dict[str, Tensor]:
        """Return all that was trained, under the names in the file."""
        sides = {"encoder": self.encoder, "decoder": self.decoder}
        weights = {
            f"{name}.{key}": tensor
            for name, side in sides.items()
            for key, tensor in side.state_dict().items()
        }
        return {**weights, _TABLE: self._table}

    def _load(self, path: Path) -> None:
        """Take everything from a file, and leave it as it is from then on."""
        try:
            content = path.read_bytes()
            given = safetensors.torch.load(content)
        except (OSError, SafetensorError) as error:
            raise ConfigError(
                f"franken cannot read {path}, which lightsplit distil writes: {error}"
            ) from error
        own = self.tensors()
        shapes = {name: tuple(tensor.shape) for name, tensor in given.items()}
        expected = {name: tuple(tensor.shape) for name, tensor in own.items()}
        if shapes != expected:
            raise ConfigError(
                f"{path} was distilled for another cut, or with other channels or "
                f"hidden: expected {expected}, got {shapes}"
            )
        try:
            self.use_frequencies(given.pop(_TABLE))
        except CodecError as error:
            raise ConfigError(f"{path}: {error}") from error
        for name, side in (("encoder", self.encoder), ("decoder", self.decoder)):
            side.load_state_dict(
                {key: given[f"{name}.{key}"] for key in side.state_dict()}
            )
            side.requires_grad_(False)
        self.fingerprint = hashlib.sha256(content).hexdigest()


class DistilledEncoder(Encoder):
    """Two strided convolutions to a quarter of height and width, rounded."""

    def __init__(self, shape: tuple[int, ...], channels: int, hidden: int) -> None:
        super().__init__()
        self.shape = shape
        self.layers = nn.Sequential(
            nn.Conv2d(shape[0], hidden, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(hidden, channels, 3, stride=2, padding=1),
        )

    def forward(self, activation: Tensor) -> Code:
        """Return the rounded latent of each sample."""
        return self.coded(activation).code

    def coded(self, activation: Tensor) -> Coded:
        """Return the rounded latent of each sample, with the latent."""
        latent = self.latent(activation)
        rounded = latent.detach().round().clamp(-REACH, REACH)
        return Coded(latent, Code(straight_through(latent, rounded)))

    def latent(self, activation: Tensor) -> Tensor:
        """Return the numbers (B, k) before they are rounded."""
        check_rows(activation, self.shape)
        latent: Tensor = self.layers(activation)
        return _SCALE * latent.flatten(1)

    @torch.no_grad()
    def spread(self, activation: Tensor, deviation: float) -> None:
        """Scale the last layer, so that latents of a batch deviate so much."""
        factor = deviation / self.latent(activation).std().clamp(min=1e-6)
        for parameter in self.layers[-1].parameters():
            parameter.mul_(factor)


class DistilledDecoder(Decoder):
    """Two convolutions, and a larger image in front of each."""

    def __init__(
        self, shape: tuple[int, ...], code_shape: tuple[int, ...], hidden: int
    ) -> None:
        super().__init__()
        self.shape = shape
        self.code_shape = code_shape
        self.inner = nn.Conv2d(code_shape[0], hidden, 3, padding=1)
        self.outer = nn.Conv2d(hidden, shape[0], 3, padding=1)

    def forward(self, code: Code) -> Tensor:
        """Return the activations that the values stand for."""
        check_rows(code.values, (size_of(self.code_shape),))
        height, width = self.shape[1:]
        values = code.values.view(-1, *self.code_shape) / _SCALE
        halves = interpolate(values, (-(-height // 2), -(-width // 2)))
        whole = interpolate(self.inner(halves).relu(), (height, width))
        lifted: Tensor = self.outer(whole)
        return lifted

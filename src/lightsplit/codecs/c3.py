"""C3: samples of a batch superposed under keys, by circular convolution.

    R samples z_1 … z_R of a group ──Σ K_i ⊛ z_i──► one row V of d values
    V ──K_i ⋆ V (circular correlation)──► ẑ_i

The keys are drawn from the seed, have unit norm and serve every group. Both directions
are linear and done by FFT. What comes back is z_i plus noise from its R − 1 companions
and from the key's own echo: cos(ẑ_i, z_i) is 1/√(R + 1) on average, 0.33 for R = 8. One
draw of keys may differ: 20 draws gave 0.27 to 0.53 behind a ReLU with 512 values. The
network learns with that noise. A last group of fewer samples is superposed from those
it has. The server knows the keys, so they hide nothing from it.

Hsieh, Chuang, Wu: C3-SL: circular convolution-based batch-wise compression for
communication-efficient split learning, MLSP 2022.
"""

import hashlib
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lightsplit.codecs.base import (
    CODECS,
    Code,
    Codec,
    Decoder,
    Encoder,
    Layout,
    TensorSpec,
    check_rows,
    size_of,
)
from lightsplit.errors import CodecError, ConfigError
from lightsplit.part_facts import PartFacts
from lightsplit.seeding import numpy_generator


@CODECS.register("c3")
class CircularConvolution(Codec):
    """Superposes groups of samples under fixed keys; one row for each group.

    Args:
        shape: shape of one activation.
        ratio: samples of a group, a whole number; default: 8.
        seed: seed of the keys.
    """

    name = "c3"
    facts = PartFacts(
        source="Hsieh et al., MLSP 2022",
        assumes="batches of R samples or more to be short",
        client_cost="an FFT per sample; Rd numbers of keys",
        attacker="knows the keys: separates the group first",
        status="faithful",
    )

    def __init__(
        self, shape: tuple[int, ...], ratio: float = 8.0, seed: int = 0
    ) -> None:
        size = size_of(tuple(shape))
        self.check_options({"ratio": ratio})
        self.group = int(ratio)
        super().__init__(shape, math.ceil(size / self.group))
        drawn = numpy_generator(seed, "c3 keys").standard_normal((self.group, size))
        little_endian = np.ascontiguousarray(drawn, dtype="<f8")
        self.fingerprint = hashlib.sha256(little_endian.data).hexdigest()
        keys = torch.from_numpy(drawn)
        keys = (keys / keys.norm(dim=1, keepdim=True)).float()
        self.encoder = SuperposingEncoder(self.shape, keys)
        self.decoder = SeparatingDecoder(self.shape, keys)

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Raise ConfigError if an option is out of range, before the codec is built."""
        super().check_options(options)
        ratio = options.get("ratio", 1)
        if not float(ratio).is_integer():
            raise ConfigError(
                "c3 superposes whole samples: ratio must be a whole number, got "
                f"{ratio}"
            )

    @property
    def ratio(self) -> float:
        """The samples of a group."""
        return float(self.group)

    @property
    def is_sample_wise(self) -> bool:
        """Return False: a row is made of a whole group."""
        return False

    def layout(self, batch_size: int) -> Layout:
        """Return the layout of the code of ``batch_size`` samples."""
        groups = math.ceil(batch_size / self.group)
        count = TensorSpec((1,), torch.int32)
        return Layout(TensorSpec((groups, self.activation_size)), (count,))

    def samples(self, code: Code) -> int:
        """Return how many samples a code is of."""
        return sample_count(code, self.group)


class SuperposingEncoder(Encoder):
    """Convolves each sample with the key of its place in the group, and adds up."""

    keys: Tensor

    def __init__(self, shape: tuple[int, ...], keys: Tensor) -> None:
        super().__init__()
        self.shape = shape
        self.register_buffer("keys", keys, persistent=False)

    def forward(self, activation: Tensor) -> Code:
        """Return a row for each group, and the number of samples."""
        check_rows(activation, self.shape)
        samples, rows = len(activation), activation.flatten(1)
        group, size = self.keys.shape
        missing = rows.new_zeros(-samples % group, size)
        grouped = torch.cat([rows, missing]).view(-1, group, size)
        spectra = torch.fft.rfft(self.keys) * torch.fft.rfft(grouped)
        values = torch.fft.irfft(spectra.sum(dim=1), n=size)
        count = torch.tensor([samples], dtype=torch.int32, device=values.device)
        return Code(values, (count,))


class SeparatingDecoder(Decoder):
    """Correlates each row with every key."""

    keys: Tensor

    def __init__(self, shape: tuple[int, ...], keys: Tensor) -> None:
        super().__init__()
        self.shape = shape
        self.register_buffer("keys", keys, persistent=False)

    def forward(self, code: Code) -> Tensor:
        """Return the samples of all groups, each with the noise of its companions."""
        group, size = self.keys.shape
        check_rows(code.values, (size,))
        samples = sample_count(code, group)
        spectra = torch.fft.rfft(code.values).unsqueeze(1)
        spectra = torch.fft.rfft(self.keys).conj() * spectra
        separated: Tensor = torch.fft.irfft(spectra, n=size).flatten(0, 1)
        return separated[:samples].reshape(samples, *self.shape)


def sample_count(code: Code, group: int) -> int:
    """Return the number of samples of a code; refuse one that does not fit its rows."""
    groups = len(code.values)
    if len(code.side) == 1 and code.side[0].shape == (1,):
        count = int(code.side[0])
        if 0 < count <= groups * group and math.ceil(count / group) == groups:
            return count
    raise CodecError(
        f"c3 expects the number of samples in {groups} groups of up to {group}"
    )

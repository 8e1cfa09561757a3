"""LightSplit-B: a few trained bits per sample.

    activation ──W──BatchNorm──► h (B, k) ──sign──► ±1 (B, k) ──packed──► k bits each

The map is trained with the model, and so the bits carry what the task needs and little
else. The sign's gradient passes straight through where |h| ≤ 1 and is 0 elsewhere.
Whoever sees the code of a sample learns k bits about it and no more: N samples with M
distinct codes can be told apart in at most M of N cases.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from lightsplit.codecs.base import CODECS
from lightsplit.codecs.few_bits import FewBits, RoundingEncoder, check_count
from lightsplit.part_facts import PartFacts


@CODECS.register("lightsplit-b")
class LightSplitB(FewBits):
    """A few trained bits per sample, which hide what few bits cannot say.

    Args:
        shape: shape of one activation.
        bits: bits per sample (per token with per_token); default: 16.
        seed: seed of a fixed lift.
        lift: how the server lifts a code: learned (default, with a hidden layer),
            linear or fixed.
        hidden: width of a learned lift; default: 512.
        per_token: code each token of a sequence (last dimension) by itself.
        encoder_hidden: width of a hidden layer in the client's map; default: 0, a
            linear map.
    """

    name = "lightsplit-b"
    facts = PartFacts(
        source="LightSplit",
        assumes="batches of two samples or more in training",
        client_cost="dk weights and multiplications",
        attacker="trains a decoder on bits; straight-through in its own model",
        status="ours",
    )

    def __init__(  # noqa: PLR0913
        self,
        shape: tuple[int, ...],
        bits: int = 16,
        seed: int = 0,
        *,
        lift: str = "learned",
        hidden: int = 512,
        per_token: bool = False,
        encoder_hidden: int = 0,
    ) -> None:
        self.check_options({"bits": bits, "encoder_hidden": encoder_hidden})
        super().__init__(
            shape,
            seed,
            count=bits,
            levels=2,
            lift=lift,
            hidden=hidden,
            per_token=per_token,
        )
        self.encoder = SignEncoder(self.shape, bits, self.token_size, encoder_hidden)

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Raise ConfigError if an option is out of range, before the codec is built."""
        super().check_options(options)
        check_count("bits", options.get("bits", 1))
        if options.get("encoder_hidden", 0) != 0:
            check_count("encoder_hidden", options["encoder_hidden"])

    @staticmethod
    def label(options: Mapping[str, Any]) -> str:
        """Return the codec in a few words."""
        each = " per token" if options.get("per_token") else ""
        lift, wide = options.get("lift", "learned"), options.get("hidden", 512)
        kind = "" if lift == "learned" else f" {lift} lift"
        width = "" if kind or wide == 512 else f" hidden={wide}"
        deep = options.get("encoder_hidden", 0)
        depth = f" encoder_hidden={deep}" if deep else ""
        return f"lightsplit-b {options['bits']} bits{each}{kind}{width}{depth}"


class SignEncoder(RoundingEncoder):
    """Sends the sign of each latent number."""

    def round(self, latent: Tensor) -> Tensor:
        """Return the signs, 1 for 0."""
        signs: Tensor = _Sign.apply(latent)  # type: ignore[no-untyped-call]
        return signs


class _Sign(torch.autograd.Function):
    """The sign, with a gradient that passes where the argument is at most 1."""

    @staticmethod
    def forward(ctx: Any, latent: Tensor) -> Tensor:
        ctx.save_for_backward(latent)
        return torch.where(latent >= 0, 1.0, -1.0).to(latent.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (latent,) = ctx.saved_tensors
        passed: Tensor = gradient * (latent.abs() <= 1)
        return passed

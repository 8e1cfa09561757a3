"""Lifts from codes to activations: those that an attacker learns, and that of R.

    code (B, k)         ──trained matrix, at first R──► (B, C, H, W)     projections
    code (B, k)         ──trained matrix, at first random──► the same    trained codes
    code (B, c', H, W)  ──trained 1x1 convolution─────► (B, C, H, W)     fewer channels

A code that the server already reads as an activation needs no lift.
"""

from torch import Tensor, nn

from lightsplit.codecs import Code, Codec
from lightsplit.codecs.lightsplit_f import ProjectingEncoder


class LearnedLift(nn.Module):
    """A linear map from codes (B, k) to activations that starts as the lift by R."""

    def __init__(self, start: Tensor, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.weight = nn.Parameter(start.clone())  # (k, d)
        self.shape = shape

    def forward(self, codes: Tensor) -> Tensor:
        """Return an activation for every code."""
        return (codes @ self.weight).view(len(codes), *self.shape)


def learned_lift(codec: Codec) -> nn.Module | None:
    """Return a trainable lift for the codec's codes.

    None if a code is already read as an activation: raw, or with side information.
    """
    code = codec.layout(1)
    if code.side or code.values.shape[1:] == codec.shape:
        return None
    if isinstance(codec.encoder, ProjectingEncoder):
        return LearnedLift(codec.encoder.projection.matrix().T, codec.shape)
    channels = code.values.shape[1]
    if len(code.values.shape) == 2:
        start = nn.Linear(channels, codec.activation_size, bias=False).weight.detach()
        return LearnedLift(start.T, codec.shape)
    return nn.Conv2d(channels, codec.shape[0], kernel_size=1)


def lifted(codes: Tensor, codec: Codec) -> Tensor:
    """Return codes as activations: lifted by R if there is one, else by the decoder."""
    if tuple(codes.shape[1:]) == codec.shape:
        return codes
    if isinstance(codec.encoder, ProjectingEncoder):
        back = codec.encoder.projection.lift(codes)
        return back.view(len(codes), *codec.shape)
    codec.decoder.eval()
    decoded: Tensor = codec.decoder(Code(codes))
    return decoded.detach()

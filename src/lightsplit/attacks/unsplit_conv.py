"""Many small convolutions at once, each problem with weights of its own.

    images (P, C, H, W), weight (P, O, C, h, w) ──► (P, O, H-h+1, W-w+1)

One matrix product per problem, all in one call. The windows of an image are read off
its flat memory: pixel (y, x) of kernel place (i, j) lies i·W + j further on, whatever
the pixel. So a kernel place is one long run of memory, and unfolding is copying runs.
The price are w-1 meaningless columns at the end of every row, cut off afterwards.

Strides, groups and dilations are left to torch's grouped convolution, which takes about
twice as long for UnSplit's small layers (benchmarks/unsplit.py has the whole attack).
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad


class _Sizes(NamedTuple):
    """The padded images: one row more than asked for, so that no run ends early."""

    problems: int
    channels: int
    height: int
    width: int
    high: int  # of the kernel
    wide: int

    @property
    def places(self) -> int:
        return self.channels * self.high * self.wide

    @property
    def rows(self) -> int:
        return self.height - self.high

    @property
    def columns(self) -> int:
        return self.width - self.wide + 1

    @property
    def run(self) -> int:
        return self.rows * self.width


def convolve(
    images: Tensor, weight: Tensor, bias: Tensor, *, padding: tuple[int, int] = (0, 0)
) -> Tensor:
    """Return each problem's own convolution of its own image."""
    return _Convolution.apply(images, weight, bias, padding)  # type: ignore[no-any-return, no-untyped-call]


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, images: Tensor, weight: Tensor, bias: Tensor, padding: tuple[int, int]
    ) -> Tensor:
        down, right = padding
        padded = pad(images.contiguous(), (right, right, down, down + 1))
        sizes = _Sizes(*padded.shape, *weight.shape[-2:])
        runs = _runs(padded, sizes)
        ctx.save_for_backward(runs, weight)
        ctx.sizes, ctx.padding = sizes, padding
        flat = torch.baddbmm(bias.unsqueeze(-1), weight.flatten(2), runs)
        whole = flat.view(sizes.problems, -1, sizes.rows, sizes.width)
        return whole[..., : sizes.columns]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        runs, weight = ctx.saved_tensors
        sizes: _Sizes = ctx.sizes
        flat = _widened(gradient, sizes.width).flatten(2)
        images = kernels = bias = None
        if ctx.needs_input_grad[0]:
            spread = torch.bmm(weight.flatten(2).transpose(1, 2), flat)
            images = _gathered(spread, sizes, ctx.padding)
        if ctx.needs_input_grad[1]:
            kernels = torch.bmm(flat, runs.transpose(1, 2)).view_as(weight)
            bias = flat.sum(-1)
        return images, kernels, bias, None


def _runs(padded: Tensor, sizes: _Sizes) -> Tensor:
    """Return for every kernel place the run of memory that it is multiplied with."""
    area = sizes.height * sizes.width
    overlapping = padded.as_strided(
        (sizes.problems, sizes.channels, sizes.high, sizes.wide, sizes.run),
        (sizes.channels * area, area, sizes.width, 1, 1),
    )
    return overlapping.reshape(sizes.problems, sizes.places, sizes.run)


def _widened(gradient: Tensor, width: int) -> Tensor:
    """Return the gradient with zeros for the columns that were cut off."""
    *shape, columns = gradient.shape
    wide = gradient.new_zeros(*shape, width)
    wide[..., :columns] = gradient
    return wide


def _gathered(spread: Tensor, sizes: _Sizes, padding: tuple[int, int]) -> Tensor:
    """Add every kernel place's run where it was read: first along rows, then down."""
    shape = (sizes.problems, sizes.channels)
    places = spread.view(*shape, sizes.high, sizes.wide, sizes.run)
    length = sizes.run + sizes.wide - 1
    lines = spread.new_zeros(*shape, sizes.high, length)
    for place in range(sizes.wide):
        lines.narrow(-1, place, sizes.run).add_(places[:, :, :, place])
    flat = spread.new_zeros(*shape, sizes.height * sizes.width)
    for place in range(sizes.high):
        flat.narrow(-1, place * sizes.width, length).add_(lines[:, :, place])
    images = flat.view(*shape, sizes.height, sizes.width)
    down, right = padding
    inner = images[..., down : sizes.height - 1 - down, right : sizes.width - right]
    return inner.contiguous()

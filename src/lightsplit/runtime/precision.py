"""The number format that a side computes in: fp32, or bf16 where torch deems it safe.

    fp32   everything in single precision
    bf16   head, backbone and tail under ``torch.autocast``; weights, codecs, losses and
           everything that crosses a cut stay in fp32

Each end computes its own modules, so each end has a precision of its own.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from lightsplit.errors import ConfigError
from lightsplit.nesting import map_tensors
from lightsplit.registry import unknown_name

PRECISIONS = ("fp32", "bf16")


class Precision:
    """Calls modules in a number format.

    Args:
        name: one of PRECISIONS.
        device: type of the device that the modules are on.
    """

    def __init__(self, name: str = "fp32", device: str = "cpu") -> None:
        if name not in PRECISIONS:
            raise ConfigError(unknown_name("precision", name, list(PRECISIONS)))
        self.name = name
        self._device = device

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return ``function(*arguments)``, computed in this precision, as fp32."""
        if self.name == "fp32":
            return function(*arguments)
        with self._autocast(is_enabled=True):
            result = function(*arguments)
        return map_tensors(_in_single, result)

    def exact(self, function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        """Return ``function`` computed in fp32, wherever it is called."""
        if self.name == "fp32":
            return function

        def call(values: Tensor) -> Tensor:
            with self._autocast(is_enabled=False):
                return function(_in_single(values))

        return call

    def _autocast(self, *, is_enabled: bool) -> torch.autocast:
        # Without the cache no cast of a weight outlives its use.
        return torch.autocast(
            self._device, torch.bfloat16, enabled=is_enabled, cache_enabled=False
        )


def _in_single(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.dtype == torch.bfloat16 else tensor

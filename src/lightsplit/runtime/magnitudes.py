"""How large the numbers of a step may be, so that no message can destroy a model.

    code, output gradient     each number against the limit, before anything is computed
    output, running statistics    finite, after the forward pass
    gradient of the weights   its norm against the limit, before the update

The limit is a term of the contract. It is far above what training needs: it refuses
numbers that leave weights behind from which no training recovers.
"""

import math
from collections.abc import Iterable

import torch
from torch import Tensor

from lightsplit.errors import ProtocolError
from lightsplit.finite import all_finite

NORM_LIMIT = 1e6
_SHORT = 4096  # a running statistic has a number for each channel


def check_numbers(name: str, values: Tensor, limit: float) -> None:
    """Raise if a number of a message is larger than ``limit`` or is not finite."""
    if not values.numel():
        return
    smallest, largest = torch.aminmax(values.detach())
    reached = max(-smallest.item(), largest.item())
    if not reached <= limit:
        raise _beyond(f"{name}: a number of size", reached, limit)


def check_finite(name: str, tensors: Iterable[Tensor]) -> None:
    """Raise if a number that was computed from a message is not finite."""
    if not all(map(all_finite, _joined(tensors))):
        raise ProtocolError(
            f"expected finite numbers in {name}, got others", code="not-finite"
        )


def _joined(tensors: Iterable[Tensor]) -> list[Tensor]:
    """Return the same numbers in fewer tensors, with short ones of a kind joined."""
    found: list[Tensor] = []
    short: dict[tuple[torch.dtype, torch.device], list[Tensor]] = {}
    for tensor in tensors:
        if tensor.numel() > _SHORT:
            found.append(tensor)
        elif tensor.is_floating_point():
            kind = (tensor.dtype, tensor.device)
            short.setdefault(kind, []).append(tensor.detach().flatten())
    return found + [torch.cat(each) for each in short.values()]


def check_norm(name: str, tensors: Iterable[Tensor], limit: float) -> None:
    """Raise if the norm of all tensors together is beyond ``limit`` or not finite."""
    products = [_own_product(tensor.detach().flatten()) for tensor in tensors]
    if not products:
        return
    together = torch.stack([one.to(products[0].device) for one in products])
    norm = math.sqrt(together.sum().item())
    if not norm <= limit:
        raise _beyond(f"{name}: a norm of", norm, limit)


def _own_product(flat: Tensor) -> Tensor:
    """Return the sum of squares, in half the time of ``vector_norm``."""
    wide = flat.to(torch.promote_types(flat.dtype, torch.float32))
    return torch.dot(wide, wide)


def _beyond(what: str, got: float, limit: float) -> ProtocolError:
    return ProtocolError(
        f"{what} {got:.3g} is beyond the contract's norm limit of {limit:.3g}; lower "
        "the learning rate or raise norm_limit at both ends",
        code="out-of-range" if math.isfinite(got) else "not-finite",
    )

"""How long a sealed side may be: both ends know the modules, so both know the bound."""

from torch import nn

_COPIES = 8  # weights, and up to seven tensors of their size in an optimizer
_SPARE_BYTES = 16 * 2**20  # names, the seal, and objectives with weights of their own


def most_side_bytes(*modules: nn.Module | None) -> int:
    """Return the most bytes of a side that has these modules."""
    weights: int = sum(
        tensor.nbytes
        for module in modules
        if module is not None
        for tensor in module.state_dict().values()
    )
    return _COPIES * weights + _SPARE_BYTES

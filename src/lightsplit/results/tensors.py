"""Named tensors as safetensors bytes; nothing is ever unpickled."""

from collections.abc import Mapping
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from lightsplit.errors import RunError
from lightsplit.results.atomic import write_bytes


def to_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    """Return the tensors in the safetensors format, whatever they share or alias."""
    return safetensors.torch.save(
        {
            name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
            for name, tensor in tensors.items()
        }
    )


def from_bytes(blob: bytes) -> dict[str, Tensor]:
    """Return the tensors of safetensors bytes, or say what is wrong with them."""
    try:
        return safetensors.torch.load(blob)
    except SafetensorError as error:
        raise RunError(f"not safetensors: {error}") from error


def save(path: Path, tensors: Mapping[str, Tensor], *, is_secret: bool = False) -> None:
    """Write the tensors to ``path`` in one step; a secret is its owner's alone."""
    write_bytes(path, to_bytes(tensors), is_secret=is_secret)


def load(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a file, or say what is wrong with it."""
    try:
        return safetensors.torch.load_file(path)
    except FileNotFoundError as error:
        raise RunError(f"{path} does not exist") from error
    except (SafetensorError, OSError) as error:
        raise RunError(f"{path} is not a safetensors file: {error}") from error

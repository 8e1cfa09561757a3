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
    """Return the tensors in the safetensors format; shared memory is copied."""
    return safetensors.torch.save(
        {
            name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
            for name, tensor in tensors.items()
        }
    )


def from_bytes(blob: bytes) -> dict[str, Tensor]:
    """Return the tensors of safetensors bytes; raise RunError if they are invalid."""
    try:
        return safetensors.torch.load(blob)
    except SafetensorError as error:
        raise RunError(f"expected safetensors bytes, got others: {error}") from error


def save(path: Path, tensors: Mapping[str, Tensor], *, is_secret: bool = False) -> None:
    """Write the tensors atomically; a secret file is readable by its owner only."""
    write_bytes(path, to_bytes(tensors), is_secret=is_secret)


def load(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a file; raise RunError if it is missing or invalid."""
    if Path(path).is_dir():
        raise RunError(f"{path} is not a safetensors file: it is a folder")
    try:
        return safetensors.torch.load_file(path)
    except FileNotFoundError as error:
        raise RunError(f"{path} does not exist") from error
    except SafetensorError as error:
        raise RunError(f"{path} is not a safetensors file: {error}") from error
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror or error}") from error

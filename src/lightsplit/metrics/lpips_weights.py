"""The weights of LPIPS: AlexNet's convolutions, and a head for each of them.

    FOLDER/alexnet-features.safetensors     features.{0,3,6,8,10}.{weight,bias}
    FOLDER/lpips-alex-heads.safetensors     lin{0,…,4}.model.1.weight

Missing convolutions are downloaded from torchvision's address (244 MB, SHA-256
checked); only they are kept (10 MB). Missing heads are taken from torchmetrics. The
numbers are always checked: another network's weights would also give values, and nobody
would notice that they are meaningless. They are read once per process, folder and
device.
"""

import hashlib
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from lightsplit.errors import DataError, MissingDataError
from lightsplit.extras import require

FEATURES_FILE = "alexnet-features.safetensors"
HEADS_FILE = "lpips-alex-heads.safetensors"

ADDRESS = "https://download.pytorch.org/models/alexnet-owt-7be5be79.pth"
ADDRESS_SHA256 = "7be5be791159472b1fbf3c69796f7cb30dca7ad8466c2df70058c37116cdee02"
SECONDS = (5, 60)  # timeouts to connect, and between two chunks

# SHA-256 of the numbers themselves; see _digest.
FEATURES_SHA256 = "bfe63bc7d4567210c4f2635323e4604361abe3956187f91b20672feafe9e1366"
HEADS_SHA256 = "a7908920142c7ac1b2f9b667feafb1c05a10c487e3b7adfbc1c9379e62411a43"

CONVOLUTIONS = (0, 3, 6, 8, 10)  # torchvision's numbers for AlexNet's convolutions


class Weights(NamedTuple):
    """The five convolutions as (kernel, bias), and the head after each."""

    convolutions: list[tuple[Tensor, Tensor]]
    heads: list[Tensor]


@lru_cache(maxsize=4)
def load_weights(folder: Path, device: torch.device) -> Weights:
    """Return the weights on ``device``; download missing ones to ``folder``."""
    features, heads = _features(folder), _heads(folder)
    return Weights(
        [
            (
                features[f"features.{number}.weight"].to(device),
                features[f"features.{number}.bias"].to(device),
            )
            for number in CONVOLUTIONS
        ],
        [heads[f"lin{number}.model.1.weight"].to(device) for number in range(5)],
    )


def _features(folder: Path) -> dict[str, Tensor]:
    path = folder / FEATURES_FILE
    if not path.exists():
        try:
            _download(path)
        except (OSError, ValueError) as error:  # the errors of requests are OSErrors
            raise MissingDataError(_missing(path, error)) from None
    return _checked(_read(path), FEATURES_SHA256, path)


def _heads(folder: Path) -> dict[str, Tensor]:
    path = folder / HEADS_FILE
    if path.exists():
        return _checked(_read(path), HEADS_SHA256, path)
    path = _shipped_heads()
    return _checked(_unpacked(path), HEADS_SHA256, path)


def _read(path: Path) -> dict[str, Tensor]:
    try:
        return safetensors.torch.load_file(path)
    except (SafetensorError, OSError) as error:
        raise DataError(f"{path} is not a safetensors file: {error}") from error


def _download(path: Path) -> None:
    """Write AlexNet's convolutions to ``path`` without its other layers."""
    pooch = require("pooch", extra="data", purpose="downloading LPIPS's weights")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as passing:
        published = pooch.retrieve(
            ADDRESS,
            known_hash=f"sha256:{ADDRESS_SHA256}",
            path=passing,
            downloader=pooch.HTTPDownloader(timeout=SECONDS),
        )
        whole = _unpacked(Path(published))
        kept = {name: whole[name] for name in whole if name.startswith("features.")}
        extract = Path(passing) / path.name
        safetensors.torch.save_file(kept, extract)
        extract.replace(path)


def _shipped_heads() -> Path:
    """Return the file of the heads inside torchmetrics, without importing it."""
    package = find_spec("torchmetrics")
    for place in (package.submodule_search_locations or []) if package else []:
        path = Path(place) / "functional" / "image" / "lpips_models" / "alex.pth"
        if path.exists():
            return path
    raise MissingDataError(
        f"the heads of LPIPS are neither in {HEADS_FILE} of the weights' folder nor in "
        "torchmetrics; install torchmetrics 1.6 or later"
    )


def _unpacked(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a torch.save file, loaded without unpickling objects."""
    return dict(torch.load(path, map_location="cpu", weights_only=True))


def _checked(found: dict[str, Tensor], sha256: str, path: Path) -> dict[str, Tensor]:
    """Return the tensors if they are the published ones."""
    if (digest := _digest(found)) != sha256:
        raise DataError(
            f"{path}: expected the published LPIPS weights (SHA-256 {sha256[:12]}…), "
            f"got others ({digest[:12]}…); remove the file to fetch it again"
        )
    return found


def _digest(found: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of names, shapes and numbers, sorted by name."""
    digest = hashlib.sha256()
    for name in sorted(found):
        tensor = found[name].contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()


def _missing(path: Path, error: Exception) -> str:
    from requests import exceptions

    is_offline = isinstance(error, exceptions.ConnectionError | exceptions.Timeout)
    reason = "no connection" if is_offline else str(error)
    return (
        f"LPIPS needs {path}, which is missing and could not be made "
        f"from {ADDRESS} ({reason}); copy the file from a machine that has it, choose "
        "another folder with --data-dir or LIGHTSPLIT_DATA, or leave out the metrics "
        "lpips and lpips_crop"
    )

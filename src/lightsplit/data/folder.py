"""The folder of the data files, and the download of missing ones.

    --data-dir, else LIGHTSPLIT_DATA, else the user's cache
    └── mnist/ · fashion-mnist/ · cifar10/ · cifar100/ · gtsrb/

A file in the folder is used as it is. A missing file is downloaded once from its
publisher and gets its name only after its MD5 has been checked. A failed download
raises a MissingDataError that lists the files to put into the folder, never an error of
the network.
"""

import logging
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

import platformdirs

from lightsplit.errors import MissingDataError
from lightsplit.extras import require

ADDRESSES = {
    "mnist": "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "fashion-mnist": "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    "cifar10": "https://www.cs.toronto.edu/~kriz/",
    "cifar100": "https://www.cs.toronto.edu/~kriz/",
    "gtsrb": ("https://sid.erda.dk/public/archives/daaeac0d7ce1152aea9b61d9f1e19370/"),
}

CONNECT_SECONDS = 5
READ_SECONDS = 30


def data_folder(given: Path | None) -> Path:
    """Return ``given``, else LIGHTSPLIT_DATA, else the user's cache folder."""
    if given is not None:
        return Path(given).expanduser()
    if named := os.environ.get("LIGHTSPLIT_DATA"):
        return Path(named).expanduser()
    return Path(platformdirs.user_cache_dir("lightsplit"))


def fetch(folder: Path, dataset: str, files: Mapping[str, str]) -> None:
    """Download those of ``files`` (name to MD5) that ``folder`` does not hold yet."""
    for name in _absent(folder, files):
        try:
            _download(dataset, name, md5=files[name], folder=folder)
        except (OSError, ValueError) as error:  # the errors of requests are OSErrors
            reason = _reason(error, ADDRESSES[dataset])
            message = _missing(folder, dataset, _absent(folder, files), reason)
            raise MissingDataError(message) from None


@contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """Open a file that gets the name ``path`` only if the block succeeds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        with partial.open("xb") as file:
            yield file
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _absent(folder: Path, names: Mapping[str, str]) -> list[str]:
    return [name for name in names if not (folder / name).exists()]


def _download(dataset: str, name: str, *, md5: str, folder: Path) -> None:
    purpose = f"downloading {dataset} to {folder}"
    pooch: Any = require("pooch", extra="data", purpose=purpose)
    with _quiet(pooch.get_logger()):
        pooch.retrieve(
            ADDRESSES[dataset] + name,
            known_hash=f"md5:{md5}",
            fname=name,
            path=folder,
            downloader=pooch.HTTPDownloader(timeout=(CONNECT_SECONDS, READ_SECONDS)),
        )


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


def _reason(error: Exception, address: str) -> str:
    """Return the reason for a failed download in a few words."""
    from requests import exceptions

    host = urlsplit(address).netloc
    if isinstance(error, exceptions.Timeout):
        return f"no answer from {host}"
    if isinstance(error, exceptions.ConnectionError):
        return f"no connection to {host}"
    return str(error)


def _missing(folder: Path, dataset: str, names: list[str], reason: str) -> str:
    files = "1 file is" if len(names) == 1 else f"{len(names)} files are"
    lines = [
        f"{dataset}: {files} missing and could not be downloaded ({reason}):",
        *(f"  {folder / name}  from  {ADDRESSES[dataset]}{name}" for name in names),
        "put the missing files there, choose another folder with --data-dir or "
        "LIGHTSPLIT_DATA, or use the dataset digits, which needs no download",
    ]
    return "\n".join(lines)

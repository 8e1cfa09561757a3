"""Where the data files lie, and how absent ones get there.

    --data-dir, else LIGHTSPLIT_DATA, else the user's cache
    └── mnist/ · fashion-mnist/ · cifar10/ · cifar100/ · gtsrb/

A file that is there is used as it is. An absent one is downloaded once from where it is
published; it takes its name only after its MD5 was found right. A failed download ends
in a MissingDataError that says what to put where: never in an error of the network.
"""

import logging
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from lightsplit.errors import MissingDataError

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
    import pooch

    return Path(pooch.os_cache("lightsplit"))


def fetch(folder: Path, dataset: str, files: Mapping[str, str]) -> None:
    """Download those of ``files`` (name to MD5) that ``folder`` does not hold yet."""
    for name in _absent(folder, files):
        try:
            _download(ADDRESSES[dataset] + name, files[name], folder)
        except (OSError, ValueError) as error:  # requests' errors are OSErrors
            reason = _reason(error, ADDRESSES[dataset])
            message = _missing(folder, dataset, _absent(folder, files), reason)
            raise MissingDataError(message) from None


@contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """Open a file that takes the name ``path`` only when the block has succeeded."""
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


def _download(url: str, md5: str, folder: Path) -> None:
    import pooch

    with _quiet(pooch.get_logger()):
        pooch.retrieve(
            url,
            known_hash=f"md5:{md5}",
            fname=url.rpartition("/")[2],
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
    """Say in a few words why a download failed."""
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
        "put what is missing there, choose another folder with --data-dir or "
        "LIGHTSPLIT_DATA, or use the dataset digits, which needs no download",
    ]
    return "\n".join(lines)

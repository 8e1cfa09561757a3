"""Files that are complete or absent: a crash never leaves half a file.

A file is written under another name, a *draft*, synced, and renamed; then its folder is
synced, so that the new name survives a loss of power too.
"""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_DRAFT = ".tmp"


def write_bytes(path: Path, content: bytes, *, is_secret: bool = False) -> None:
    """Replace ``path`` with ``content`` atomically.

    Other users may read it like any new file; a secret is readable by its owner only.
    """
    make_folder(path.parent)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}{_DRAFT}")
    try:
        with named_errors(path):  # nobody knows the draft's name
            write_new(draft, content, is_secret=is_secret)
            draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_text(path: Path, content: str) -> None:
    """Replace ``path`` with ``content`` in UTF-8 atomically."""
    write_bytes(path, content.encode())


def write_new(path: Path, content: bytes, *, is_secret: bool = False) -> None:
    """Write a file that does not exist yet, perhaps inside a folder that is a draft."""
    mode = 0o600 if is_secret else 0o666  # minus the umask
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with named_errors(path), os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def named_errors(path: Path) -> Iterator[None]:
    """Put the file's name into an error of writing, which often comes without one."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            error.filename = str(path)
        raise


def make_folder(folder: Path) -> None:
    """Make a folder and those above it; wait until their names are on the disk."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Wait until the names in ``folder`` are on the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_drafts(folder: Path) -> None:
    """Delete drafts that a killed process left; only for a folder with one writer."""
    for draft in folder.glob(f"*{_DRAFT}"):
        if draft.is_dir():
            shutil.rmtree(draft, ignore_errors=True)
        else:
            draft.unlink(missing_ok=True)

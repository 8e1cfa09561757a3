import hashlib
import logging
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lightsplit.data import DATASETS, data_folder, folder
from lightsplit.data.folder import fetch, written_whole
from lightsplit.errors import MissingDataError

CONTENT = b"published bytes"
MD5 = hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()


class SilentHandler(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Publish tmp_path/published under the address of MNIST, on this machine."""
    published = tmp_path / "published"
    published.mkdir()
    (published / "file.bin").write_bytes(CONTENT)
    handler = partial(SilentHandler, directory=str(published))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}/"
        monkeypatch.setitem(folder.ADDRESSES, "mnist", address)
        yield address
        server.shutdown()
        thread.join()


def test_the_argument_comes_before_the_variable_and_the_variable_before_the_cache(
    monkeypatch,
):
    monkeypatch.setenv("LIGHTSPLIT_DATA", "named")
    assert data_folder(Path("given")) == Path("given")
    assert data_folder(None) == Path("named")
    monkeypatch.setenv("LIGHTSPLIT_DATA", "")
    assert data_folder(None).name == "lightsplit"


def test_a_tilde_is_the_users_home(monkeypatch):
    monkeypatch.setenv("LIGHTSPLIT_DATA", "~/pictures")
    assert data_folder(None) == Path.home() / "pictures"


FILES = {
    "mnist": "t10k-labels-idx1-ubyte.gz",
    "fashion-mnist": "train-images-idx3-ubyte.gz",
    "cifar10": "cifar-10-binary.tar.gz",
    "cifar100": "cifar-100-binary.tar.gz",
    "gtsrb": "GTSRB_Final_Training_Images.zip",
}


@pytest.mark.parametrize("name", [n for n in DATASETS.names() if n != "digits"])
def test_offline_the_error_lists_the_files_and_their_folder(tmp_path, name):
    start = time.monotonic()
    with pytest.raises(MissingDataError) as caught:
        DATASETS.create(name, data_dir=tmp_path)
    message = str(caught.value)
    assert str(tmp_path / name / FILES[name]) in message
    assert folder.ADDRESSES[name] + FILES[name] in message
    for word in ("--data-dir", "LIGHTSPLIT_DATA", "digits", "no connection to"):
        assert word in message
    assert caught.value.__suppress_context__
    assert time.monotonic() - start < 60


def test_only_the_files_that_are_absent_are_called_missing(tmp_path):
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / "train-images-idx3-ubyte").write_bytes(b"")
    with pytest.raises(MissingDataError, match="mnist: 3 files are missing") as caught:
        DATASETS.create("mnist", data_dir=tmp_path)
    assert "train-images" not in str(caught.value)


def test_an_absent_file_is_downloaded_once_and_silently(tmp_path, server, caplog):
    caplog.set_level(logging.INFO)
    fetch(tmp_path / "data", "mnist", {"file.bin": MD5})
    assert (tmp_path / "data" / "file.bin").read_bytes() == CONTENT
    (tmp_path / "published" / "file.bin").unlink()
    fetch(tmp_path / "data", "mnist", {"file.bin": MD5})
    assert not caplog.records


def test_a_download_with_another_hash_never_gets_its_name(tmp_path, server):
    with pytest.raises(MissingDataError, match="does not match the known hash"):
        fetch(tmp_path / "data", "mnist", {"file.bin": "0" * 32})
    assert not list((tmp_path / "data").iterdir())


def test_a_file_that_is_not_published_is_missing(tmp_path, server):
    with pytest.raises(MissingDataError, match="404"):
        fetch(tmp_path / "data", "mnist", {"file.bin": MD5, "other.bin": MD5})
    assert (tmp_path / "data" / "file.bin").exists()


def test_a_server_that_does_not_answer_is_given_up(tmp_path, monkeypatch):
    import socket

    monkeypatch.setattr(folder, "READ_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"http://127.0.0.1:{mute.getsockname()[1]}/"
        monkeypatch.setitem(folder.ADDRESSES, "mnist", address)
        with pytest.raises(MissingDataError, match="no answer from 127"):
            fetch(tmp_path, "mnist", {"file.bin": MD5})


def test_a_folder_that_cannot_be_made_is_reported_as_missing_data(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(MissingDataError, match="1 file is missing"):
        fetch(tmp_path / "file" / "mnist", "mnist", {"file.bin": MD5})


def test_a_file_whose_writing_fails_leaves_the_old_one(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail():
        with written_whole(path) as file:
            file.write(b"new")
            raise RuntimeError("interrupted")

    with pytest.raises(RuntimeError, match="interrupted"):
        fail()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]

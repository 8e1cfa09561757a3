"""Where the weights of LPIPS come from: a folder, a download, torchmetrics."""

import hashlib
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
import torch
from safetensors.torch import load_file, save_file

from lightsplit.errors import DataError, MissingDataError
from lightsplit.metrics import lpips_weights
from lightsplit.metrics.lpips_weights import FEATURES_FILE, HEADS_FILE, load_weights

CPU = torch.device("cpu")
SHAPES = {0: (64, 3, 11), 3: (192, 64, 5), 6: (384, 192, 3), 8: (256, 384, 3)}
SHAPES[10] = (256, 256, 3)


class SilentHandler(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    """Forget what was read, and point the download at a closed port."""
    load_weights.cache_clear()
    monkeypatch.setattr(lpips_weights, "ADDRESS", "http://127.0.0.1:9/alexnet.pth")
    yield
    load_weights.cache_clear()


@pytest.fixture
def alexnet():
    """Return numbers in the shapes of AlexNet, with a layer that LPIPS does not use."""
    state = {"classifier.1.weight": torch.rand(4, 4)}
    for number, (out, inside, side) in SHAPES.items():
        state[f"features.{number}.weight"] = torch.rand(out, inside, side, side)
        state[f"features.{number}.bias"] = torch.rand(out)
    return state


@pytest.fixture
def features(alexnet):
    return {name: alexnet[name] for name in alexnet if name.startswith("features.")}


@pytest.fixture
def address(tmp_path, alexnet, features, monkeypatch):
    """Publish the numbers of ``alexnet`` on this machine as if they were the real."""
    published = tmp_path / "published"
    published.mkdir()
    torch.save(alexnet, published / "alexnet.pth")
    content = (published / "alexnet.pth").read_bytes()
    handler = partial(SilentHandler, directory=str(published))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}/alexnet.pth"
        monkeypatch.setattr(lpips_weights, "ADDRESS", address)
        digest = hashlib.sha256(content).hexdigest()
        monkeypatch.setattr(lpips_weights, "ADDRESS_SHA256", digest)
        digest = lpips_weights._digest(features)
        monkeypatch.setattr(lpips_weights, "FEATURES_SHA256", digest)
        yield address
        server.shutdown()
        thread.join()


def test_absent_convolutions_are_downloaded_once_and_only_they_are_kept(
    tmp_path, address, features, monkeypatch
):
    folder = tmp_path / "data" / "weights"
    first = load_weights(folder, CPU)
    assert torch.equal(first.convolutions[4][0], features["features.10.weight"])
    assert [path.name for path in folder.iterdir()] == [FEATURES_FILE]
    assert load_file(folder / FEATURES_FILE).keys() == features.keys()
    monkeypatch.setattr(lpips_weights, "ADDRESS", "http://127.0.0.1:9/alexnet.pth")
    load_weights.cache_clear()
    again = load_weights(folder, CPU)
    assert torch.equal(again.convolutions[0][1], features["features.0.bias"])


def test_a_download_with_another_hash_is_not_used(tmp_path, address, monkeypatch):
    monkeypatch.setattr(lpips_weights, "ADDRESS_SHA256", "0" * 64)
    with pytest.raises(MissingDataError, match="hash"):
        load_weights(tmp_path / "weights", CPU)
    assert list((tmp_path / "weights").iterdir()) == []


def test_without_network_the_error_says_what_to_do(tmp_path):
    with pytest.raises(MissingDataError) as caught:
        load_weights(tmp_path, CPU)
    message = str(caught.value)
    for part in (str(tmp_path / FEATURES_FILE), "no connection", "--data-dir", "copy"):
        assert part in message
    assert list(tmp_path.iterdir()) == []


def test_other_numbers_are_refused(tmp_path, features):
    save_file(features, tmp_path / FEATURES_FILE)
    with pytest.raises(DataError, match="expected the published LPIPS weights"):
        load_weights(tmp_path, CPU)


def test_a_damaged_file_is_refused(tmp_path):
    (tmp_path / FEATURES_FILE).write_bytes(b"half of a")
    with pytest.raises(DataError, match="not a safetensors file"):
        load_weights(tmp_path, CPU)


def test_heads_of_the_folder_come_first_and_are_checked(tmp_path, address):
    save_file({"lin0.model.1.weight": torch.rand(1, 64, 1, 1)}, tmp_path / HEADS_FILE)
    with pytest.raises(DataError, match=HEADS_FILE):
        load_weights(tmp_path, CPU)


def test_torchmetrics_ships_the_heads_that_the_digest_is_of(tmp_path, address):
    heads = load_weights(tmp_path, CPU).heads
    assert [head.shape[1] for head in heads] == [64, 192, 384, 256, 256]
    assert all(bool((head >= 0).all()) for head in heads)


def test_without_torchmetrics_the_error_says_so(tmp_path, address, monkeypatch):
    monkeypatch.setattr(lpips_weights, "find_spec", lambda name: None)
    with pytest.raises(MissingDataError, match="install torchmetrics"):
        load_weights(tmp_path, CPU)


@pytest.mark.data
def test_the_weights_are_read_once(weights):
    assert load_weights(weights, CPU) is load_weights(weights, CPU)

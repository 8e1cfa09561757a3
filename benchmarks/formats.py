"""What writing and reading a message costs, beside a ResNet-18 step: batch 64.

    python -m benchmarks.formats

Each of the four messages is written and read again, with the presets' formats and with
int4, at k = 128 values at the front cut and 48 (512 where the output is whole) at the
back cut. The share is that of all four in one split step with the same codec in fp32.
"""

import json
from collections.abc import Callable
from functools import partial

import torch

from benchmarks.timing import interleaved_medians
from lightsplit import Client, ClientSide, Server, ServerSide, make_codec
from lightsplit.codecs import Code, Layout, TensorSpec
from lightsplit.formats import STEP_KINDS, Stamp, WireFormats
from lightsplit.models import MODELS

BATCH, CODE, OUTPUT, SHORT = 64, 128, 512, 48
ADAM = partial(torch.optim.Adam, lr=1e-3)
VARIANTS = {
    "half": ("bf16", OUTPUT),
    "lean": ("bf16", SHORT),
    "max": ("int8", SHORT),
    "int8, whole output": ("int8", OUTPUT),
    "int4, whole output": ("int4", OUTPUT),
}


def measure(rounds: int = 25) -> dict[str, object]:
    """Return microseconds by message, and the share of all four in a step."""
    tasks = {"step": _step()}
    for title, (name, width) in VARIANTS.items():
        for kind in STEP_KINDS:
            size = CODE if kind.startswith("code") else width
            tasks[f"{title} {kind}"] = _there_and_back(name, kind, size)
    medians = interleaved_medians(tasks, rounds=rounds)
    step = medians["step"]
    return {
        "model": "resnet18 l2",
        "batch_size": BATCH,
        "threads": torch.get_num_threads(),
        "rounds": rounds,
        "step_milliseconds": round(step * 1e3, 1),
        "microseconds": {
            title: {k: round(medians[f"{title} {k}"] * 1e6) for k in STEP_KINDS}
            for title in VARIANTS
        },
        "share_of_step": {
            title: round(sum(medians[f"{title} {k}"] for k in STEP_KINDS) / step, 5)
            for title in VARIANTS
        },
    }


def _there_and_back(name: str, kind: str, size: int) -> Callable[[], object]:
    formats, values = WireFormats(name), torch.randn(BATCH, size)
    stamp, plain = Stamp(kind, 0, 0), Layout(TensorSpec((BATCH, size)))

    def forward() -> None:
        formats.read(stamp, formats.write(stamp, Code(values)), plain)

    def back() -> None:
        written = formats.write_gradient(stamp, None, values)
        formats.read_gradient(stamp, None, written, plain)

    return back if kind.endswith("gradient") else forward


def _step() -> Callable[[], object]:
    images, labels = torch.rand(BATCH, 3, 32, 32), torch.randint(10, (BATCH,))
    parts = MODELS.create("resnet18", cut="l2").split()
    codec = make_codec("lightsplit-f", shape=(64, 8, 8), ratio=32, projection="dct")
    server = Server(ServerSide(parts.backbone, codec, ADAM))
    client = Client(ClientSide(parts.head, parts.tail, codec, ADAM), server.handle)
    return lambda: client.step(images, labels)


if __name__ == "__main__":
    print(json.dumps(measure(), indent=2))

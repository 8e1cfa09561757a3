"""Valid frames of a client, which the hostile benchmark sends or damages."""

from torch import arange, full

from benchmarks.hostile_run import HostileRun
from lightsplit.codecs import Code
from lightsplit.experiments import build, from_settings
from lightsplit.protocol import CodeMessage, Message, OutputGradient, Reply, Request
from lightsplit.protocol.control import Hello, Ready, TurnDone
from lightsplit.protocol.frames import to_frames


class _CodeAskedError(Exception):
    """A client wanted to send the code that is kept in ``request``."""

    def __init__(self, request: Request) -> None:
        super().__init__()
        self.request = request


def predicting_frames(run: HostileRun, name: str, samples: int = 24) -> list[bytes]:
    """Return a valid greeting of ``name`` for predictions, and a valid code."""
    job = build(from_settings({**run.settings, "test_limit": samples}))
    client = job.trainer.clients[0]
    client.index = run.names.index(name)
    client.send = _keep
    hello = Hello(
        name, build(from_settings(run.settings)).contract.to_json(), "predict"
    )
    try:
        inputs, _ = job.dataset.test.batch(arange(samples))
        client.predict(inputs)
    except _CodeAskedError as asked:
        return [to_frames(hello)[0], to_frames(asked.request)[0]]
    raise AssertionError("a prediction sends a code")


def training_frames(run: HostileRun, name: str) -> list[bytes]:
    """Return what ``name`` says in its first turn.

    A greeting, that it is ready, a code, the code's gradient and a hand-off.
    """
    contract = build(from_settings(run.settings)).contract
    index, rows = run.names.index(name), run.settings["batch_size"]
    said: list[Message] = [
        Hello(name, contract.to_json(), "train"),
        Ready(2),
        CodeMessage(index, 0, Code(full((rows, contract.code_size), 0.5))),
        OutputGradient(index, 0, full((rows, *contract.output_shape), 1e-3)),
        TurnDone(index, b"x" * 99),
    ]
    return [to_frames(message)[0] for message in said]


def _keep(request: Request) -> Reply:
    raise _CodeAskedError(request)

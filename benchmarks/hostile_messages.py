"""Valid frames of a client, which the hostile benchmark sends or damages."""

import torch
from torch import arange, full

from benchmarks.hostile_run import HostileRun
from lightsplit.codecs import Code
from lightsplit.experiments import build, from_settings
from lightsplit.protocol import (
    CodeMessage,
    Message,
    OutputGradient,
    Reply,
    Request,
    control,
    messages,
)
from lightsplit.protocol._pb import lightsplit_pb2 as pb
from lightsplit.protocol.control import Hello, Ready, TurnDone
from lightsplit.protocol.frames import to_frames
from lightsplit.protocol.frames.schema import KINDS, kind_of


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
    try:
        inputs, _ = job.dataset.test.batch(arange(samples))
        client.predict(inputs)
    except _CodeAskedError as asked:
        return [greeting(run, name, "predict"), to_frames(asked.request)[0]]
    raise AssertionError("a prediction sends a code")


def greeting(run: HostileRun, name: str, purpose: str) -> bytes:
    """Return the frame with which ``name`` says what it comes for."""
    contract = build(from_settings(run.settings)).contract.to_json()
    return to_frames(Hello(name, contract, purpose))[0]


def first_step(run: HostileRun, name: str) -> list[bytes]:
    """Return the code and the gradient of ``name`` in its first step, bit for bit.

    An impostor that sends the same leaves nothing for the true client to change. What
    needs the clients' key, a share of a sum, it does not have.
    """
    index, said = run.names.index(name), list[Request]()
    trainer = build(from_settings(run.settings)).trainer
    client = trainer.clients[index]
    send = client.send

    def note(request: Request) -> Reply:
        said.append(request)
        return send(request)

    client.send = note
    next(iter(trainer.run()))
    own = [one for one in said if one.client == index and one.is_training]
    step = [one for one in own if one.step == own[0].step]
    return [to_frames(one)[0] for one in step if not isinstance(one, messages.Share)]


def every_message(run: HostileRun, name: str) -> dict[str, bytes]:
    """Return a frame of every kind of message in the schema, as ``name`` might say it.

    What only a server says is among them, and a part of a longer frame.
    """
    contract = build(from_settings(run.settings)).contract
    index, rows = run.names.index(name), run.settings["batch_size"]
    at = (index, 0)  # client and step
    code = Code(full((rows, contract.code_size), 0.5))
    output = full((rows, *contract.output_shape), 1e-3)
    numbers = arange(contract.share_numbers or 99, dtype=torch.int64)
    nonces = torch.ones((1, messages.NONCE_BYTES), dtype=torch.uint8)
    said: list[Message] = [
        CodeMessage(*at, code=code),
        messages.OutputMessage(*at, output=Code(output)),
        OutputGradient(*at, gradient=output),
        messages.CodeGradient(*at, gradient=code.values),
        messages.Release(*at, first=0, code=code),
        messages.Recall(*at, numbers=arange(rows, dtype=torch.int32)),
        messages.Noted(*at),
        messages.EncryptedCode(*at, ciphertext=b"x" * 999),
        messages.EncryptedOutput(*at, ciphertext=b"x" * 999),
        messages.Share(*at, numbers=numbers, nonces=nonces),
        messages.Total(*at, samples=rows, numbers=numbers, nonces=nonces),
        Hello(name, contract.to_json(), "predict"),
        control.Welcome(index, "run", 1, b"x" * 99),
        Ready(2),
        control.Grant(index, 1, 0, side=b"x" * 99),
        TurnDone(index, b"x" * 99),
        control.Finished("schedule", index, b"x" * 99),
        control.Heard(),
        control.Update("apply", 1),
        control.Updated(1, 1),
        control.Refusal("refused", "no"),
    ]
    frames = {kind_of(one).name: to_frames(one)[0] for one in said}
    forgotten = {kind.name for kind in KINDS.values()} - frames.keys()
    if forgotten:
        raise AssertionError(f"the schema has more messages: {sorted(forgotten)}")
    part = pb.Part(total=3_000_000, data=frames["turn_done"])
    return {**frames, "part": pb.Frame(part=part).SerializeToString()}


def _keep(request: Request) -> Reply:
    raise _CodeAskedError(request)

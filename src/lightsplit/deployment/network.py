"""``serve`` and ``join``: a networked run from Python, with any model and any loader.

    server:  serve(server, contract, plan, Endpoint("0.0.0.0:7443", tls), folder)
    client:  join(client, contract, Endpoint("host:7443", tls), name=…, batches=…)

Both ends build the contract from their own settings (``make_contract``); the server
refuses a client whose contract differs.
"""

import copy
import secrets
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import torch

from lightsplit.codecs import OUTPUT_CODECS, Codec
from lightsplit.deployment.coordinator import Coordinator
from lightsplit.deployment.door import most_streams
from lightsplit.deployment.endpoint import Endpoint, open_line
from lightsplit.deployment.join_options import JoinOptions
from lightsplit.deployment.revocation_gate import RevocationGate
from lightsplit.deployment.worker import Source, Worker
from lightsplit.errors import ConfigError
from lightsplit.nesting import to_device
from lightsplit.protocol import STEP_KINDS, Contract, Expectation, Reader, Wire
from lightsplit.protocol.control import Finished
from lightsplit.runs.evaluation import EVALUATION_BATCH
from lightsplit.runs.guard import Guard
from lightsplit.runs.plan import RunPlan
from lightsplit.runtime import Client, ClientSide, Server, share_numbers
from lightsplit.runtime.side_bytes import most_side_bytes
from lightsplit.splitting import SplitModel
from lightsplit.transports.credentials import server_credentials
from lightsplit.transports.descriptors import make_room
from lightsplit.transports.grpc_server import SessionServer
from lightsplit.transports.revocation import Revocations


class HasWire(Protocol):
    """One end of a run."""

    @property
    def wire(self) -> Wire:
        """How it writes and reads messages."""
        ...


_TICK_SECONDS = 0.25


def make_contract(
    parts: SplitModel,
    codec: Codec,
    *,
    example: Any,
    clients: int,
    batch_size: int,
    **terms: object,
) -> Contract:
    """Return the contract for a split model, its shapes found by a dry run.

    ``example`` is a batch of inputs, of any nesting; its numbers do not matter.
    ``terms`` are further terms of Contract, such as ``seed`` or ``heads``; with wire
    formats ``format`` and ``rounding``, which are WireFormats' ``text`` and
    ``rounding_text``; with objectives or an output codec that have weights
    ``share_numbers``, if owners average a shared side.
    """
    modes = {module: module.training for module in parts.whole.modules()}
    parts.whole.eval()
    weight = next(parts.whole.parameters(), None)
    device = None if weight is None else weight.device
    with torch.no_grad():
        activation, output = parts.example_of(to_device(example, device))
    for module, mode in modes.items():
        module.training = mode
    known: dict[str, object] = {
        "model": type(parts.whole).__name__,
        "cut": "",
        "topology": "u" if parts.tail is not None else "vanilla",
        "heads": "shared",
        "codec": codec.name,
        "codec_options": {},
        "seed": 0,
        "turn_steps": 1,
        "metrics": ("accuracy",),
        "side_bytes": most_side_bytes(parts.head, parts.tail, codec.encoder),
    }
    contract = Contract(
        activation_shape=tuple(activation.shape[1:]),
        output_shape=tuple(output.shape[1:]),
        code_size=codec.code_size,
        fingerprint=codec.fingerprint,
        clients=clients,
        batch_size=batch_size,
        **{**known, **terms},  # type: ignore[arg-type]
    )
    if not contract.averages_side or contract.share_numbers:
        return contract
    side = ClientSide(*copy.deepcopy((parts.head, parts.tail)), codec)
    return replace(contract, share_numbers=share_numbers(side, contract))


def serve(  # noqa: PLR0913
    server: Server,
    contract: Contract,
    plan: RunPlan,
    endpoint: Endpoint,
    folder: Path,
    *,
    names: list[str] | None = None,
    watch: Callable[[Coordinator, int], bool] = lambda _run, _port: True,
    guard: Guard | None = None,
    stays: Callable[[int], bool] = lambda _steps: True,
) -> Coordinator:
    """Serve a run to its end and return its coordinator.

    Args:
        server: the same as in one process.
        contract: of the run.
        plan: of the run.
        endpoint: to listen on.
        folder: for checkpoints; the run resumes from the newest one in it.
        names: the clients that may join, in the order of their turns; None admits the
            first that come.
        watch: called a few times a second with the coordinator and the port, for the
            first time before any client is answered; when it returns false the run
            ends at the next boundary.
        guard: judges the clients.
        stays: called with the run's steps if the run was over before this server
            started; returns whether to stay for predictions. If not, the server waits
            only for clients that had not heard of the end.
    """
    endpoint.check()
    if plan.turn_steps != contract.turn_steps:
        raise ConfigError(
            f"expected a plan with turns of {contract.turn_steps} steps, as in the "
            f"contract, got {plan.turn_steps}"
        )
    make_room(plan.min_clients or contract.clients)
    coordinator = Coordinator(
        server,
        contract,
        plan,
        run=secrets.token_hex(16),
        folder=folder,
        names=names,
        guard=guard,
        stays=stays,
    )
    gate = _gate(coordinator, endpoint)
    listener = SessionServer(
        gate.open if gate is not None else coordinator.session,
        partial(Reader, make_expectation(contract, server)),
        credentials=server_credentials(endpoint.tls) if endpoint.tls else None,
        max_sessions=most_streams(contract.clients),
        refused=coordinator.refusals.count,
    )
    port = listener.bind(endpoint.address)
    try:
        watch(coordinator, port)
        listener.start()
        while True:
            if not watch(coordinator, port):
                coordinator.stop()
            if gate is not None:
                gate.sweep()
            if coordinator.wait(_TICK_SECONDS):
                break
        watch(coordinator, port)
    finally:
        listener.stop()
        coordinator.close()
    if coordinator.failure is not None:
        raise coordinator.failure
    return coordinator


def _gate(coordinator: Coordinator, endpoint: Endpoint) -> RevocationGate | None:
    """Return the gate that knows revoked certificates; plain text has none."""
    if endpoint.tls is None:
        return None
    revocations = Revocations(endpoint.tls.revoked, endpoint.tls.ca)
    return RevocationGate(revocations, coordinator.session)


def join(
    client: Client,
    contract: Contract,
    endpoint: Endpoint,
    *,
    name: str,
    batches: Callable[[int], Source],
    options: JoinOptions = JoinOptions(),  # noqa: B008  frozen
) -> Finished:
    """Take part in a run until it is over; the client then holds the last side.

    Args:
        client: as in one process; its ``send`` is replaced.
        contract: as this client understands it.
        endpoint: of the server.
        name: of the client, as in its certificate.
        batches: makes the client's batches from the index that the server gives it.
        options: of the client.
    """
    expectation = make_expectation(contract, client)
    worker = Worker(
        client,
        contract,
        name=name,
        connect=partial(open_line, endpoint, expectation),
        batches=batches,
        options=options,
    )
    return worker.run()


def make_expectation(contract: Contract, end: HasWire) -> Expectation:
    """Return the shapes that a run's messages may have, for all its connections."""
    wire, is_u = end.wire, contract.topology == "u"
    if is_u and wire.output_codec is None:  # whole outputs: the contract has the shape
        whole = OUTPUT_CODECS.create("raw", shape=contract.output_shape)
        wire = Wire(wire.codec, whole, wire.formats)
    layouts = {kind: partial(wire.layout, kind) for kind in STEP_KINDS}
    return Expectation(
        contract,
        layouts["code"],
        output=layouts["output"] if is_u else None,
        code_gradient=layouts["code_gradient"],
        output_gradient=layouts["output_gradient"] if is_u else None,
        evaluation_batch=EVALUATION_BATCH,
    )

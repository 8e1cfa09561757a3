"""``serve`` and ``join``: a networked run from Python, with any model and any loader.

    server:  serve(server, contract, plan, Endpoint("0.0.0.0:7443", tls), folder)
    client:  join(client, contract, Endpoint("host:7443", tls), name=…, batches=…)

Both sides build the contract from what they know (``make_contract``); any difference is
refused at the door.
"""

import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import torch

from lightsplit.codecs import Codec, Layout, TensorSpec
from lightsplit.errors import ConfigError, TransportError
from lightsplit.protocol import Contract, Expectation, Reader
from lightsplit.protocol.control import Finished, Grant
from lightsplit.runtime import Client, Server
from lightsplit.splitting import SplitModel
from lightsplit.training.coordinator import Coordinator
from lightsplit.training.evaluation import EVALUATION_BATCH, LabelledBatches
from lightsplit.training.guard import Guard
from lightsplit.training.plan import Plan
from lightsplit.training.worker import SideStore, Source, Worker
from lightsplit.transports import ByteMeter
from lightsplit.transports.credentials import (
    TlsFiles,
    channel_credentials,
    check_plain_text_allowed,
    server_credentials,
)
from lightsplit.transports.grpc_client import Connection
from lightsplit.transports.grpc_server import SessionServer
from lightsplit.transports.sealing import SealingKey

SPARE_SESSIONS = 8
_TICK_SECONDS = 0.25
_LAST_PORT = 65535
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Endpoint:
    """Where the server is and how the line to it is protected.

    Attributes:
        address: host:port.
        tls: certificate files of this end; None is plain text, which is refused off
            this machine unless ``insecure`` says that it is meant.
    """

    address: str
    tls: TlsFiles | None = None
    insecure: bool = False

    def check(self) -> None:
        """Refuse what is no address, and plain text where it is not meant."""
        _, colon, port = self.address.rpartition(":")
        if not (colon and port.isdecimal() and int(port) <= _LAST_PORT):
            raise ConfigError(
                f"expected host:port with a port up to {_LAST_PORT}, "
                f"got {self.address!r}"
            )
        if self.tls is None:
            check_plain_text_allowed(self.address, insecure=self.insecure)


def log_away(error: TransportError) -> None:
    """Log that the server could not be reached and will be tried again."""
    _LOG.warning("%s; trying again", error)


@dataclass(frozen=True)
class JoinOptions:
    """What a client may bring besides its batches.

    Attributes:
        key: of the hand-offs; needed with shared heads and more than one client.
        state_folder: where a side that does not travel is kept between turns.
        test: batches of a test set.
        reports: whether losses and accuracies are told to the server.
        give_up_seconds: how long to try to reach the server again.
        watch: is told of every order.
        away: is told each time that the server could not be reached and will be tried
            again; without it that is logged.
        meter: counts this client's bytes.
    """

    key: SealingKey | None = None
    state_folder: Path | None = None
    test: LabelledBatches | None = None
    reports: bool = True
    give_up_seconds: float = 600.0
    watch: Callable[[Grant | Finished], None] = field(default=lambda _order: None)
    away: Callable[[TransportError], None] = log_away
    meter: ByteMeter = field(default_factory=ByteMeter)


def make_contract(
    parts: SplitModel,
    codec: Codec,
    *,
    input_shape: tuple[int, ...],
    clients: int,
    batch_size: int,
    **terms: object,
) -> Contract:
    """Return the contract for a split model, its shapes found by a dry run.

    ``terms`` are further terms of Contract, such as ``seed`` or ``heads``; with wire
    formats ``format`` and ``rounding``, which are WireFormats' ``text`` and
    ``rounding_text``.
    """
    modes = {module: module.training for module in parts.whole.modules()}
    parts.whole.eval()
    weight = next(parts.whole.parameters(), None)
    device = None if weight is None else weight.device
    with torch.no_grad():
        activation = parts.head(torch.zeros(1, *input_shape, device=device))
        output = parts.backbone(activation)
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
    }
    return Contract(
        activation_shape=tuple(activation.shape[1:]),
        output_shape=tuple(output.shape[1:]),
        code_size=codec.code_size,
        fingerprint=codec.fingerprint,
        clients=clients,
        batch_size=batch_size,
        **{**known, **terms},  # type: ignore[arg-type]
    )


def serve(  # noqa: PLR0913
    server: Server,
    contract: Contract,
    plan: Plan,
    endpoint: Endpoint,
    folder: Path,
    *,
    names: list[str] | None = None,
    watch: Callable[[Coordinator, int], bool] = lambda _run, _port: True,
    guard: Guard | None = None,
) -> Coordinator:
    """Serve a run to its end and return its coordinator.

    ``folder`` takes the checkpoints; one that is there is gone on from. ``watch`` is
    called a few times a second with the coordinator and the port, the first time before
    any client is answered; when it returns false the run is ended at the next boundary.
    ``guard`` watches the clients.
    """
    endpoint.check()
    coordinator = Coordinator(
        server,
        contract,
        plan,
        run=secrets.token_hex(16),
        folder=folder,
        names=names,
        guard=guard,
    )
    listener = SessionServer(
        coordinator.session,
        partial(Reader, make_expectation(contract, server)),
        credentials=server_credentials(endpoint.tls) if endpoint.tls else None,
        max_sessions=2 * contract.clients + SPARE_SESSIONS,
    )
    port = listener.bind(endpoint.address)
    try:
        watch(coordinator, port)
        listener.start()
        while True:
            if not watch(coordinator, port):
                coordinator.stop()
            if coordinator.wait(_TICK_SECONDS):
                break
        watch(coordinator, port)
    finally:
        listener.stop()
        coordinator.close()
    return coordinator


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

    ``batches`` makes the client's batches once the server has said which index it has.
    """
    worker = Worker(
        client,
        contract,
        name=name,
        connect=partial(open_line, endpoint, make_expectation(contract, client)),
        batches=batches,
        key=options.key,
        store=SideStore(options.state_folder) if options.state_folder else None,
        test=options.test,
        reports=options.reports,
        watch=options.watch,
        away=options.away,
        meter=options.meter,
        give_up_seconds=options.give_up_seconds,
    )
    return worker.run()


def open_line(endpoint: Endpoint, expectation: Expectation) -> Connection:
    """Return a new connection to the server."""
    endpoint.check()
    credentials = channel_credentials(endpoint.tls) if endpoint.tls else None
    return Connection(endpoint.address, Reader(expectation), credentials)


def make_expectation(contract: Contract, end: Client | Server) -> Expectation:
    """Return what a run's messages may be; all its connections can share it."""
    codec, output, formats = end.side.codec, end.side.output_codec, end.formats

    def code_gradient(size: int) -> Layout:
        values = codec.layout(size).values
        return formats.gradient_layout("code_gradient", codec, values)

    def whole_output(size: int) -> Layout:
        if output is not None:
            return output.layout(size)
        return Layout(TensorSpec((size, *contract.output_shape)))

    def output_gradient(size: int) -> Layout:
        values = whole_output(size).values
        return formats.gradient_layout("output_gradient", output, values)

    is_u = contract.topology == "u"
    return Expectation(
        contract,
        lambda size: formats.layout("code", codec.layout(size)),
        output=(lambda size: formats.layout("output", whole_output(size)))
        if is_u
        else None,
        code_gradient=code_gradient,
        output_gradient=output_gradient if is_u else None,
        evaluation_batch=EVALUATION_BATCH,
    )

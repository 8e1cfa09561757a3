"""``connect``: the client's half of a model, as an ordinary module."""

import inspect
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from lightsplit.errors import ConfigError
from lightsplit.loops.agreement import Agreement, agree
from lightsplit.loops.connected import ConnectedModel
from lightsplit.loops.hosting import Host
from lightsplit.loops.line import LocalConnection, LoopLine
from lightsplit.loops.session import LoopSession
from lightsplit.protocol.control import Hello
from lightsplit.runtime import ClientSide, Secret
from lightsplit.splitting.loading import refuse_empty
from lightsplit.transports import Peer


def connect(  # noqa: PLR0913
    model: nn.Module,
    *,
    server: str | Host,
    name: str = "owner",
    certs: Path | str | None = None,
    insecure: bool = False,
    secret: Secret | Path | str | None = None,
    give_up_seconds: float = 600.0,
    **agreed: Any,
) -> ConnectedModel:
    """Return the client's half of ``model``: a module for a loop of your own.

    Calling it sends a code to the server and returns what the model returns;
    ``loss.backward()`` sends the gradient; a step of your optimizer lets the server
    update. In evaluation mode or under ``torch.no_grad()`` it predicts. It holds head
    and tail alone: let go of ``model``, and the rest of it is freed.

    Args:
        model: the same at both ends.
        server: ``host:port``, or a server in this process from ``host``.
        name: of this owner, as in its certificate.
        certs: folder with this owner's certificate; without it plain text, on this
            machine only.
        insecure: allows plain text beyond this machine.
        secret: seeds what this owner draws, or a file that keeps a random one. By
            default random with a server elsewhere, and the run's seed in one process.
        give_up_seconds: how long to try to reach the server again.
        agreed: what both ends must have alike: ``head_until``, ``tail_from``,
            ``example``, ``share``, ``codec``, ``codec_options``, ``wire``,
            ``batch_size``, ``max_tokens``, ``clients``, ``seed``, ``norm_limit``.

    Example:
        >>> import torch
        >>> from functools import partial
        >>> network = nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 3))
        >>> cut = dict(head_until="0", tail_from="2", example=torch.zeros(4, 8))
        >>> from lightsplit import host
        >>> sgd = partial(torch.optim.SGD, lr=0.1)
        >>> model = connect(network, server=host(network, optimizer=sgd, **cut), **cut)
        >>> optimizer = sgd(model.parameters())
        >>> loss = model(torch.rand(4, 8)).square().mean()
        >>> loss.backward()
        >>> optimizer.step()  # both halves have learned
    """
    agreement = agree(model, **agreed)
    refuse_empty(*agreement.parts.parts[::2])  # head and tail
    side = ClientSide(
        agreement.parts.head,
        agreement.parts.tail,
        agreement.codec,
        output_codec=agreement.output_codec,
    )
    is_local = isinstance(server, Host)
    hello = Hello(name, agreement.contract.to_json(), "loop")
    opened = (
        _local(server)
        if isinstance(server, Host)
        else _remote(server, agreement, name, certs, insecure=insecure)
    )
    line = LoopLine(opened, hello, give_up_seconds=give_up_seconds)
    chosen = _secret(secret, agreement.contract.seed, is_local=is_local)
    kind = _class_for(model)
    return kind(
        side, line, agreement.crossing, secret=chosen, formats=agreement.formats
    )


def _local(host: Host) -> Any:
    peer = Peer(None, lambda: None, lambda: True)
    loops = host.open()
    return lambda: LocalConnection(LoopSession(loops, peer))


def _remote(
    address: str,
    agreement: Agreement,
    name: str,
    certs: Path | str | None,
    *,
    insecure: bool,
) -> Any:
    from lightsplit.deployment.endpoint import Endpoint, open_line
    from lightsplit.deployment.network import make_expectation
    from lightsplit.transports.credentials import TlsFiles

    if not isinstance(address, str):
        raise ConfigError(
            "expected server='host:port' or what lightsplit.host returns, got "
            f"{type(address).__name__}"
        )
    tls = TlsFiles.of_client(Path(certs), name) if certs else None
    endpoint = Endpoint(address, tls, insecure)
    endpoint.check()
    expectation = make_expectation(agreement.contract, agreement)
    return partial(open_line, endpoint, expectation)


def _secret(secret: Secret | Path | str | None, seed: int, *, is_local: bool) -> Secret:
    if isinstance(secret, Secret):
        return secret
    if secret is not None:
        return Secret.kept(Path(secret))
    return Secret(seed) if is_local else Secret.random()


def _class_for(model: nn.Module) -> type[ConnectedModel]:
    """Return a class whose forward has the model's own parameters.

    Trainers look at them to decide what to pass.
    """

    def forward(self: ConnectedModel, *args: Any, **kwargs: Any) -> Any:
        return ConnectedModel.forward(self, *args, **kwargs)

    own = inspect.signature(type(model).forward)
    forward.__signature__ = own  # type: ignore[attr-defined]
    forward.__doc__ = type(model).forward.__doc__
    name = f"Connected{type(model).__name__}"
    return type(name, (ConnectedModel,), {"forward": forward})

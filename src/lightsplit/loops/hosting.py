"""The server's end of a loop: ``host`` in one process, ``Host.serve`` for a network."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from lightsplit.errors import ConfigError
from lightsplit.loops.agreement import Agreement, agree
from lightsplit.loops.loop_server import SAVE_EVERY, LoopServer
from lightsplit.loops.placing import DeviceMap, place
from lightsplit.loops.saves import KEPT_SAVES, Saves
from lightsplit.results.holding import Hold
from lightsplit.runtime import OptimizerFactory, ServerSide
from lightsplit.runtime.accumulating import AccumulatingServer
from lightsplit.splitting.loading import refuse_empty

_LOG = logging.getLogger(__name__)


class Host:
    """The server's half of a model, for clients that drive their own loops.

    Args:
        agreement: with the clients.
        server: adds up gradients.

    Attributes:
        loops: answers the clients; made by ``open``.
    """

    def __init__(self, agreement: Agreement, server: AccumulatingServer) -> None:
        self.agreement = agreement
        self.server = server
        self.loops: LoopServer | None = None

    def open(
        self,
        folder: Path | str | None = None,
        *,
        names: list[str] | None = None,
        save_every: int = SAVE_EVERY,
        keep_saves: int = KEPT_SAVES,
        step_timeout_seconds: float = 60.0,
    ) -> LoopServer:
        """Return what answers the clients; the first time, go on from a save.

        Args:
            folder: of the server's saves; None keeps the weights in memory alone.
            names: the clients that may come; None admits the first that come.
            save_every: updates between saves. Whenever a client saves its state, the
                server saves too.
            keep_saves: how many saves stay.
            step_timeout_seconds: the longest that others wait for one update.
        """
        if self.loops is None:
            contract = self.agreement.contract
            saves = Saves(Path(folder), contract.digest, keep_saves) if folder else None
            self.loops = LoopServer(
                self.server,
                contract,
                saves=saves,
                names=names,
                save_every=save_every,
                step_timeout_seconds=step_timeout_seconds,
            )
        return self.loops

    def serve(
        self,
        address: str,
        folder: Path | str,
        *,
        certs: Path | str | None = None,
        insecure: bool = False,
        watch: Callable[[LoopServer, int], bool] = lambda _loops, _port: True,
        **options: Any,
    ) -> LoopServer:
        """Serve clients over the network until ``watch`` returns false or Ctrl-C; save.

        Args:
            address: host:port to listen on; port 0 is any.
            folder: of the server's saves; the server continues from the newest. No
                other process may use the folder at the same time.
            certs: folder of certificates that ``lightsplit certs`` made; without it
                plain text, on this machine only.
            insecure: allows plain text beyond this machine.
            watch: called a few times a second with the object that answers the clients
                and with the port; the first call comes before any client is answered.
            options: of ``open``.
        """
        from lightsplit.loops.listening import listen

        if not folder:
            raise ConfigError("expected a folder for the server's saves, got none")
        with Hold(Path(folder)) as hold:
            loops = self.open(folder, **options)

            def watch_held(loops: LoopServer, port: int) -> bool:
                hold.take()  # the folder is made with the first save
                return watch(loops, port)

            try:
                listen(
                    loops,
                    self,
                    address,
                    certs=certs,
                    insecure=insecure,
                    watch=watch_held,
                )
            except KeyboardInterrupt:  # the usual way to stop
                loops.save()
                _LOG.warning("stopped and saved in %s", folder)
            finally:
                loops.save()
        return loops


def host(  # noqa: PLR0913
    model: nn.Module,
    *,
    optimizer: OptimizerFactory,
    device_map: DeviceMap | None = None,
    clip_norm: float | None = None,
    autocast: torch.dtype | None = None,
    freeze_backbone: bool = False,
    normalisation: str | None = None,
    **agreed: Any,
) -> Host:
    """Return the server's half of ``model``.

    Args:
        model: the same at both ends; the server trains its backbone.
        optimizer: makes the server's optimizer over parameters.
        device_map: devices by names of modules, for a backbone on several accelerators.
        clip_norm: the largest norm of the server's gradient; None does not clip.
        autocast: a type such as ``torch.bfloat16`` to compute in.
        freeze_backbone: whether the server's weights stay as they are.
        normalisation: whose running statistics its layers use: ``per-client``, which is
            the default with several owners, ``shared``, ``batch`` or ``frozen``.
        agreed: the settings of ``connect`` that both ends must have alike, from
            ``head_until`` to ``seed``.
    """
    if clip_norm is not None and not clip_norm > 0:
        raise ConfigError(
            f"clip_norm: expected more than 0, got {clip_norm:g}; leave it out to clip "
            "nothing"
        )
    agreement = agree(model, **agreed)
    refuse_empty(agreement.parts.backbone)
    if device_map is not None:
        place(agreement.parts.backbone, model, device_map)
    usual = "per-client" if agreement.contract.clients > 1 else "shared"
    side = ServerSide(
        agreement.parts.backbone,
        agreement.codec,
        optimizer,
        output_codec=agreement.output_codec,
        freeze_backbone=freeze_backbone,
        normalisation=normalisation or usual,
        crossing=agreement.crossing,
    )
    server = AccumulatingServer(
        side,
        clip_norm=clip_norm,
        autocast=autocast,
        seed=agreement.contract.seed,
        formats=agreement.formats,
        norm_limit=agreement.contract.norm_limit,
    )
    return Host(agreement, server)

"""The head as the run's seed draws it, taken for the victim's.

    the run's seed ─► head and encoder before the first step ─► codes of public images
                                                                       │
    the victim's codes ─► scaled like these ─► linear MMSE, or a decoder, fitted to them

Nobody helps this server: it has images of the same kind and the contract, which holds
the seed. A client that draws its first weights from the seed hides nothing at the first
step, and training moves a head only so far. With ``client_secret`` the head is drawn
from elsewhere, which is all that the server can do if the client draws from a secret of
its own (docs/threat-model.md).

Running statistics of the head are not drawn but measured, so the attack measures them
with its own images.
"""

import copy
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from lightsplit.attacks.base import ATTACKS, Kind, Progress, silent
from lightsplit.attacks.capabilities import Reconstructs
from lightsplit.attacks.decoder import EFFORTS
from lightsplit.attacks.decoder_training import decode, train_decoder
from lightsplit.attacks.knowledge import LabelledImages, Pairs
from lightsplit.attacks.linear import fit_linear
from lightsplit.attacks.view import ServerView
from lightsplit.part_facts import PartFacts

ENOUGH_CODES = 30  # to tell the scale of their values
CHUNK = 512


@ATTACKS.register("first-weights")
class FirstWeights(Reconstructs):
    """Inversion of the head that the run's seed gives, fitted to public images.

    Attributes:
        client_secret: whether the client draws from a secret, so that the server has to
            draw a head of its own.
        decoder: whether to train a decoder in place of the linear estimate.
    """

    name = "first-weights"
    kind: ClassVar[Kind] = "unaided"
    runs_by_default = True
    truths = ("image", "table")
    needs = ("auxiliary", "first_client")
    threat_model = "a server with samples of the same kind that knows the run's seed"
    cost = "one linear system of min(images, code size) unknowns; seconds"
    facts = PartFacts(
        source="LightSplit",
        assumes="the run's seed, and samples of the same kind",
        status="ours",
    )

    def __init__(
        self,
        *,
        auxiliary: LabelledImages,
        first_client: Callable[[bool], nn.Module],
        client_secret: bool = False,
        decoder: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.images = auxiliary.images
        self.truth = "image" if self.images.ndim == 4 else "table"
        self.first_client = first_client
        self.client_secret = client_secret
        self.decoder = decoder

    def reconstruct(self, view: ServerView, progress: Progress = silent) -> Tensor:
        """Return an image for every code."""
        pairs = self._pairs()
        codes = scaled_like(view.codes, pairs.codes)
        if not self.decoder:
            progress(1, 1)
            return fit_linear(pairs.codes, pairs.images, seed=self.seed)(codes)
        effort = EFFORTS[self.budget]
        trained = train_decoder(pairs, effort, seed=self.seed, progress=progress)
        self.converged = trained.is_converged
        return decode(trained.network, codes)

    def _pairs(self) -> Pairs:
        """Return the images with the codes that the first head would give them."""
        client = measured(self.first_client(self.client_secret), self.images)
        with torch.no_grad():
            codes = torch.cat(
                [client(part) for part in torch.split(self.images, CHUNK)]
            )
        return Pairs(codes, codes, self.images, self.truth)


def measured(client: nn.Module, images: Tensor) -> nn.Module:
    """Return a copy whose running statistics are those of the images."""
    client = copy.deepcopy(client).eval()
    for module in client.modules():
        if isinstance(module, _BatchNorm) and module.track_running_stats:
            module.reset_running_stats()
            module.momentum = None  # the mean over all batches
            module.train()
    with torch.no_grad():
        for part in torch.split(images, CHUNK):
            client(part)
    return client.eval()


def scaled_like(codes: Tensor, known: Tensor) -> Tensor:
    """Return codes with the mean and deviation of known ones, value by value.

    The first steps of training change above all these. A few codes do not tell them
    and are left as they are.
    """
    if len(codes) < ENOUGH_CODES:
        return codes
    spread = codes.std(dim=0).clamp_min(1e-6 + 0.01 * float(codes.std()))
    centred = (codes - codes.mean(dim=0)) / spread
    return centred * known.std(dim=0) + known.mean(dim=0)

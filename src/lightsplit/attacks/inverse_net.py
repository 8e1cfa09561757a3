"""The black-box inversion of He, Zhang and Lee, as they published it.

"Model inversion attacks against collaborative inference", ACSAC 2019.

    published   code ──lifted by R──► inverse network ─► image
    adaptive    code ──a lift that is learnt──► inverse network ─► image

A small network of transposed convolutions learns from pairs, by squared error alone:
Adam with AMSGrad and an epsilon of 1e-3, batches of 32, a rate of 1e-3 that halves
after every 20 epochs, 50 epochs. ``decoder`` is the same idea without these limits: it
is wider, has an SSIM term in its loss, and trains until more steps do not help.

Where we differ: pixels are in [0, 1] and are not normalised; batches are shuffled.
Without a codec both forms are the same.
"""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from lightsplit.attacks.auxiliary import EndlessRows
from lightsplit.attacks.base import ATTACKS, Budget, Kind, Progress, at_least, silent
from lightsplit.attacks.capabilities import Reconstructs
from lightsplit.attacks.inverse_networks import CodeInverter, doublings
from lightsplit.attacks.knowledge import Pairs
from lightsplit.attacks.view import ServerView
from lightsplit.part_facts import PartFacts
from lightsplit.seeding import scope

EPOCHS: dict[Budget, int] = {"quick": 10, "short": 25, "full": 50}
BATCH = 32
LEARNING_RATE = 1e-3
HALVED_AFTER = 20  # epochs
EPSILON = 1e-3
CHUNK = 256
HE = "He, Zhang, Lee, ACSAC 2019"


@ATTACKS.register("inverse-net")
class InverseNet(Reconstructs):
    """The published inverse network, trained on true pairs by squared error.

    Attributes:
        epochs: over the pairs; by default 10 (quick), 25 (short) or the published 50.
        lr: the first rate.
    """

    name = "inverse-net"
    kind: ClassVar[Kind] = "published"
    forms = ("published", "adaptive")
    needs: ClassVar[tuple[str, ...]] = ("pairs",)
    threat_model = "a server that may query the client's head with images of its own"
    cost = "quick: 10 passes over the pairs, full: 50, by a small network"
    facts = PartFacts(
        source=HE,
        assumes="queries to the head with images of the same kind",
        status="faithful",
    )

    @classmethod
    def check_shapes(cls, activation: tuple[int, ...], image: tuple[int, ...]) -> None:
        """Raise AuditError unless transposed convolutions lead to an image."""
        doublings(cls.name, activation, image)

    def __init__(
        self,
        *,
        pairs: Pairs,
        epochs: int | None = None,
        lr: float = LEARNING_RATE,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        at_least(self.name, 1, epochs=epochs)
        at_least(self.name, 0, lr=lr)
        self.pairs = pairs
        self.epochs = epochs or EPOCHS[self.budget]
        self.lr = lr
        if self.epochs < EPOCHS["full"]:
            self.notes.append(f"{self.epochs} of the published 50 epochs")

    def reconstruct(self, view: ServerView, progress: Progress = silent) -> Tensor:
        """Return an image for every code."""
        with scope(self.seed, self.name):
            network = CodeInverter(
                self.name,
                view.codec,
                tuple(self.pairs.images.shape[1:]),
                learns_lift=self.form == "adaptive",
            ).to(self.pairs.codes.device)
            self._train(network, progress)
        return inverted(network, view.codes)

    def _train(self, network: nn.Module, progress: Progress) -> None:
        codes, images = self.pairs.codes, self.pairs.images
        optimizer = torch.optim.Adam(
            network.parameters(), lr=self.lr, eps=EPSILON, amsgrad=True
        )
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, HALVED_AFTER, gamma=0.5)
        batches = EndlessRows(len(codes), self.seed)
        steps = max(1, len(codes) // BATCH)
        for epoch in range(self.epochs):
            for _ in range(steps):
                rows = batches.next(min(BATCH, len(codes)))
                loss = mse_loss(network(codes[rows]), images[rows])
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
            schedule.step()
            progress(epoch + 1, self.epochs)


def inverted(network: nn.Module, codes: Tensor) -> Tensor:
    """Return a trained network's image for every code."""
    network.eval()
    with torch.no_grad():
        return torch.cat([network(some) for some in torch.split(codes, CHUNK)])

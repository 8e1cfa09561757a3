"""Search among plausible images for one that has the observed code.

    auxiliary images ─► prior (image_prior.py)
    code ─► search for a latent (latent_search.py) ─► prior(latent)

White-box inversion takes any image that has the code, and a code of few bits has very
many. A prior leaves the plausible ones. Codes of floats are searched by gradients, as
in compressed sensing with generative models (Bora et al., ICML 2017) and in GMI (Zhang
et al., CVPR 2020); codes of few bits without gradients, by nevergrad. Each distinct
code is searched once: the same code gives the same image.

What may surprise: its images look real, whatever the code says. Only figures that
compare with the originals count, re-identification and the lead over the class mean.
"""

import copy
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from lightsplit.attacks.base import ATTACKS, Budget, Kind, Progress, at_least, silent
from lightsplit.attacks.capabilities import Reconstructs
from lightsplit.attacks.image_descent import code_error
from lightsplit.attacks.image_prior import ImagePrior, train_prior
from lightsplit.attacks.knowledge import LabelledImages
from lightsplit.attacks.latent_search import by_gradient, without_gradient
from lightsplit.attacks.view import ServerView
from lightsplit.codecs import FewBits
from lightsplit.part_facts import PartFacts

LATENT = 24
STARTS = 2  # of a search by gradients
FIRST_TRIALS = 10  # of a search without: latents of the known images with nearest codes
CHUNK = 512


class Effort(NamedTuple):
    """Steps of the prior's training and of a search, and trials of another search."""

    prior_steps: int
    steps: int
    trials: int


EFFORTS: dict[Budget, Effort] = {
    "quick": Effort(1_000, 200, 300),
    "short": Effort(4_000, 500, 1_000),
    "full": Effort(16_000, 1_500, 3_000),
}


@ATTACKS.register("prior-search")
class PriorSearch(Reconstructs):
    """The image of a generative prior whose code is nearest to the observed one.

    Its options are by default those of the budget: ``prior_steps`` of the prior's
    training, ``steps`` of a search by gradients, ``trials`` of one without.

    Attributes:
        latent: values of a latent.
    """

    name = "prior-search"
    kind: ClassVar[Kind] = "oracle"
    needs = ("client", "auxiliary")
    threat_model = "a server that holds the client's true head, and images of the kind"
    cost = "a small autoencoder, and 400 passes of head and encoder (quick) per code"
    facts = PartFacts(
        source="after Bora et al., ICML 2017; Zhang et al., CVPR 2020",
        assumes="the true weights of the head, and images",
        status="adapted",
    )

    def __init__(
        self,
        *,
        client: nn.Module,
        auxiliary: LabelledImages,
        latent: int = LATENT,
        prior_steps: int | None = None,
        steps: int | None = None,
        trials: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        given = {"prior_steps": prior_steps, "steps": steps, "trials": trials}
        at_least(self.name, 1, latent=latent, **given)
        chosen = {name: value for name, value in given.items() if value is not None}
        self.effort = EFFORTS[self.budget]._replace(**chosen)
        self.client = client
        self.images = auxiliary.images
        self.latent = latent

    def reconstruct(self, view: ServerView, progress: Progress = silent) -> Tensor:
        """Return the image that was found for every code."""
        client = copy.deepcopy(self.client).eval().requires_grad_(False)
        prior = train_prior(
            self.images,
            latent=self.latent,
            steps=self.effort.prior_steps,
            seed=self.seed,
            progress=progress,
        )
        shape = view.codes.shape[1:]
        flat, row_of = torch.unique(view.codes.flatten(1), dim=0, return_inverse=True)
        codes = flat.view(-1, *shape)
        is_bits = isinstance(view.codec, FewBits)
        search = self._freely if is_bits else self._by_gradient
        latents = search(client, prior, codes)
        with torch.no_grad():
            images: Tensor = prior(latents)
            error = code_error(client(images), codes)
        how = "without gradients" if is_bits else "by gradients"
        self.notes.append(
            f"{len(codes):,} distinct codes searched {how}; relative squared error of "
            f"the code {float(error.mean()):.1e}, {int((error < 1e-6).sum()):,} fit"
        )
        progress(1, 1)
        return images[row_of]

    def _by_gradient(
        self, client: nn.Module, prior: ImagePrior, codes: Tensor
    ) -> Tensor:
        found = [
            by_gradient(
                lambda latents: client(prior(latents)),
                some,
                self._starts(client, prior, some, STARTS),
                self.effort.steps,
            )
            for some in torch.split(codes, CHUNK)
        ]
        return torch.cat(found)

    def _freely(self, client: nn.Module, prior: ImagePrior, codes: Tensor) -> Tensor:
        def coded(latents: Tensor) -> Tensor:
            with torch.no_grad():
                made: Tensor = client(prior(latents))
                return made

        starts = self._starts(client, prior, codes, FIRST_TRIALS)
        return without_gradient(
            coded, codes, starts, self.effort.trials, seed=self.seed
        )

    def _starts(
        self, client: nn.Module, prior: ImagePrior, codes: Tensor, count: int
    ) -> Tensor:
        """Return latents of the known images with the nearest codes (count, N, L)."""
        latents = prior.latents_of(self.images)
        with torch.no_grad():
            chunks = torch.split(latents, CHUNK)
            known = torch.cat([client(prior(chunk)) for chunk in chunks])
        distances = torch.cdist(codes.flatten(1), known.flatten(1))
        nearest = distances.topk(min(count, len(latents)), largest=False).indices
        return latents[nearest].transpose(0, 1)

"""White-box inversion with a prior: a decoder's image, improved by the true head.

    pairs ─► decoder ─► x₀ ─┬─► x₀ itself
                            ├─► descent on ‖client(x) − z̃‖² + NEAR · ‖x − x₀‖², in
                            │   several strengths, whole or mixed with x₀
                            └─► a descent that was learnt (learned_descent.py)

The decoder knows what images look like; the true client knows what the code says about
this one. A colluding client has both: it made the pairs with the head that it shares.
Which way is best depends on the code, so the attack tries all of them on pairs that the
decoder did not learn from, and uses the best one. The decoder's own image is one of the
ways, and a way must be no worse in both squared error and SSIM. So, apart from chance
in the held-out pairs, knowing the head as well never makes the attack weaker. (Before,
one fixed descent lost 0.05 of SSIM to the decoder at 32x.)
"""

import copy
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import mse_loss

from lightsplit.attacks.base import ATTACKS, Budget, Kind, Progress, at_least, silent
from lightsplit.attacks.decoder import DecoderAttack
from lightsplit.attacks.decoder_base import CodeDecoder
from lightsplit.attacks.decoder_loss import SIMILARITY, similarity
from lightsplit.attacks.decoder_training import decode
from lightsplit.attacks.image_descent import Descent, code_error, descend
from lightsplit.attacks.knowledge import ClientCopy, Pairs
from lightsplit.attacks.learned_descent import train_descent
from lightsplit.attacks.linear import held_out_split
from lightsplit.attacks.view import ServerView

CLOSER_STEPS = 300
RATE = 0.03
NEARS = (1.0, 3.0, 10.0)
TVS = (0.01, 0.1)
SHARES = (1.0, 0.5, 0.25)  # of the descent's image, mixed with the decoder's
LEARNT_STEPS: dict[Budget, int] = {"quick": 500, "short": 2_000, "full": 8_000}
MOST_TRIED = 256  # held-out pairs
CHUNK = 256  # images solved together
DECODER = "the decoder alone"

Way = Callable[[Tensor, Tensor], Tensor]  # codes and the decoder's images


class _Score(NamedTuple):
    """How far images are from the truth."""

    error: float
    likeness: float

    @property
    def loss(self) -> float:
        return self.error + SIMILARITY * (1 - self.likeness)

    def is_no_worse_than(self, other: "_Score") -> bool:
        return self.error <= other.error and self.likeness >= other.likeness


@ATTACKS.register("refined-decoder")
class RefinedDecoder(DecoderAttack):
    """The decoder's image, improved by the true head in the way that works best.

    Its options are those of ``decoder``, and:

    Attributes:
        closer_steps: of a descent.
        learnt_steps: in which another descent is learnt; by default the budget's.
        near: the weight of staying near the decoder's image; by default several.
        tv: the weight of TV; by default several.
    """

    name = "refined-decoder"
    kind: ClassVar[Kind] = "oracle"
    runs_by_default = False
    truths = ("image",)
    needs = ("pairs", "client")
    threat_model = "a server whose accomplice shares the victim's head and has images"
    cost = (
        "that of decoder, 300 passes of head and encoder per image, and 500 (quick) to "
        "8,000 steps of a learned descent"
    )

    def __init__(
        self,
        *,
        client: ClientCopy,
        closer_steps: int = CLOSER_STEPS,
        learnt_steps: int | None = None,
        near: float | None = None,
        tv: float | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        at_least(self.name, 1, closer_steps=closer_steps, learnt_steps=learnt_steps)
        at_least(self.name, 0, near=near, tv=tv)
        self.client = client
        self.closer_steps = closer_steps
        self.learnt_steps = learnt_steps or LEARNT_STEPS[self.budget]
        self.nears = NEARS if near is None else (near,)
        self.tvs = TVS if tv is None else (tv,)

    def reconstruct(self, view: ServerView, progress: Progress = silent) -> Tensor:
        """Return the image of the best way for every code."""
        network = self.train(progress).network
        client = copy.deepcopy(self.client).eval().requires_grad_(False)
        improve = self._best_way(client, network)
        images, errors = [], []
        for codes in torch.split(view.codes, CHUNK):
            start = decode(network, codes)
            images.append(improve(codes, start))
            with torch.no_grad():
                ends = [code_error(client(x), codes) for x in (start, images[-1])]
            errors.append(torch.stack(ends))
        before, after = torch.cat(errors, dim=1).mean(dim=1).tolist()
        self.notes.append(
            f"relative squared error of the code {before:.1e} by the decoder, "
            f"{after:.1e} in the end"
        )
        return torch.cat(images)

    def _best_way(self, client: ClientCopy, network: CodeDecoder) -> Way:
        """Return the way with the lowest loss that is no worse than the decoder."""
        known = self.pairs.part(slice(self.effort.most_pairs))
        fitting, held_out = held_out_split(len(known.codes), seed=self.seed)
        tried = known.part(held_out[:MOST_TRIED])
        start = decode(network, tried.codes)
        best, lowest = DECODER, _score(start, tried)
        plain, chosen = lowest, _as_it_was
        ways = self._ways(client, network, known.images[fitting])
        for name, (way, shares) in ways.items():
            end = torch.cat(
                [
                    way(codes, some)
                    for codes, some in zip(
                        torch.split(tried.codes, CHUNK),
                        torch.split(start, CHUNK),
                        strict=True,
                    )
                ]
            )
            for share in shares:
                found = _score(start + share * (end - start), tried)
                if found.is_no_worse_than(plain) and found.loss < lowest.loss:
                    best, lowest = f"{name}, {share:.0%}", found
                    chosen = partial(_mixed, way, share)
        self.notes.append(
            f"chosen on {len(tried.codes)} held-out pairs: {best}; squared error "
            f"{plain.error:.4f} by the decoder, {lowest.error:.4f} in the end; SSIM "
            f"{plain.likeness:.4f}, {lowest.likeness:.4f}"
        )
        return chosen

    def _ways(
        self, client: ClientCopy, network: CodeDecoder, images: Tensor
    ) -> dict[str, tuple[Way, tuple[float, ...]]]:
        """Return the ways to improve the decoder's images, with shares to mix."""
        ways: dict[str, tuple[Way, tuple[float, ...]]] = {}
        for near in self.nears:
            for tv in self.tvs:
                descent = Descent(self.closer_steps, RATE, tv, near=near)
                name = f"descent (near {near:g}, TV {tv:g})"
                ways[name] = partial(_descended, client, descent), SHARES
        learnt = train_descent(
            client, network, images, steps=self.learnt_steps, seed=self.seed
        )
        ways["learned descent"] = partial(_applied, learnt), (1.0,)
        return ways


def _score(images: Tensor, pairs: Pairs) -> _Score:
    error = float(mse_loss(images, pairs.images))
    return _Score(error, float(similarity(images, pairs.images)))


def _as_it_was(_codes: Tensor, start: Tensor) -> Tensor:
    return start


def _mixed(way: Way, share: float, codes: Tensor, start: Tensor) -> Tensor:
    return start + share * (way(codes, start) - start)


def _descended(
    client: ClientCopy, descent: Descent, codes: Tensor, start: Tensor
) -> Tensor:
    return descend(client, codes, start, descent, lambda: None)


def _applied(learnt: Way, codes: Tensor, start: Tensor) -> Tensor:
    with torch.no_grad():
        return learnt(codes, start)

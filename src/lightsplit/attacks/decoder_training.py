"""A decoder trained on pairs until more steps no longer help.

    pairs ─┬─ nine tenths ─► train in rounds; each round doubles the steps so far
           └─ one tenth ───► score after each round: stop when it rose by ENOUGH at most

A decoder that was cut short makes a code look private, so the result says whether it
had converged. Each round anneals the learning rate, so a decoder whose steps ran out is
as good as that many steps allow.
"""

import copy
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from lightsplit.attacks.base import Progress
from lightsplit.attacks.decoder_base import CodeDecoder
from lightsplit.attacks.decoder_networks import build_image_decoder
from lightsplit.attacks.knowledge import Pairs
from lightsplit.attacks.linear import held_out_split
from lightsplit.attacks.row_decoder import build_row_decoder
from lightsplit.attacks.token_decoder import build_token_decoder
from lightsplit.seeding import scope

BATCH = 32
LEARNING_RATE = 3e-3
WEIGHT_DECAY = 1e-4
ENOUGH = 0.005  # a rise that another round would halve, and so on: 0.01 in all
CHECKS = 5  # scores on the held-out pairs in a round
CHUNK = 512

BUILDERS: dict[str, Callable[..., CodeDecoder]] = {
    "image": build_image_decoder,
    "table": build_row_decoder,
    "text": build_token_decoder,
}


class Effort(NamedTuple):
    """The effort of a decoder.

    Attributes:
        most_pairs: to learn from.
        steps: of a batch, in the first round.
        most_steps: in all rounds.
        width: of the network.
        blocks: of the network.
        lr: the highest rate of each round.
    """

    most_pairs: int
    steps: int
    most_steps: int
    width: int
    blocks: int
    lr: float = LEARNING_RATE

    def doubled(self) -> "Effort":
        """Return twice the width and twice the steps."""
        return self._replace(
            width=2 * self.width, steps=2 * self.steps, most_steps=2 * self.most_steps
        )


class TrainedDecoder(NamedTuple):
    """A decoder, its score on held-out pairs, and how it got there.

    Attributes:
        network: with the weights that did best on the held-out pairs.
        similarity: the network's own score there, such as SSIM.
        steps: of a batch that it has learnt from.
        gain: of the score by the second half of these steps; None if there was one
            round.
    """

    network: CodeDecoder
    similarity: float
    steps: int
    gain: float | None

    @property
    def is_converged(self) -> bool:
        """Whether doubling the steps hardly helped."""
        return self.gain is not None and self.gain <= ENOUGH

    @property
    def parameters(self) -> int:
        """The number of trained weights."""
        return sum(weight.numel() for weight in self.network.parameters())


def train_decoder(
    pairs: Pairs, effort: Effort, *, seed: int, progress: Progress
) -> TrainedDecoder:
    """Return a decoder that was trained until more steps no longer help."""
    rows = slice(effort.most_pairs)
    fitting, held_out = held_out_split(len(pairs.codes[rows]), seed=seed)
    with scope(seed, "decoder"):
        run = _Run(pairs.part(fitting), pairs.part(held_out), effort, seed)
        gain = None
        for total in _totals(effort):
            before = run.best
            run.train_to(total, progress)
            if before > float("-inf"):
                gain = run.best - before
                if gain <= ENOUGH:
                    break
    progress(1, 1)
    return TrainedDecoder(run.kept, run.best, run.steps, gain)


def decode(network: CodeDecoder, codes: Tensor) -> Tensor:
    """Return the decoder's guess for every code."""
    network.eval()
    with torch.no_grad():
        chunks = torch.split(codes, CHUNK)
        return torch.cat([network.guess(network(chunk)) for chunk in chunks])


def _totals(effort: Effort) -> Iterator[int]:
    """Yield the number of steps after each round: doubled, up to the most."""
    total = min(effort.steps, effort.most_steps)
    while total < effort.most_steps:
        yield total
        total *= 2
    yield effort.most_steps


class _Run:
    """The training of one decoder, which can be continued."""

    def __init__(self, seen: Pairs, unseen: Pairs, effort: Effort, seed: int) -> None:
        self._seen = seen
        self._unseen = unseen
        self._effort = effort
        width, blocks = effort.width, effort.blocks
        build = BUILDERS[seen.kind]
        self._network = build(seen, width=width, blocks=blocks, seed=seed)
        self.kept = self._network
        self.best = float("-inf")
        self.steps = 0

    def train_to(self, total: int, progress: Progress) -> None:
        """Train until ``total`` steps are done; keep the best weights."""
        count = total - self.steps
        check = max(1, count // CHECKS)
        for done in self._descend(count):
            self.steps += 1
            progress(self.steps, self._effort.most_steps)
            if done % check == 0 or done == count:
                self._keep_if_better()

    def _keep_if_better(self) -> None:
        guesses = decode(self._network, self._unseen.codes)
        found = self._network.score(guesses, self._unseen.images)
        if found > self.best:
            self.kept, self.best = copy.deepcopy(self._network), found

    def _descend(self, steps: int) -> Iterator[int]:
        """Train on random batches; yield the number of steps done after each step."""
        network, seen, lr = self._network, self._seen, self._effort.lr
        optimizer = torch.optim.AdamW(
            network.parameters(), lr=lr, weight_decay=WEIGHT_DECAY
        )
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, lr, total_steps=steps + 1, pct_start=0.2
        )
        for step in range(1, steps + 1):
            rows = torch.randint(len(seen.codes), (BATCH,))
            network.train()
            output = network(seen.codes[rows], network.folds[rows])
            loss = network.loss(output, seen.images[rows])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
            yield step

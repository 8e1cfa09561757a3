"""The scene of an audit of an owner's folder: what it sent, attacked as it was sent.

    newest steps ─┬─ attacked   their codes, as the server got them; the owner's own
                  │             samples of these steps are the truth
                  └─ pairs      codes of other samples, with these samples

Nobody else's samples are there, so an attacker's knowledge is made of the owner's own:
samples of the same kind, none of them attacked. Label inference gets all messages of
the newest steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lightsplit.attacks import Knowledge, LabelledImages, Pairs, ServerView
from lightsplit.attacks.view import read_code, readable
from lightsplit.audits import scoring
from lightsplit.audits.attacking import Scene
from lightsplit.audits.exhibits import make_exhibits
from lightsplit.audits.gathering import (
    TrueClient,
    give_hints,
    make_pairs,
    public_knowledge,
    true_client,
)
from lightsplit.audits.observation import joined
from lightsplit.audits.options import AuditOptions
from lightsplit.audits.owner import Owner
from lightsplit.audits.plan import TRAINING_SAMPLES
from lightsplit.audits.victim import Known, as_known
from lightsplit.errors import AuditError
from lightsplit.results import RunFolder
from lightsplit.transports import tape

FEWEST_PAIRS = 10


@dataclass(frozen=True, eq=False)
class RecordedStep:
    """The exchanges of one training step, and the samples that it was about.

    Attributes:
        step: its number.
        rows: which of the owner's samples.
        places: of its exchanges, in their order.
    """

    step: int
    rows: tuple[int, ...]
    places: tuple[tape.Place, ...]


def set_joined_scene(
    owner: Owner, options: AuditOptions, folder: RunFolder, data_dir: Path | None = None
) -> Scene:
    """Lay open what an owner recorded."""
    return _Stage(owner, options).scene(folder, scoring.lpips_weights(data_dir))


class _Stage:
    """The recorded steps, divided into those under attack and the others."""

    def __init__(self, owner: Owner, options: AuditOptions) -> None:
        self._owner = owner
        self._options = replace(options, client=owner.index)
        self._truth = owner.experiment.make_task().find_truth()
        self._steps = recorded_steps(owner)
        self._attacked = self._choose()

    def scene(self, folder: RunFolder, weights: Path | None) -> Scene:
        """Return the scene."""
        shown = self._shown()
        targets = _together([self._known(one) for one in self._attacked])
        labels = joined([self._owner.true_labels(one.step) for one in shown])
        judge = scoring.Judge(self._truth, targets.images, targets.labels, weights)
        knowledge = self._knowledge(targets)
        return Scene(
            options=self._options,
            view=self._view(shown),
            knowledge=give_hints(knowledge, labels, seed=self._options.seed),
            judge=judge,
            labels=labels,
            exhibits=make_exhibits(folder.images, judge),
            remarks=(self._remark(),),
        )

    def _choose(self) -> list[RecordedStep]:
        """Return the newest steps with enough samples, but half of all at most."""
        known = {row for one in self._steps for row in one.rows}
        wanted = min(self._options.target_count, len(known) // 2)
        chosen: list[RecordedStep] = []
        count = 0
        for one in reversed(self._steps):
            if count >= wanted and chosen:
                break
            chosen.insert(0, one)
            count += len(one.rows)
        return chosen

    def _shown(self) -> list[RecordedStep]:
        """Return the steps of the view: those under attack, and enough for labels."""
        count = len(self._attacked)
        samples = sum(len(one.rows) for one in self._attacked)
        while count < len(self._steps) and samples < TRAINING_SAMPLES:
            count += 1
            samples += len(self._steps[-count].rows)
        return self._steps[-count:]

    def _view(self, shown: Sequence[RecordedStep]) -> ServerView:
        return ServerView(
            contract=self._owner.contract,
            wire=self._owner.wire,
            exchanges=tuple(
                self._owner.read(place) for one in shown for place in one.places
            ),
            attacked_steps=tuple(one.step for one in self._attacked),
        )

    def _knowledge(self, targets: LabelledImages) -> Knowledge:
        if self._options.auxiliary_from == "test":
            known, pairs = self._from_test()
        else:
            known, pairs = self._from_recording()
        owner = self._owner
        public = public_knowledge(
            owner.experiment,
            owner.contract,
            known,
            targets,
            sent_labels=joined([owner.batch(one.step)[1] for one in self._attacked]),
            seed=self._options.seed,
        )
        reason = f"{owner.path} holds no trained side of this owner"
        reasons = {**public.reasons, "client": reason}
        return replace(public, pairs=pairs, client=self._client, reasons=reasons)

    def _from_recording(self) -> tuple[LabelledImages, Pairs]:
        """Return other samples of the owner with their codes as they were sent."""
        used = {row for one in self._attacked for row in one.rows}
        found: list[tuple[Known, Tensor, Tensor]] = []
        count = 0
        for one in reversed(self._steps):
            fresh = [at for at, row in enumerate(one.rows) if row not in used]
            used |= set(one.rows)
            if fresh and count < self._options.auxiliary_count:
                found.append(self._known_codes(one, torch.tensor(fresh)))
                count += len(fresh)
        if count < FEWEST_PAIRS:
            raise AuditError(
                f"the recording holds codes of {count} samples besides those under "
                f"attack, fewer than {FEWEST_PAIRS}: record more steps, or attack "
                "fewer samples with --images"
            )
        knowns, codes, activations = zip(*found, strict=True)
        known = _together(knowns)
        pairs = Pairs(
            torch.cat(codes), torch.cat(activations), known.images, self._truth.kind
        )
        return known, pairs

    def _known(self, one: RecordedStep) -> Known:
        """Return the samples of a step, with their true labels."""
        inputs, _ = self._owner.batch(one.step)
        return as_known(self._truth, inputs, self._owner.true_labels(one.step))

    def _known_codes(
        self, one: RecordedStep, at: Tensor
    ) -> tuple[Known, Tensor, Tensor]:
        """Return some samples of a step, their codes and their activations."""
        whole = self._known(one)
        code = read_code(self._owner.read(one.places[0]).request, self._owner.wire)  # type: ignore[arg-type]
        codes = readable(self._owner.wire.codec, code)
        activations = codes
        if self._client is not None:
            with torch.no_grad():
                activations = self._client.activate(whole.inputs)
        mine = Known(whole.images[at], _rows_of(whole.labels, at), whole.inputs)
        return mine, codes[at], activations[at]

    def _from_test(self) -> tuple[LabelledImages, Pairs]:
        """Return the owner's test samples with the codes that its head gives them."""
        if self._client is None:
            raise AuditError(
                f"{self._owner.path} holds no trained side of this owner, so nobody "
                "can make codes of its test samples; use --auxiliary-from others"
            )
        parts = [as_known(self._truth, *batch) for batch in self._owner.data.test]
        made = [make_pairs(self._client, one, self._truth.kind) for one in parts]
        known, most = _together(parts), slice(self._options.auxiliary_count)
        pairs = Pairs(
            torch.cat([one.codes for one in made]),
            torch.cat([one.activations for one in made]),
            known.images,
            self._truth.kind,
        )
        return LabelledImages(known.images[most], known.labels[most]), pairs.part(most)

    @cached_property
    def _client(self) -> TrueClient | None:
        side = self._owner.side
        return None if side is None else true_client(side, self._owner.experiment)

    def _remark(self) -> str:
        first, last = self._attacked[0].step + 1, self._attacked[-1].step + 1
        source = self._options.auxiliary_from
        others = "test samples" if source == "test" else "other training samples"
        return (
            f"codes as this owner sent them in its steps {first} to {last}; the "
            f"attacker knows this owner's {others}, and not the server's weights, "
            "which are not in an owner's folder"
        )


def recorded_steps(owner: Owner) -> list[RecordedStep]:
    """Return the complete steps in a recording, each once, in their order.

    A step that was repeated counts as it was sent last.
    """
    is_u = owner.contract.topology == "u"
    has_gradient = is_u and owner.contract.gradients != "none"
    codes: dict[int, tape.Place] = {}
    whole: dict[int, tuple[tape.Place, ...]] = {}
    for place in owner.places:
        if place.what == tape.CODE:
            codes[place.step] = place
            whole.pop(place.step, None)
            if not has_gradient:
                whole[place.step] = (place,)
        elif place.what == tape.GRADIENT and place.step in codes:
            whole[place.step] = (codes[place.step], place)
    if not whole:
        raise AuditError(f"the recording in {owner.path} holds no complete step")
    return [
        RecordedStep(step, tuple(owner.batches.rows(step).tolist()), found)
        for step, found in whole.items()
    ]


def _together(parts: Sequence[LabelledImages]) -> LabelledImages:
    images = torch.cat([one.images for one in parts])
    return LabelledImages(images, joined([one.labels for one in parts]))


def _rows_of(labels: Any, at: Tensor) -> Any:
    """Return the labels of some samples; labels of any nesting are left out."""
    return labels[at] if isinstance(labels, Tensor) else torch.zeros(len(at)).long()

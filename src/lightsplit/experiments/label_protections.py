"""The label protections of an experiment, and the labels that clients train on."""

from typing import TYPE_CHECKING

from lightsplit.data import SampleSet, ShiftedLabels
from lightsplit.errors import ConfigError
from lightsplit.protections import LABEL_PROTECTIONS, LabelProtection
from lightsplit.randomised_response import kept
from lightsplit.runtime import Secret

if TYPE_CHECKING:
    from lightsplit.experiments.config import Experiment


def make_protections(experiment: "Experiment") -> list[LabelProtection]:
    """Return the experiment's label protections, in its order."""
    if not experiment.protect_labels:
        return []
    classes = experiment.make_task().class_count
    return [
        LABEL_PROTECTIONS.create(name, classes=classes, **options)
        for name, options in experiment.protect_labels.items()
    ]


def with_drawn_labels(
    experiment: "Experiment", samples: SampleSet, secret: Secret
) -> SampleSet:
    """Return the samples with the labels that a client trains on.

    The draws depend on the secret and on a sample's place, not on the client's number:
    a server that gives a client another number gets no second draw.
    """
    for protection in make_protections(experiment):
        with secret.scope("labels", protection.name):
            shifts = protection.draw_shifts(len(samples))
        if shifts.any():
            samples = ShiftedLabels(samples, shifts, protection.classes)
    return samples


def label_promise(experiment: "Experiment") -> dict[str, float | None]:
    """Return what is promised about labels: ε, and how often a guess can be right."""
    found = [p for p in make_protections(experiment) if p.epsilon is not None]
    epsilon = min((p.epsilon for p in found if p.epsilon is not None), default=None)
    bound = None if epsilon is None else kept(epsilon, found[0].classes)
    return {"label_epsilon": epsilon, "label_bound": bound}


def check_protections(experiment: "Experiment") -> None:
    """Refuse protections that do not suit the task or have nothing to protect."""
    split = experiment.split
    for protection in make_protections(experiment):
        if not protection.protects_gradients:
            continue
        reasons = {
            "the server has the labels (topology vanilla)": split.topology == "vanilla",
            "no gradient is sent (gradients none)": split.gradients == "none",
            "nothing is sent (codec none)": experiment.codec.name == "none",
            "it does not work on codes that are sent once (release once)": (
                experiment.sends_once
            ),
        }
        for reason, holds in reasons.items():
            if holds:
                raise ConfigError(
                    f"{protection.name} protects output gradients, but {reason}: "
                    "drop one of the two"
                )

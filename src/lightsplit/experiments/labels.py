"""An experiment in a few words; each part provides its own.

Reports and folder names use these texts and need no list of settings: a new part or
option appears in them without a change here.
"""

import re
from collections.abc import Mapping
from typing import Any

from lightsplit.experiments import parts
from lightsplit.experiments.config import Experiment
from lightsplit.experiments.presets import usual_wire
from lightsplit.experiments.tables import ObjectiveTable

Labels = dict[str, str]


def labels(experiment: Experiment) -> Labels:
    """Return the texts that a report shows.

    ``task``: the task; ``setting``: the cut, the owners and the backdoor; ``method``:
    the codec and the objectives, with every option that tells variants apart;
    ``schedule``: the length of the run.
    """
    return {
        "task": experiment.make_task().name,
        "setting": " · ".join(_setting(experiment)),
        "method": method(experiment),
        "schedule": ", ".join(_schedule(experiment)),
    }


def method(experiment: Experiment) -> str:
    """Return the codec, the objectives and the wire settings."""
    words = [parts.label("codec", experiment.codec.name, experiment.codec.options)]
    words += [_objective(name, term) for name, term in experiment.objective.items()]
    words += [_protection(*one) for one in experiment.protect_labels.items()]
    words += _release(experiment)
    return " ".join([*words, *_wire(experiment)])


def _release(experiment: Experiment) -> list[str]:
    """Return that codes are sent once, if they are."""
    epochs = experiment.training.local_epochs
    return [f"once after {epochs} local epochs"] if experiment.sends_once else []


def _objective(name: str, term: ObjectiveTable) -> str:
    """Return an objective with its weight right behind its name."""
    first, *others = parts.label("objective", name, term.options).split(" ")
    return " ".join([f"{first}={parts.number_text(term.weight)}", *others])


def _protection(name: str, options: Mapping[str, Any]) -> str:
    return parts.label("protect_labels", name, options)


def slug(experiment: Experiment) -> str:
    """Return a name for the run's folder."""
    task = experiment.make_task()
    words = [task.name, _place(experiment), method(experiment), *_owners(experiment)]
    words += _backdoor(experiment)
    text = "-".join([*words, f"s{experiment.seed}"]).lower()
    return re.sub(r"[^a-z0-9.+]+", "-", text.replace("=", "")).strip("-")


def _setting(experiment: Experiment) -> list[str]:
    words = [place] if (place := _place(experiment)) else []
    words += _owners(experiment)
    words += ["frozen backbone"] if experiment.split.freeze_backbone else []
    words += ["frozen client"] if experiment.split.freeze_client else []
    words += _statistics(experiment)
    return [*words, *_backdoor(experiment)]


def _statistics(experiment: Experiment) -> list[str]:
    """Return the kind of statistics, where it is not the usual one."""
    kind = experiment.server.statistics
    usual = experiment.changed(server={"statistics": None}).statistics
    return [] if kind in (None, usual) else [f"{kind} statistics"]


def _place(experiment: Experiment) -> str:
    """Return the place of the cut: its name, or its modules if it has none."""
    split = experiment.split
    if split.head_until is None and split.tail_from is None:
        return split.cut or ""
    task = experiment.make_task()
    return f"{task.head_until} to {task.tail_from}"


def _owners(experiment: Experiment) -> list[str]:
    owners = experiment.owners
    alpha = "IID" if owners.alpha == "iid" else f"Dirichlet {owners.alpha:g}"
    words = [owners.heads, f"n={owners.clients}", alpha]
    return [*words, *(["vanilla"] if experiment.split.topology == "vanilla" else [])]


def _wire(experiment: Experiment) -> list[str]:
    """Return the preset and the settings that differ from it; "paper" stays unnamed."""
    wire, output = experiment.wire, experiment.output_codec
    usual = usual_wire(experiment, experiment.make_task())
    words = [f"wire {wire.preset}"] if wire.preset is not None else []
    words += [wire.format] if wire.format != usual.wire.format else []
    if wire.rounding != usual.wire.rounding:
        words.append(f"rounding {wire.rounding}")
    if wire.hand_off != usual.wire.hand_off:
        words.append(f"hand-off {wire.hand_off}")
    if wire.hand_off_optimizer != usual.wire.hand_off_optimizer:
        words.append(f"optimizer {wire.hand_off_optimizer}")
    if output != usual.output_codec:
        label = parts.label("output_codec", output.name, output.options)
        words.append(f"output {label}")
    return words


def _backdoor(experiment: Experiment) -> list[str]:
    backdoor = experiment.backdoor
    if backdoor is None:
        return []
    who = backdoor.malicious_clients or f"{backdoor.malicious:g}"
    return [f"{backdoor.trigger} μ={who} p={backdoor.poison_ratio:g}"]


def _schedule(experiment: Experiment) -> list[str]:
    training, limit = experiment.training, experiment.task.train_limit
    words = [f"{training.epochs} epoch{'' if training.epochs == 1 else 's'}"]
    words += [f"{limit:,} samples"] if limit else []
    words += [f"{training.max_steps:,} steps"] if training.max_steps else []
    words += [] if training.lr_schedule == "constant" else [training.lr_schedule]
    words += [parts.label("augment", *one) for one in experiment.augment.items()]
    return words

"""Checks of an experiment as a whole: settings that do not go together."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from lightsplit.backdoors import TRIGGERS, check_company
from lightsplit.codecs import CODECS
from lightsplit.errors import ConfigError
from lightsplit.experiments.label_protections import check_protections
from lightsplit.experiments.private_codes import check_dp
from lightsplit.experiments.recipes import make_recipe

if TYPE_CHECKING:
    from lightsplit.experiments.config import Experiment


def _check_training(experiment: "Experiment") -> None:
    training = experiment.training
    if training.momentum and training.optimizer != "sgd":
        raise ConfigError(
            f"momentum is an option of sgd only, got optimizer {training.optimizer}"
        )


def _check_recipe(experiment: "Experiment") -> None:
    training = experiment.training
    make_recipe(training)
    if training.accumulate == 1:
        return
    turn = training.turn_steps
    if turn != "epoch" and turn % training.accumulate:
        raise ConfigError(
            "gradients accumulate within a turn: turn_steps must be epoch or a "
            f"multiple of accumulate, {training.accumulate}, got {turn}"
        )
    if experiment.inspector:
        raise ConfigError(
            "an inspector probes single steps: accumulate must be 1 with an "
            f"inspector, got {training.accumulate}"
        )


def _check_evaluation(experiment: "Experiment") -> None:
    if (experiment.owners.heads, experiment.owners.evaluate) == ("private", "one"):
        raise ConfigError(
            "with private heads every client has a model of its own to test: evaluate "
            "must be every, got one"
        )


def _check_output_codec(experiment: "Experiment") -> None:
    name = experiment.output_codec.name
    if experiment.split.topology == "vanilla" and name != "raw":
        raise ConfigError(
            "no output crosses the wire in vanilla training: output_codec must be "
            f"raw, got {name!r}"
        )


def _check_backdoor(experiment: "Experiment") -> None:
    backdoor = experiment.backdoor
    if backdoor is not None:
        TRIGGERS.get(backdoor.trigger)
        experiment.malicious_indices()
    if experiment.server.hijack and (experiment.detector or backdoor):
        raise ConfigError("a hijacking server takes no trigger or detector: drop them")


def _check_detectors(experiment: "Experiment") -> None:
    on_flag, wire = experiment.guard.on_flag, experiment.wire
    check_company(list(experiment.detector))
    if not experiment.detector and on_flag != "warn":
        raise ConfigError(
            f"on_flag {on_flag} needs a detector; name one with --detector"
        )
    hand_off = (wire.hand_off, wire.hand_off_optimizer)
    if on_flag == "skip" and hand_off != ("fp32", "travels"):
        raise ConfigError(
            "the rounding of a hand-off, and an optimizer that stays, cannot be "
            "undone: on_flag skip needs hand_off fp32 and hand_off_optimizer travels, "
            f"got {' and '.join(hand_off)}"
        )
    trusted = experiment.trusted_client() or 0
    if not 0 <= trusted < experiment.owners.clients:
        raise ConfigError(
            f"trusted_client must be from 0 to {experiment.owners.clients - 1}, "
            f"got {trusted}"
        )


def _check_inspectors(experiment: "Experiment") -> None:
    if len(experiment.inspector) > 1:
        names = ", ".join(experiment.inspector)
        raise ConfigError(f"a client can have only one inspector, got {names}")


def _check_silence(experiment: "Experiment") -> None:
    """Refuse what needs messages where none are sent."""
    if experiment.codec.name != "none":
        return
    if experiment.split.topology == "vanilla":
        raise ConfigError(
            "codec none sends nothing, so the client needs the labels: topology must "
            "be u, got vanilla"
        )
    others = [*experiment.detector, *experiment.inspector, *experiment.attack]
    if others or experiment.server.hijack:
        names = ", ".join(others) or "hijack"
        raise ConfigError(f"codec none sends nothing to watch or attack: drop {names}")


def _check_gradients(experiment: "Experiment") -> None:
    """Refuse what needs gradients where none are sent."""
    if experiment.split.gradients == "all":
        return
    if experiment.split.topology == "vanilla":
        raise ConfigError(
            "without gradients the client needs the labels: topology must be u, "
            "got vanilla"
        )
    others = [*experiment.detector, *experiment.inspector]
    if others or experiment.server.hijack:
        names = ", ".join(others) or "hijack"
        raise ConfigError(f"gradients none leaves nothing to watch: drop {names}")


def _check_trained_before(experiment: "Experiment") -> None:
    """Refuse an untrained codec, and settings that would train it in the run."""
    name = experiment.codec.name
    if not getattr(CODECS.get(name), "is_trained_before", False):
        return
    if not experiment.codec.options.get("trained"):
        raise ConfigError(
            f"codec {name} is trained before the run: give trained=FILE, which "
            "lightsplit distil writes"
        )
    if experiment.split.gradients == "all":
        raise ConfigError(
            f"no gradient comes back to codec {name}, which is trained before the run: "
            "gradients must be none, got all"
        )
    if experiment.sends_once:
        raise ConfigError(
            f"codec {name} was trained for a head that stays as it is, and codes that "
            "are sent once begin with local epochs: drop release"
        )


def _check_release(experiment: "Experiment") -> None:
    """Refuse what does not go with codes that are sent once."""
    if not experiment.sends_once:
        if experiment.training.local_epochs is not None:
            raise ConfigError(
                "local_epochs are those before codes are sent once: give --release "
                "once too, or drop it"
            )
        return
    if experiment.codec.name == "none":
        raise ConfigError("codec none sends nothing, so not once either: drop release")
    if experiment.split.topology == "vanilla":
        raise ConfigError(
            "where codes are sent once the labels stay with the client: topology must "
            "be u, got vanilla"
        )
    if experiment.split.freeze_client:
        raise ConfigError(
            "where codes are sent once the client trains its head before: drop "
            "freeze_client or release"
        )
    _check_fixed_codes(experiment)
    others = [*experiment.detector, *experiment.inspector]
    if others or experiment.server.hijack:
        names = ", ".join(others) or "hijack"
        raise ConfigError(
            "where codes are sent once no gradient comes back to a head, and no step "
            f"has a code: drop {names}"
        )


def _check_fixed_codes(experiment: "Experiment") -> None:
    """Refuse what would make a second, different code of a sample."""
    if experiment.augment or experiment.make_task().augment:
        raise ConfigError(
            "augmentation changes a sample in every step, and its code is sent once: "
            "train without augmentation, or with a code in every step"
        )
    if experiment.backdoor is not None:
        raise ConfigError(
            "a trigger is planted anew in every step, and a code is sent once: drop "
            "the backdoor"
        )
    if experiment.make_task().share:
        names = ", ".join(experiment.make_task().share)
        raise ConfigError(
            f"the server needs {names} with every code, and where codes are sent once "
            "it keeps codes alone: choose a cut that shares no input"
        )
    hand_off, heads = experiment.wire.hand_off, experiment.owners.heads
    if heads == "shared" and hand_off != "fp32":
        raise ConfigError(
            "a frozen head must arrive as it left: hand_off must be fp32 where codes "
            f"are sent once, got {hand_off}"
        )


def _check_rounds(experiment: "Experiment") -> None:
    """Refuse settings that rounds do not support."""
    if not experiment.has_rounds:
        return
    wanted = {
        "gradients none": experiment.split.gradients == "none",
        "release once": experiment.sends_once,
        "codec none": experiment.codec.name == "none",
        "statistics per-client": experiment.statistics == "per-client",
        "a hijacking server": experiment.server.hijack,
        "encrypted predictions": experiment.server.encrypted,
        f"detector {', '.join(experiment.detector)}": bool(experiment.detector),
        f"inspector {', '.join(experiment.inspector)}": bool(experiment.inspector),
        f"hand_off {experiment.wire.hand_off}": experiment.wire.hand_off != "fp32",
        "hand_off_optimizer stays": experiment.wire.hand_off_optimizer == "stays",
    }
    if experiment.is_parallel:
        _refuse("a parallel round", wanted | _unfit_to_join(experiment))
    else:
        heads = experiment.owners.heads
        _refuse("a round of SplitFed", {f"heads {heads}": heads == "private"} | wanted)


def _unfit_to_join(experiment: "Experiment") -> dict[str, bool]:
    """Return the features that a joined batch rules out, and whether each is used."""
    steps, accumulate = experiment.training.turn_steps, experiment.training.accumulate
    if steps != 1 or accumulate != 1:
        raise ConfigError(
            "a parallel round is one batch of every owner and one update: turn_steps "
            f"and accumulate must be 1, got {steps} and {accumulate}"
        )
    return {
        "topology vanilla": experiment.split.topology == "vanilla",
        "inputs that the server gets": bool(experiment.make_task().share),
    }


def _refuse(what: str, wanted: dict[str, bool]) -> None:
    unfit = [name for name, is_wanted in wanted.items() if is_wanted]
    if unfit:
        raise ConfigError(
            f"{what} does not go with {' or with '.join(unfit)}: drop that, or take "
            "--rounds turns"
        )


def _check_drawn(experiment: "Experiment") -> None:
    """Refuse to draw the owners of a round in runs where each has its turn."""
    if experiment.owners.owners_per_round and not experiment.has_rounds:
        raise ConfigError(
            "in turns every owner has its own: owners_per_round needs rounds parallel "
            f"or splitfed, got {experiment.owners.rounds} of "
            f"{experiment.owners.clients} owners"
        )


def check_absence(experiment: "Experiment", min_clients: int | None) -> None:
    """Refuse absent owners in runs that need every owner."""
    if min_clients is None:
        return
    if min_clients < 1:
        raise ConfigError(f"--min-clients: expected 1 or more, got {min_clients}")
    if not experiment.has_rounds:
        raise ConfigError(
            "in turns every owner is awaited: --min-clients needs --rounds parallel "
            "or splitfed"
        )
    is_own = experiment.is_splitfed and experiment.training.turn_steps == "epoch"
    if is_own:
        raise ConfigError(
            "an owner that is away when the run begins has not said how many batches "
            "its epoch has: --min-clients needs a number of --turn-steps, got epoch"
        )


def _check_encrypted(experiment: "Experiment") -> None:
    """Refuse settings that encrypted codes do not support."""
    if not experiment.server.encrypted:
        return
    if experiment.wire.format != "fp32":
        raise ConfigError(
            "encrypted codes are rounded by no wire format: format must be fp32, got "
            f"{experiment.wire.format}"
        )
    if experiment.sends_once or experiment.codec.name == "none":
        raise ConfigError(
            "encrypted prediction sends a code for each prediction: drop release once "
            "and codec none"
        )
    if experiment.make_task().share:
        names = ", ".join(experiment.make_task().share)
        raise ConfigError(f"the server would get {names} in the clear: drop encrypted")


CHECKS: "tuple[Callable[[Experiment], None], ...]" = (
    _check_training,
    _check_recipe,
    _check_evaluation,
    _check_output_codec,
    _check_backdoor,
    _check_detectors,
    _check_inspectors,
    _check_silence,
    _check_gradients,
    _check_trained_before,
    _check_release,
    _check_encrypted,
    _check_rounds,
    _check_drawn,
    check_protections,
    check_dp,
)

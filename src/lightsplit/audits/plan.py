"""The plan of an audit: its attacks, each in a form and with its options."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args

from lightsplit.attacks import (
    ATTACKS,
    Attack,
    InfersLabels,
    Kind,
    Observes,
    find_attack,
)
from lightsplit.audits.options import EVERY_ATTACK, AuditOptions
from lightsplit.errors import AuditError, ConfigError
from lightsplit.part_options import (
    Options,
    Value,
    check_options,
    parse_part,
    write_part,
)
from lightsplit.protocol import Contract
from lightsplit.tasks import Task

TRAINING_SAMPLES = 1024  # of further training, whose messages label inference sees


@dataclass(frozen=True)
class Planned:
    """One attack that an audit is to run.

    Attributes:
        attack: its class.
        form: one of the attack's forms.
        given: the options that a user gave it, as pairs.
    """

    attack: type[Attack]
    form: str = ""
    given: tuple[tuple[str, Value], ...] = ()

    @property
    def options(self) -> Options:
        """The options that a user gave it."""
        return dict(self.given)


def plan(options: AuditOptions) -> list[Planned]:
    """Return the attacks to run; the trivial ones are always among them, and first."""
    chosen = {write_part(name, given): (name, given) for name, given in _asked(options)}
    planned = [
        one
        for _, (name, given) in sorted(chosen.items())
        for one in _in_its_forms(name, given, options)
    ]
    order = get_args(Kind)
    return sorted(planned, key=lambda one: order.index(one.attack.kind))


def looks_at_messages(attack: type[Attack]) -> bool:
    """Return whether the attack infers labels from the messages of the last steps.

    An attack that observes does not: it gives its labels when training is over. An
    attack that needs pairs does not, because pairs are made when training is over.
    """
    infers = issubclass(attack, InfersLabels) and not issubclass(attack, Observes)
    return infers and "pairs" not in attack.needs


def watches(attack: type[Attack]) -> bool:
    """Return whether the attack has anything to do while training goes on."""
    return issubclass(attack, Observes) or looks_at_messages(attack)


def expected(options: AuditOptions, *, during: bool) -> list[Planned]:
    """Return the attacks of the plan that run during training, or after it.

    During training those run that watch. Trivial attacks run beside attacks that
    observe, to compare their images with.
    """
    planned = plan(options)
    observing = [one for one in planned if issubclass(one.attack, Observes)]
    if not during:
        for one in observing:
            if options.names(one.attack.name):
                raise ConfigError(
                    f"{one.attack.name} learns in training: use --during, in a sweep "
                    "file during = true"
                )
        return [one for one in planned if one not in observing]
    watching = [one for one in planned if watches(one.attack)]
    if not watching:
        raise ConfigError(
            "--during: name an attack that learns or infers labels in training"
        )
    beside = [one for one in planned if observing and one.attack.kind == "trivial"]
    return [*beside, *(one for one in watching if one not in beside)]


def suited(
    planned: list[Planned], options: AuditOptions, task: Task, contract: Contract
) -> list[Planned]:
    """Return the attacks that can be built for the run.

    An attack that does not fit is left out, unless it was asked for by its name: then
    its reason is raised.
    """
    return [
        one
        for one in planned
        if _fits(one.attack, task, contract, is_named=options.names(one.attack.name))
    ]


def _asked(options: AuditOptions) -> Iterator[tuple[str, Options]]:
    """Yield the attacks that run unasked, then those that were asked for by name."""
    for name in ATTACKS.names():
        if _runs_unasked(find_attack(name), options):
            yield name, {}
    yield from (parse_part(text) for text in options.attacks if text != EVERY_ATTACK)


def _runs_unasked(attack: type[Attack], options: AuditOptions) -> bool:
    if attack.kind == "trivial" or EVERY_ATTACK in options.attacks:
        return True
    return attack.runs_by_default and not options.attacks


def _in_its_forms(name: str, given: Options, options: AuditOptions) -> list[Planned]:
    """Return the attack once for each form, or refuse its name or its options."""
    attack = find_attack(name)
    supplied = attack.given_arguments()
    checked = check_options("attack", name, attack, given, given=supplied)
    pairs = tuple(sorted(checked.items()))
    return [Planned(attack, form, pairs) for form in _forms(attack, options)]


def _fits(
    attack: type[Attack], task: Task, contract: Contract, *, is_named: bool
) -> bool:
    truth = task.find_truth()
    try:
        if truth.kind not in attack.truths:
            raise AuditError(
                f"{attack.name} works on {' and '.join(attack.truths)} tasks; the "
                f"samples of {task.name} are {truth.things}"
            )
        attack.check_shapes(contract.activation_shape, truth.shape)
    except AuditError:
        if is_named:
            raise
        return False
    return True


def _forms(attack: type[Attack], options: AuditOptions) -> tuple[str, ...]:
    if len(attack.forms) == 1 or options.form == "both":
        return attack.forms
    return tuple(form for form in attack.forms if form == options.form)

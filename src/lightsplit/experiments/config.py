"""An experiment: tables in, one frozen and validated object out.

    experiment.toml ─┐
    flags ───────────┴─► tables ──resolved, checked by each part──► Experiment

Settings that follow from others are filled in, so that a stored file is complete and
repeats the run. A setting without a value is absent.
"""

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import BaseModel, ValidationError

from lightsplit.backdoors import DETECTORS, draw_malicious
from lightsplit.codecs import CODECS
from lightsplit.errors import ConfigError
from lightsplit.experiments import parts
from lightsplit.experiments.checks import CHECKS
from lightsplit.experiments.presets import resolve_wire
from lightsplit.experiments.settings import FIELDS, old_form, to_tables
from lightsplit.experiments.tables import (
    BackdoorTable,
    GuardTable,
    ObjectiveTable,
    OwnersTable,
    Part,
    ServerTable,
    SplitTable,
    TaskTable,
    TrainingTable,
    WireTable,
)
from lightsplit.experiments.tasks import load_task, task_options
from lightsplit.registry import unknown_name
from lightsplit.results.settings import flatten
from lightsplit.tasks import Task

Tables = dict[str, Any]
Options = dict[str, Any]
DEFAULT_CODEC = "lightsplit-f"
DEFAULT_MALICIOUS = 0.1
DEFAULT_LOCAL_EPOCHS = 5


@dataclass(frozen=True, eq=False)
class Experiment:
    """The complete description of one run; defaults are the paper's if it has any."""

    task: TaskTable
    split: SplitTable
    codec: Part
    output_codec: Part
    wire: WireTable
    training: TrainingTable
    owners: OwnersTable
    guard: GuardTable
    server: ServerTable
    augment: dict[str, Options] = field(default_factory=dict)
    objective: dict[str, ObjectiveTable] = field(default_factory=dict)
    protect_labels: dict[str, Options] = field(default_factory=dict)
    detector: dict[str, Options] = field(default_factory=dict)
    backdoor: BackdoorTable | None = None
    inspector: dict[str, Options] = field(default_factory=dict)
    attack: dict[str, Options] = field(default_factory=dict)

    @property
    def seed(self) -> int:
        """The run's seed."""
        return self.training.seed

    @property
    def sends_once(self) -> bool:
        """Whether the code of each sample is sent once."""
        return self.split.release == "once"

    @property
    def is_parallel(self) -> bool:
        """Whether all owners compute at once and their batches are joined."""
        return self.owners.rounds == "parallel"

    @property
    def is_splitfed(self) -> bool:
        """Whether owners average weights after rounds; a lone owner takes turns."""
        return self.owners.rounds.startswith("splitfed") and self.owners.clients > 1

    @property
    def has_rounds(self) -> bool:
        """Whether the run has rounds, in which owners do not hand a side on."""
        return self.is_parallel or self.is_splitfed

    @property
    def releases(self) -> int:
        """How often the code of a training sample is sent."""
        return 1 if self.sends_once else self.training.epochs

    @property
    def statistics(self) -> str:
        """Whose running statistics the server's normalisation layers use."""
        is_apart = self.owners.heads == "private" and not self.is_parallel
        usual = "per-client" if is_apart else "shared"
        return self.server.statistics or usual

    def make_task(self) -> Task:
        """Return the task, with the cut that this experiment names."""
        return load_task(self.task, self.split)

    def malicious_indices(self) -> tuple[int, ...]:
        """Return the sorted numbers of malicious clients; none without a trigger."""
        if self.backdoor is None:
            return ()
        return draw_malicious(
            self.backdoor.malicious_clients or self.backdoor.malicious or 0,
            clients=self.owners.clients,
            spared=self.trusted_client(),
            seed=self.seed,
        )

    def trusted_client(self) -> int | None:
        """Return the client that a detector trusts, if one does."""
        for name, options in self.detector.items():
            trusted: int | None = DETECTORS.get(name).trusted(options)  # type: ignore[attr-defined]
            if trusted is not None:
                return trusted
        return None

    def tables(self) -> Tables:
        """Return every setting that has a value, in its table."""
        found = {part.name: _plain(getattr(self, part.name)) for part in fields(self)}
        return {name: table for name, table in found.items() if table}

    def settings(self) -> dict[str, Any]:
        """Return every setting that has a value, under its short name."""
        return flatten(self.tables())

    def changed(self, **tables: Mapping[str, Any]) -> "Experiment":
        """Return the experiment with some settings replaced, and none derived anew."""
        made = {
            name: getattr(self, name).model_copy(update=dict(changes))
            for name, changes in tables.items()
        }
        return replace(self, **made)

    def to_toml(self) -> str:
        """Return the text of an experiment file that describes this experiment."""
        return tomli_w.dumps(self.tables())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Experiment) and self.tables() == other.tables()

    def __hash__(self) -> int:
        return hash(json.dumps(self.tables(), sort_keys=True))


STATIC = {name: table for name, table in FIELDS.items() if name != "backdoor"}


def make_experiment(tables: Mapping[str, Any]) -> Experiment:
    """Return the experiment that the tables of an experiment file describe."""
    _check_tables(tables)
    static = _parse_static(tables)
    experiment = Experiment(
        codec=_part("codec", tables, DEFAULT_CODEC),
        output_codec=_part("output_codec", tables, "raw"),
        objective=_objectives(tables),
        protect_labels=_options("protect_labels", tables),
        detector=_options("detector", tables),
        augment=_options("augment", tables),
        inspector=_options("inspector", tables),
        attack=_options("attack", tables),
        backdoor=_backdoor(tables.get("backdoor")),
        **static,  # type: ignore[arg-type]
    )
    experiment = _resolve(experiment, tables)
    for check in CHECKS:
        check(experiment)
    return experiment


def from_settings(settings: Mapping[str, Any]) -> Experiment:
    """Return the experiment described by settings under short or dotted names."""
    return make_experiment(to_tables(settings))


def read_experiment(path: Path) -> Tables:
    """Return the tables of an experiment file, before their settings are validated."""
    tables = read_toml(path)
    try:
        _check_tables(tables)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    return tables


def read_toml(path: Path) -> Tables:
    """Return the content of a TOML file."""
    try:
        tables = tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not a TOML file: {error}") from error
    return tables


def _check_tables(tables: Mapping[str, Any]) -> None:
    known = [part.name for part in fields(Experiment)]
    for name, table in tables.items():
        if not isinstance(table, Mapping):
            raise ConfigError(old_form(name, table))
        if name not in known:
            raise ConfigError(unknown_name("table", name, known))


def _parse_static(tables: Mapping[str, Any]) -> dict[str, BaseModel]:
    """Return the tables with fixed settings; report all mistakes at once."""
    parsed: dict[str, BaseModel] = {}
    problems = []
    for name, table in STATIC.items():
        try:
            parsed[name] = _parse(name, table, tables.get(name, {}))
        except ConfigError as error:
            problems.append(str(error))
    if problems:
        raise ConfigError("; ".join(problems))
    return parsed


def _parse(name: str, table: type[BaseModel], content: Mapping[str, Any]) -> BaseModel:
    if table.model_config.get("extra") != "allow":
        for key in content:
            if key not in table.model_fields:
                known = list(table.model_fields)
                raise ConfigError(unknown_name(f"setting of [{name}]", key, known))
    try:
        return table.model_validate(dict(content))
    except ValidationError as error:
        sentences = (_sentence(name, problem) for problem in _distinct(error))
        raise ConfigError("; ".join(sentences)) from error


def _part(table: str, tables: Mapping[str, Any], default: str) -> Part:
    content = {"name": default, **tables.get(table, {})}
    part = _parse(table, Part, content)
    assert isinstance(part, Part)  # noqa: S101  for mypy
    return part


def _objectives(tables: Mapping[str, Any]) -> dict[str, ObjectiveTable]:
    """Return the terms of the clients' loss; a weight of 0 only measures a term."""
    found = {}
    for name, content in _named("objective", tables):
        term = _parse(f"objective.{name}", ObjectiveTable, content)
        assert isinstance(term, ObjectiveTable)  # noqa: S101  for mypy
        options = parts.checked("objective", name, term.options)
        found[name] = ObjectiveTable(weight=term.weight, **options)
    return found


def _options(table: str, tables: Mapping[str, Any]) -> dict[str, Options]:
    found = {}
    for name, content in _named(table, tables):
        own = parts.checked(table, name, content)
        found[name] = own if table == "attack" else parts.defaults(table, name) | own
    return found


def _named(
    table: str, tables: Mapping[str, Any]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each part of a table of tables with its own table."""
    for name, content in tables.get(table, {}).items():
        if not isinstance(content, Mapping):
            raise ConfigError(
                f"[{table}] holds a table for each {table}: expected "
                f"[{table}.{name}], got {name} = {content!r}"
            )
        yield name, content


def _backdoor(content: Mapping[str, Any] | None) -> BackdoorTable | None:
    if content is None:
        return None
    if "trigger" not in content:
        raise ConfigError("malicious clients need a trigger; choose one with --trigger")
    names_nobody = not (content.get("malicious") or content.get("malicious_clients"))
    usual = {"malicious": DEFAULT_MALICIOUS} if names_nobody else {}
    table = _parse("backdoor", BackdoorTable, {**usual, **content})
    assert isinstance(table, BackdoorTable)  # noqa: S101  for mypy
    return table


def _resolve(experiment: Experiment, given: Mapping[str, Any]) -> Experiment:
    """Fill in the settings that follow from the task, the codec and the wire preset."""
    task = experiment.make_task()
    has_models = "model" in task_options(experiment.task.name)
    named = {"model": task.model_name} if has_models and task.model_name else {}
    chosen = resolve_wire(experiment, given, task)
    codec = experiment.codec.name
    options = {
        **parts.defaults("codec", codec),
        **task.codec_options.get(codec, {}),
        **chosen.codec_options,
        **parts.checked("codec", codec, experiment.codec.options),
    }
    CODECS.get(codec).check_options(options)  # type: ignore[attr-defined]
    return replace(
        experiment,
        task=experiment.task.model_copy(update=named) if named else experiment.task,
        split=experiment.split.model_copy(update={"cut": task.cut}),
        codec=Part(name=codec, **options),
        output_codec=chosen.output_codec,
        wire=chosen.wire,
        training=_resolve_training(experiment, given.get("training", {})),
    )


def _resolve_training(
    experiment: Experiment, given: Mapping[str, Any]
) -> TrainingTable:
    """Fill in the local epochs, and a turn of one batch for parallel rounds."""
    training, known = experiment.training, dict[str, Any]()
    if experiment.sends_once and training.local_epochs is None:
        known["local_epochs"] = DEFAULT_LOCAL_EPOCHS
    if experiment.is_parallel and "turn_steps" not in given:
        known["turn_steps"] = 1
    return training.model_copy(update=known) if known else training


def _plain(value: Any) -> Any:
    """Return the value in TOML's types; settings without a value are left out."""
    if isinstance(value, BaseModel):
        value = value.model_dump()
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items() if item is not None}
    return value


def _distinct(error: ValidationError) -> list[Any]:
    """Return one problem per setting, although a union reports one per member."""
    found: dict[str, Any] = {}
    for problem in error.errors():
        found.setdefault(str(problem["loc"][:1]), problem)
    return list(found.values())


def _sentence(table: str, error: Any) -> str:
    key = error["loc"][0] if error["loc"] else ""
    what = error["msg"].removeprefix("Value error, ")
    what = what[:1].lower() + what[1:]
    if not key:
        return f"[{table}] {what}"
    return f"{table}.{key}: {what}, got {error['input']!r}"

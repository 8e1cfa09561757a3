"""Every field of every table: accepted values, and refusals by name."""

import pytest

from lightsplit.errors import ConfigError
from lightsplit.experiments import make_experiment
from lightsplit.experiments.settings import FIELDS
from lightsplit.experiments.tables import ObjectiveTable, Part

NAMES = [
    (table, name) for table, model in FIELDS.items() for name in model.model_fields
]
NEEDED = {"backdoor": {"trigger": "badnets"}}


def fields_of(*kinds):
    """Return the fields whose annotation names one of the kinds."""
    return [
        (table, name)
        for table, name in NAMES
        if any(
            kind in str(FIELDS[table].model_fields[name].annotation) for kind in kinds
        )
    ]


NUMBERS = fields_of("int", "float")
REAL = fields_of("float")
TEXTS = [pair for pair in fields_of("str") if pair not in NUMBERS]


def refused(table, name, value):
    tables = {table: {**NEEDED.get(table, {}), name: value}}
    with pytest.raises(ConfigError, match=rf"{table}\.{name}: .*, got"):
        make_experiment(tables)


def test_fields_of_every_kind_were_found():
    assert ("training", "turn_steps") in NUMBERS
    assert ("owners", "alpha") in REAL
    assert ("wire", "format") in TEXTS


@pytest.mark.parametrize(("table", "name"), NUMBERS)
@pytest.mark.parametrize("value", [-1, "many", True, [1]])
def test_a_number_out_of_range_or_of_another_type_is_refused(table, name, value):
    refused(table, name, value)


@pytest.mark.parametrize(("table", "name"), REAL)
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_is_not_finite_is_refused(table, name, value):
    refused(table, name, value)


@pytest.mark.parametrize(("table", "name"), TEXTS)
@pytest.mark.parametrize("value", [1, True, ["a"]])
def test_a_text_must_be_one(table, name, value):
    refused(table, name, value)


@pytest.mark.parametrize(
    ("table", "name", "value"),
    [
        ("task", "train_limit", 0),
        ("task", "test_limit", 0),
        ("task", "data_split", "mine"),
        ("training", "epochs", 0),
        ("training", "lr", 0),
        ("training", "lr", 1e300),
        ("training", "weight_decay", 1e300),
        ("training", "batch_size", 1),
        ("training", "momentum", 1),
        ("training", "max_steps", 0),
        ("training", "patience", 0),
        ("training", "turn_steps", 0),
        ("training", "turn_steps", "round"),
        ("training", "optimizer", "lion"),
        ("owners", "clients", 0),
        ("owners", "clients", 2.5),
        ("owners", "alpha", 0),
        ("owners", "heads", "none"),
        ("split", "freeze_backbone", 1),
        ("split", "topology", "v"),
        ("wire", "hand_off", "int4"),
        ("guard", "every", 0),
        ("backdoor", "malicious", 0),
        ("backdoor", "poison_ratio", 0),
        ("server", "hijack", "yes"),
    ],
)
def test_a_value_that_means_nothing_is_refused_by_name(table, name, value):
    refused(table, name, value)


@pytest.mark.parametrize("weight", [-1, "many", True, float("nan"), 1e300])
def test_the_weight_of_an_objective_is_a_number(weight):
    with pytest.raises(ConfigError, match=r"objective\.wcc\.weight: .*, got"):
        make_experiment({"objective": {"wcc": {"weight": weight}}})


def test_words_stand_beside_numbers():
    tables = {"owners": {"alpha": "iid"}, "training": {"turn_steps": "epoch"}}
    experiment = make_experiment(tables)
    assert experiment.owners.alpha == "iid"
    assert experiment.training.turn_steps == "epoch"


def test_every_field_says_what_it_is_for():
    for table, name in NAMES:
        assert FIELDS[table].model_fields[name].description, f"{table}.{name}"


def test_a_part_keeps_options_of_its_own():
    assert Part(name="mine", width=3).options == {"width": 3}
    assert ObjectiveTable(weight=1, margin=0.5).options == {"margin": 0.5}


def test_a_table_cannot_be_changed():
    with pytest.raises(ValueError, match="frozen"):
        Part(name="mine").name = "other"

import tomllib

import pytest

from lightsplit.codecs import CODECS, PROJECTIONS
from lightsplit.data import DATASETS
from lightsplit.errors import ConfigError
from lightsplit.experiments import Experiment, make_experiment, read_experiment
from lightsplit.experiments.config import DEFAULT_HIDDEN, DEFAULT_MODELS
from lightsplit.models import CUTS, MODELS

NUMBERS = [
    n for n, f in Experiment.model_fields.items() if f.annotation in (int, float)
]
REAL = [n for n, f in Experiment.model_fields.items() if f.annotation is float]


@pytest.mark.parametrize("dataset", DATASETS.names())
def test_every_dataset_has_a_model_and_a_width_of_its_own(dataset):
    experiment = make_experiment({"dataset": dataset, "codec": "lightsplit-l"})
    assert experiment.model == DEFAULT_MODELS[dataset]
    assert experiment.hidden == DEFAULT_HIDDEN.get(dataset, 128)


@pytest.mark.parametrize("codec", CODECS.names())
def test_what_was_left_open_is_filled_in_for_the_codec(codec):
    experiment = make_experiment({"codec": codec})
    projects = codec.startswith("lightsplit")
    assert experiment.ratio == (1 if codec == "raw" else 8)
    assert experiment.projection == ("haar" if projects else "")
    assert experiment.scale == ("orthonormal" if projects else "")
    assert bool(experiment.hidden) == (codec == "lightsplit-l")


def test_what_was_given_is_kept():
    given = {"model": "simplecnn", "ratio": 4.5, "projection": "dct", "scale": "jl"}
    experiment = make_experiment(given)
    assert {name: getattr(experiment, name) for name in given} == given


def test_an_unknown_setting_is_refused_with_the_nearest_known_one():
    with pytest.raises(ConfigError, match=r"'batchsize'.*did you mean 'batch_size'"):
        make_experiment({"batchsize": 8})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, -1) for name in NUMBERS),
        *((name, "many") for name in NUMBERS),
        *((name, True) for name in NUMBERS),
        *((name, float("nan")) for name in REAL),
        *((name, float("inf")) for name in REAL),
        *((name, 0) for name in ("clients", "epochs", "lr")),
        *((name, 1e300) for name in ("lr", "wcc", "weight_decay")),
        ("batch_size", 1),
        ("momentum", 1),
        ("hidden", 10**9),
        ("clients", 2.5),
        ("ratio", ""),
        ("dataset", ["digits"]),
        ("codec", {"name": "raw"}),
        ("freeze_backbone", 1),
        ("topology", "v"),
        ("heads", "none"),
        ("scale", "large"),
        ("projection", "gauss"),
        ("optimizer", "lion"),
    ],
)
def test_a_value_out_of_range_or_of_another_type_is_refused_by_name(name, value):
    with pytest.raises(ConfigError, match=f"{name}: input should be .*, got"):
        make_experiment({name: value})


@pytest.mark.parametrize("model", MODELS.names())
def test_a_cut_that_was_left_open_is_the_model_s_default(model):
    assert make_experiment({"model": model}).cut == CUTS[model].default


def test_a_cut_of_another_model_is_refused_with_the_model_s_own():
    with pytest.raises(ConfigError, match="unknown cut 'l2'; known: 2, 4"):
        make_experiment({"dataset": "mnist", "model": "mnistnet", "cut": "l2"})


@pytest.mark.parametrize("name", ["dataset", "model", "codec", "cut"])
def test_an_unknown_name_is_refused_with_the_known_ones(name):
    with pytest.raises(ConfigError, match=f"unknown {name} 'nothing'; known: "):
        make_experiment({name: "nothing"})


def test_momentum_is_of_sgd_alone():
    assert make_experiment({"momentum": 0.9, "optimizer": "sgd"}).momentum == 0.9
    with pytest.raises(ConfigError, match="momentum is sgd's, not adam's"):
        make_experiment({"momentum": 0.9})


def test_every_mistake_is_told_at_once():
    with pytest.raises(ConfigError, match=r"clients: .*; seed: "):
        make_experiment({"clients": 0, "seed": -1})


def test_every_projection_can_be_named():
    for name in PROJECTIONS.names():
        assert make_experiment({"projection": name}).projection == name


def test_an_experiment_cannot_be_changed():
    with pytest.raises(ValueError, match="frozen"):
        make_experiment({}).seed = 1


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"codec": "lightsplit-l", "ratio": 12.5, "wcc": 1e-3, "seed": 10**30},
        {"codec": "raw", "topology": "vanilla", "optimizer": "sgd", "momentum": 0.9},
        {"weights": 'a "λ" \\ file', "freeze_backbone": True, "alpha": 0.1},
    ],
)
def test_an_experiment_comes_back_from_its_file(tmp_path, settings):
    experiment = make_experiment(settings)
    (tmp_path / "experiment.toml").write_text(experiment.to_toml(), encoding="utf-8")
    read = read_experiment(tmp_path / "experiment.toml")
    assert read.keys() == Experiment.model_fields.keys()
    assert make_experiment(read) == experiment


def test_the_file_holds_what_was_filled_in():
    assert tomllib.loads(make_experiment({}).to_toml())["model"] == "tinycnn"


@pytest.mark.parametrize("content", [b"= =", b"\xff", b"seed = 1\nseed = 2"])
def test_a_damaged_file_is_refused_by_name(tmp_path, content):
    (tmp_path / "mine.toml").write_bytes(content)
    with pytest.raises(ConfigError, match=r"mine\.toml is not a TOML file"):
        read_experiment(tmp_path / "mine.toml")


@pytest.mark.parametrize("place", ["absent.toml", "."])
def test_a_file_that_cannot_be_read_is_refused(tmp_path, place):
    with pytest.raises(ConfigError, match="cannot read"):
        read_experiment(tmp_path / place)


def test_the_facts_of_the_embedded_dataset_are_those_of_its_data():
    from lightsplit.data import DATASETS
    from lightsplit.experiments.config import FACTS

    digits = DATASETS.create("digits")
    assert FACTS["digits"] == (digits.train.shape, digits.classes)
    assert sorted(FACTS) == DATASETS.names()

import tomllib
from dataclasses import FrozenInstanceError

import pytest

from lightsplit.codecs import CODECS, PROJECTIONS
from lightsplit.errors import ConfigError
from lightsplit.experiments import from_settings, make_experiment, read_experiment
from lightsplit.models import CUTS, MODELS
from lightsplit.tasks import TASKS

HIDDEN = {"cifar10": 512, "cifar100": 2048}  # the paper's; 128 elsewhere
DATASET_OF = {"tinycnn": "digits", "simplecnn": "mnist", "mnistnet": "mnist"}


@pytest.mark.parametrize("name", TASKS.names())
def test_every_task_has_a_model_and_a_width_of_its_own(name):
    experiment = from_settings({"dataset": name, "codec": "lightsplit-l"})
    assert experiment.task.options["model"] == experiment.make_task().model_name
    assert experiment.codec.options["hidden"] == HIDDEN.get(name, 128)


@pytest.mark.parametrize("codec", [n for n in CODECS.names() if n != "franken"])
def test_open_options_of_the_codec_are_filled_in(codec):
    options = from_settings({"codec": codec}).codec.options
    projects = codec in ("lightsplit-f", "lightsplit-l")
    few_bits = codec in ("lightsplit-b", "fsq")
    usual = {"raw": 1, "none": None, "splitfc": None, "mask-sparse": 100}.get(codec, 8)
    assert options.get("ratio") == (None if few_bits else usual)
    assert options.get("projection") == ("haar" if projects else None)
    assert options.get("scale") == ("orthonormal" if projects else None)
    widened = codec in ("lightsplit-l", "none")
    assert ("hidden" in options) == (widened or few_bits)


def test_given_options_are_kept():
    given = {"dataset": "mnist", "ratio": 4.5, "projection": "dct", "scale": "jl"}
    assert given.items() <= from_settings(given).settings().items()


@pytest.mark.parametrize("model", MODELS.names())
def test_a_cut_that_was_left_open_is_the_model_s_default(model):
    dataset = DATASET_OF.get(model, "cifar10")
    experiment = from_settings({"dataset": dataset, "model": model})
    assert experiment.split.cut == CUTS[model].default


def test_a_cut_of_another_model_is_refused_with_the_model_s_own():
    with pytest.raises(ConfigError, match="unknown cut 'l2'; known: 2, 4"):
        from_settings({"dataset": "mnist", "model": "mnistnet", "cut": "l2"})


@pytest.mark.parametrize("name", ["task", "model", "codec", "cut"])
def test_an_unknown_name_is_refused_with_the_known_ones(name):
    with pytest.raises(ConfigError, match=f"unknown {name} 'nothing'; known: "):
        from_settings({name: "nothing"})


def test_momentum_is_of_sgd_alone():
    experiment = from_settings({"momentum": 0.9, "optimizer": "sgd"})
    assert experiment.training.momentum == 0.9
    with pytest.raises(ConfigError, match="an option of sgd only, got optimizer adam"):
        from_settings({"momentum": 0.9})


def test_all_mistakes_are_reported_at_once():
    with pytest.raises(
        ConfigError, match=r"training\.lr: .*; training\.seed: .*; owners"
    ):
        from_settings({"clients": 0, "seed": -1, "lr": 0.0})


def test_every_projection_can_be_named():
    for name in PROJECTIONS.names():
        assert from_settings({"projection": name}).codec.options["projection"] == name


def test_an_experiment_cannot_be_changed():
    experiment = from_settings({})
    with pytest.raises(FrozenInstanceError):
        experiment.task = experiment.task
    with pytest.raises(ValueError, match="frozen"):
        experiment.training.seed = 1


def test_experiments_are_equal_when_all_their_settings_are():
    first, same, other = map(from_settings, [{}, {"seed": 0}, {"seed": 1}])
    assert first == same
    assert hash(first) == hash(same)
    assert first != other
    assert first != first.tables()


def test_a_changed_experiment_is_another_one():
    experiment = from_settings({})
    changed = experiment.changed(training={"epochs": 9}, owners={"clients": 2})
    assert changed == from_settings({"epochs": 9, "clients": 2})
    assert experiment == from_settings({})


def test_a_weight_of_zero_is_no_objective():
    assert from_settings({"wcc": 0}) == from_settings({})
    assert from_settings({"wcc": 0.5}).tables()["objective"] == {"wcc": {"weight": 0.5}}


EVERY_TABLE = {
    "dataset": "digits",
    "codec": "lightsplit-l",
    "ratio": 12.5,
    "wcc": 1e-3,
    "output_codec": "linear",
    "output_size": 30,
    "detector": "cosine-code,contra",
    "inspector": "splitguard",
    "trigger": "badnets",
    "malicious_clients": "0,2",
    "on_flag": "stop",
    "turn_steps": "epoch",
}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"codec": "lightsplit-l", "ratio": 12.5, "wcc": 1e-3, "seed": 10**30},
        {"codec": "raw", "topology": "vanilla", "optimizer": "sgd", "momentum": 0.9},
        {"weights": 'a "λ" \\ file', "freeze_backbone": True, "alpha": 0.1},
        {"wire": "max", "output_size": 20},
        {"head_until": "conv1", "tail_from": "fc2"},
        {"attack": ["sdar:width=8", "whitebox"]},
        EVERY_TABLE,
    ],
)
def test_an_experiment_comes_back_from_its_file(tmp_path, settings):
    experiment = from_settings(settings)
    (tmp_path / "experiment.toml").write_text(experiment.to_toml(), encoding="utf-8")
    read = read_experiment(tmp_path / "experiment.toml")
    assert make_experiment(read) == experiment
    assert make_experiment(read).tables() == read


def test_the_file_holds_the_settings_that_were_filled_in():
    assert tomllib.loads(from_settings({}).to_toml())["task"]["model"] == "tinycnn"


def test_a_setting_without_a_value_is_not_in_the_file():
    tables = tomllib.loads(from_settings({}).to_toml())
    given = {"clients": 5, "alpha": "iid", "heads": "shared", "rounds": "turns"}
    assert tables["owners"] == given
    assert "train_limit" not in tables["task"]
    assert tables.keys().isdisjoint({"backdoor", "detector", "inspector", "attack"})


@pytest.mark.parametrize("content", [b"= =", b"\xff", b"seed = 1\nseed = 2"])
def test_a_damaged_file_is_refused_by_name(tmp_path, content):
    (tmp_path / "mine.toml").write_bytes(content)
    with pytest.raises(ConfigError, match=r"mine\.toml is not a TOML file"):
        read_experiment(tmp_path / "mine.toml")


@pytest.mark.parametrize("place", ["absent.toml", "."])
def test_a_file_that_cannot_be_read_is_refused(tmp_path, place):
    with pytest.raises(ConfigError, match="cannot read"):
        read_experiment(tmp_path / place)


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"codex": {}}, "unknown table 'codex'.*did you mean 'codec'"),
        ({"training": {"sed": 1}}, r"setting of \[training\] 'sed'.*mean 'seed'"),
        ({"codec": {"ratoi": 8}}, "no option 'ratoi'.*did you mean 'ratio'"),
        ({"task": {"modle": "x"}}, "no option 'modle'.*did you mean 'model'"),
        ({"codec": {"name": 3}}, "codec.name: input should be a valid string, got 3"),
        ({"objective": {"wcc": 3}}, r"expected \[objective\.wcc\], got wcc = 3"),
        ({"detector": {"contra": 3}}, r"expected \[detector\.contra\], got"),
        (
            {"objective": {"wcc": {"weight": -1.0}}},
            r"objective\.wcc\.weight: .*equal to",
        ),
        ({"backdoor": {}}, "need a trigger"),
        ({"inspector": {"splitguard": {}, "scrutinizer": {}}}, "only one inspector"),
        ({"detector": {"fltrust": {"trusted_client": -1}}}, "from 0 to 4, got -1"),
    ],
)
def test_invalid_tables_are_refused_with_the_valid_choices(tables, said):
    with pytest.raises(ConfigError, match=said):
        make_experiment(tables)

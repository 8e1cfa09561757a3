"""Every setting of an experiment as an option of a command."""

import json

import pytest

from lightsplit.cli.settings import resolve
from lightsplit.errors import ConfigError
from lightsplit.experiments import from_settings

COST = ["cost", "--samples", 100, "--codec", "lightsplit-f", "--json"]


@pytest.fixture
def tables(lightsplit):
    """Return what gives the tables that options come to, without training anything."""

    def call(*options):
        (entry,) = json.loads(lightsplit(*COST, *options).stdout)
        return entry["experiment"]

    return call


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (["--set", "codec.ratio=4"], {"ratio": 4}),
        (["--ratio", 4], {"ratio": 4}),
        (["--ratio", 4.5], {"ratio": 4.5}),
        (["--set", "ratio=4", "--set", "training.seed=3"], {"ratio": 4, "seed": 3}),
        (["--turn-steps", "epoch"], {"turn_steps": "epoch"}),
        (["--turn-steps", 7], {"turn_steps": 7}),
        (["--alpha", "iid"], {}),
        (["--alpha", "0.5"], {"alpha": 0.5}),
        (["--task", "mnist"], {"dataset": "mnist"}),
        (["--dataset", "mnist"], {"dataset": "mnist"}),
        (["--task", "mnist", "--dataset", "mnist"], {"dataset": "mnist"}),
        (["--objective", "wcc:0.1"], {"wcc": 0.1}),
        (["--wcc", "0.1"], {"wcc": 0.1}),
        (["--projection", "dct"], {"projection": "dct"}),
        (["--freeze-backbone"], {"freeze_backbone": True}),
        (["--no-freeze-backbone"], {}),
        (
            ["--detector", "cosine-code", "--detector", "contra", "--sides", "one"],
            {"detector": ["cosine-code:sides=one", "contra"]},
        ),
        (
            ["--detector", "contra:threshold=0.7", "--on-flag", "skip"],
            {"detector": "contra", "threshold": 0.7, "on_flag": "skip"},
        ),
        (
            ["--trigger", "badnets", "--malicious", 1, "--twin"],
            {"trigger": "badnets", "malicious": 1.0, "twin": True},
        ),
    ],
)
def test_options_are_settings(tables, options, settings):
    assert tables(*options) == from_settings(settings).tables()


def test_a_codec_is_given_with_its_options(tables):
    expected = from_settings({"codec": "lightsplit-l", "hidden": 32}).tables()
    assert tables("--codec", "lightsplit-l:hidden=32") == expected
    assert tables("--codec", "lightsplit-l", "--hidden", 32) == expected


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--ratio", 0], "ratio must be at least 1, got 0.0"),
        (["--set", "codec.ratio=0"], "ratio must be at least 1, got 0.0"),
        (["--ratio", "much"], "'ratio' of codec 'lightsplit-f' must be a number"),
        (["--alpha", 0], "owners.alpha: input should be greater than 0, got 0"),
        (["--turn-steps", 0], "training.turn_steps: input should be greater than"),
        (["--turn-steps", "round"], "training.turn_steps: input should be"),
        (["--train-limit", 0], "task.train_limit: input should be greater than"),
        (["--task", "mnist", "--dataset", "digits"], "task and dataset are the same"),
        (
            ["--ratio", 4, "--set", "codec.ratio=8"],
            "ratio and codec.ratio are the same",
        ),
        (["--set", "codec.ratoi=8"], "did you mean 'ratio'?"),
        (["--set", "nonsense=8"], "unknown setting 'nonsense'"),
        (["--set", "ratio"], "expected key=value, got 'ratio'"),
        (["--objective", "wcc:much"], "expected NAME, NAME:WEIGHT or"),
        (["--threshold", 3], "threshold is not a setting of detector none"),
        (["--codec", "topk", "--hidden", 9], "codec 'topk' has no option 'hidden'"),
    ],
)
def test_an_invalid_option_is_refused(refused, options, said):
    assert said in refused("cost", *options)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "experiment.toml"
    settings = {"codec": "lightsplit-l", "hidden": 32, "ratio": 4, "seed": 3}
    path.write_text(from_settings(settings).to_toml())
    return path


def test_an_option_overrides_its_setting_of_the_file_and_no_other(file):
    changed = resolve(file, {"ratio": 16})
    settings = {"codec": "lightsplit-l", "hidden": 32, "ratio": 16, "seed": 3}
    assert changed == from_settings(settings)


def test_another_codec_does_not_inherit_the_options_of_the_files(file):
    assert resolve(file, {"codec": "topk"}) == from_settings(
        {"codec": "topk", "seed": 3}
    )
    kept = resolve(file, {"codec": "lightsplit-l"})
    assert kept.codec.options["hidden"] == 32


def test_a_dataset_can_be_replaced(file):
    changed = resolve(file, {"dataset": "cifar10", "model": "resnet18"})
    assert changed.make_task().name == "cifar10"
    with pytest.raises(ConfigError, match="tinycnn takes images of shape"):
        resolve(file, {"dataset": "cifar10"})


def test_a_file_of_the_old_form_is_refused_by_its_name(tmp_path):
    (tmp_path / "old.toml").write_text('dataset = "digits"\nclients = 3\n')
    with pytest.raises(ConfigError, match=r"old\.toml: .* write \[task\] name = "):
        resolve(tmp_path / "old.toml", {})


def test_without_a_file_or_an_option_it_is_the_default():
    assert resolve(None, {}) == from_settings({})

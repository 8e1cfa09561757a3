"""Wire presets: ordinary settings by one name."""

import pytest

from lightsplit.cli.settings import resolve
from lightsplit.codecs import OUTPUT_CODECS
from lightsplit.errors import ConfigError
from lightsplit.experiments import from_settings, make_experiment, run
from lightsplit.experiments.presets import PRESETS, default_output_size
from lightsplit.results import RunFolder, tensors


def without_preset(experiment):
    """Return the tables with everything in them but the preset's name."""
    tables = experiment.tables()
    return {
        **tables,
        "wire": {k: v for k, v in tables["wire"].items() if k != "preset"},
    }


every_preset = pytest.mark.parametrize("name", PRESETS)


@every_preset
def test_a_preset_is_resolved_into_settings_that_give_it_again(name):
    experiment = from_settings({"wire": name})
    assert experiment.codec.options["ratio"] == 32
    plain = without_preset(experiment)
    assert make_experiment(plain).tables() == plain


@every_preset
def test_given_settings_override_the_presets(name):
    given = {"ratio": 8.0, "format": "int4", "output_codec": "projection"}
    given |= {"output_size": 20, "hand_off": "fp32"}
    experiment = from_settings({"wire": name, **given})
    assert given.items() <= experiment.settings().items()


def test_without_a_preset_nothing_is_compressed_further():
    experiment = from_settings({})
    assert (experiment.wire.format, experiment.output_codec.name) == ("fp32", "raw")
    assert experiment.codec.options["ratio"] == 8
    assert experiment.output_codec.options == {}
    assert experiment.wire.hand_off == "fp32"


def test_the_paper_is_the_default_at_32():
    paper = from_settings({"wire": "paper"})
    assert from_settings({"ratio": 32}).tables() == without_preset(paper)


@pytest.mark.parametrize(("classes", "size"), [(2, 48), (43, 48), (49, 64), (100, 112)])
def test_a_shortened_output_has_room_for_every_class(classes, size):
    assert default_output_size(classes) == size


@every_preset
def test_vanilla_training_sends_no_output(name):
    experiment = from_settings({"wire": name, "topology": "vanilla"})
    assert experiment.output_codec.name == "raw"
    with pytest.raises(ConfigError, match="no output crosses the wire in vanilla"):
        from_settings({"topology": "vanilla", "output_codec": "linear"})


def test_another_preset_on_the_command_line_replaces_that_of_the_file(tmp_path):
    path = tmp_path / "experiment.toml"
    path.write_text(from_settings({"wire": "max", "clients": 2}).to_toml())
    changed = resolve(path, {"wire": "lean"})
    assert changed == from_settings({"wire": "lean", "clients": 2})
    kept = resolve(path, {"epochs": 7})
    assert kept.wire.preset == "max"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"wire": "huge"}, "unknown wire preset 'huge'"),
        ({"format": "int9"}, "unknown wire format 'int9'"),
        ({"format": "code=int8,cod=int8"}, "unknown message 'cod'"),
        ({"rounding": "up"}, "unknown rounding 'up'"),
        ({"output_codec": "short"}, "unknown output codec 'short'"),
        ({"output_size": 5}, "'raw' sends the whole output: it takes no size, got 5"),
        ({"output_codec": "linear", "output_size": 0}, "must be at least 1, got 0"),
        ({"hand_off": "int4"}, "hand_off"),
        ({"format": 3}, "format"),
    ],
)
def test_wire_settings_that_cannot_be_are_refused_with_those_that_can(settings, said):
    with pytest.raises(ConfigError, match=said):
        from_settings(settings)


@pytest.mark.parametrize("name", OUTPUT_CODECS.names())
def test_the_saved_model_is_a_plain_one_with_every_output_codec(finish, name):
    done = finish(output_codec=name, epochs=1, max_steps=2)
    whole = done.job.parts.whole.state_dict()
    saved = tensors.load(done.folder.path / "model.safetensors")
    assert {k: v.shape for k, v in saved.items()} == {
        k: v.shape for k, v in whole.items()
    }
    assert done.record["output_size"] == (
        48 if name in ("linear", "projection") else 64
    )


def test_code_bits_are_all_bits_that_tell_of_one_sample(finished):
    k = finished().record["code_size"]
    assert finished().record["code_bits"] == 32 * k
    assert finished(format="int8").record["code_bits"] == 8 * k + 16
    assert finished(format="code=int4").record["code_bits"] == 4 * k + 16


@pytest.mark.slow
@every_preset
@pytest.mark.parametrize("heads", ["shared", "private"])
def test_a_resumed_run_is_the_uninterrupted_one(tmp_path, small, name, heads):
    experiment = small(wire=name, ratio=8, heads=heads)
    whole, parts = RunFolder.create(tmp_path / "a"), RunFolder.create(tmp_path / "b")
    record = run(experiment, whole)
    turns = iter([True] * 6)
    assert run(experiment, parts, observe=lambda *_: next(turns, False)) is None
    resumed = run(experiment, parts)
    for key in ("bytes", "test_accuracy", "step_ratio"):
        assert resumed[key] == record[key]
    files = sorted(path.name for path in whole.path.glob("model*.safetensors"))
    for file in files:
        first, second = tensors.load(whole.path / file), tensors.load(parts.path / file)
        assert all((first[name] == second[name]).all() for name in first)

"""Wire presets: ordinary settings by one name."""

import pytest

from lightsplit.cli.settings import resolve
from lightsplit.codecs import OUTPUT_CODECS
from lightsplit.errors import ConfigError
from lightsplit.experiments import make_experiment, run
from lightsplit.experiments.presets import PRESETS, default_output_size
from lightsplit.results import RunFolder, tensors

every_preset = pytest.mark.parametrize("name", PRESETS)


@every_preset
def test_a_preset_is_resolved_into_settings_that_give_it_again(name):
    experiment = make_experiment({"wire": name})
    assert experiment.ratio == 32
    again = make_experiment({**experiment.model_dump(), "wire": ""})
    assert again.model_dump() == experiment.model_dump() | {"wire": ""}


@every_preset
def test_what_is_given_takes_the_place_of_the_presets(name):
    given = {"ratio": 8.0, "format": "int4", "output_codec": "projection"}
    given |= {"output_size": 20, "hand_off": "fp32"}
    experiment = make_experiment({"wire": name, **given})
    assert {key: getattr(experiment, key) for key in given} == given


def test_without_a_preset_nothing_is_compressed_further():
    experiment = make_experiment({})
    assert (experiment.format, experiment.output_codec) == ("fp32", "raw")
    assert (experiment.ratio, experiment.output_size) == (8, 0)
    assert experiment.hand_off == "fp32"


def test_the_paper_is_the_default_at_32():
    paper = make_experiment({"wire": "paper"}).model_dump()
    assert make_experiment({"ratio": 32}).model_dump() == paper | {"wire": ""}


@pytest.mark.parametrize(("classes", "size"), [(2, 48), (43, 48), (49, 64), (100, 112)])
def test_a_shortened_output_has_room_for_every_class(classes, size):
    assert default_output_size(classes) == size


@every_preset
def test_vanilla_training_sends_no_output(name):
    experiment = make_experiment({"wire": name, "topology": "vanilla"})
    assert experiment.output_codec == "raw"
    with pytest.raises(ConfigError, match="no output crosses the wire in vanilla"):
        make_experiment({"topology": "vanilla", "output_codec": "linear"})


def test_another_preset_on_the_command_line_replaces_that_of_the_file(tmp_path):
    path = tmp_path / "experiment.toml"
    path.write_text(make_experiment({"wire": "max", "clients": 2}).to_toml())
    changed = resolve(path, {"wire": "lean"})
    assert (
        changed.model_dump()
        == make_experiment({"wire": "lean", "clients": 2}).model_dump()
    )
    kept = resolve(path, {"epochs": 7})
    assert kept.wire == "max"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"wire": "huge"}, "unknown wire preset 'huge'"),
        ({"format": "int9"}, "unknown wire format 'int9'"),
        ({"format": "code=int8,cod=int8"}, "unknown message 'cod'"),
        ({"rounding": "up"}, "unknown rounding 'up'"),
        ({"output_codec": "short"}, "unknown output codec 'short'"),
        ({"output_size": 5}, "output_size must be 0, got 5"),
        ({"hand_off": "int4"}, "hand_off"),
        ({"format": 3}, "format"),
    ],
)
def test_wire_settings_that_cannot_be_are_refused_with_those_that_can(settings, said):
    with pytest.raises(ConfigError, match=said):
        make_experiment(settings)


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

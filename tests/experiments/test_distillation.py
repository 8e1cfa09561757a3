"""Codec franken is distilled before a run, which then leaves it as it is."""

import pytest
import torch

from lightsplit.errors import ConfigError, RunError
from lightsplit.experiments import from_settings, run
from lightsplit.experiments.communication import foresee_traffic
from lightsplit.experiments.computation import measure_computation
from lightsplit.experiments.distillation import Recipe, distil
from lightsplit.results import RunFolder, tensors

pytestmark = pytest.mark.slow

PUBLIC = {"dataset": "digits", "train_limit": 400, "clients": 1, "epochs": 2}
QUICK = {"train_limit": 103, "test_limit": 20, "clients": 3, "batch_size": 10}
LEAST = {"codec": "franken", "gradients": "none"}


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    folder = RunFolder.create(tmp_path_factory.mktemp("public") / "run")
    run(from_settings({**PUBLIC, "codec": "raw"}), folder)
    return folder


@pytest.fixture(scope="module")
def distilled(teacher):
    """Return what distils, the same once."""
    made = {}

    def distilled(rate_weight=0.1, **options):
        key = (rate_weight, *options.items())
        if key not in made:
            made[key] = distil(teacher, Recipe(16, 16, rate_weight, **options))
        return made[key]

    return distilled


@pytest.fixture(scope="module")
def settings(teacher, distilled, tmp_path_factory):
    """Return the settings of a run with a distilled codec."""
    path = tmp_path_factory.mktemp("file") / "franken.safetensors"
    tensors.save(path, distilled().codec.tensors())
    weights = str(teacher.path / "model.safetensors")
    own = {"trained": str(path), "channels": 16, "hidden": 16, "weights": weights}
    return {**QUICK, **LEAST, "dataset": "digits", "epochs": 2, **own}


def test_more_passes_repeat_the_head_better(distilled):
    little, much = distilled(epochs=1), distilled()
    assert much.error < little.error < 1.0  # 1 is what zeros would have


def test_dear_bits_make_short_codes(distilled):
    cheap = distilled(rate_weight=1e-3, epochs=15)
    dear = distilled(rate_weight=50.0, epochs=15)
    assert dear.sample_bytes < cheap.sample_bytes
    assert dear.error > cheap.error


def test_the_bytes_are_near_the_entropy_of_the_values_and_far_from_plain(distilled):
    codec, sent, _ = distilled()
    assert sent < 4 * codec.code_size  # in fp32
    assert 8 * sent < codec.packed_bits


def test_the_same_run_is_distilled_to_the_same_codec(teacher, distilled):
    again = distil(teacher, Recipe(16, 16, 0.1, epochs=1)).codec.tensors()
    for name, tensor in distilled(epochs=1).codec.tensors().items():
        assert torch.equal(tensor, again[name])


def test_each_epoch_is_told(teacher):
    told = []
    recipe = Recipe(2, 4, 1.0, epochs=2)
    distil(teacher, recipe, on_epoch=lambda *figures: told.append(figures))
    assert [epoch for epoch, *_ in told] == [0, 1]
    assert told[1][1] < told[0][1]


@pytest.mark.parametrize("heads", ["shared", "private"])
def test_a_run_counts_what_it_sends_and_changes_the_tail_alone(
    settings, heads, tmp_path
):
    experiment, jobs = from_settings({**settings, "heads": heads}), []
    record = run(experiment, RunFolder.create(tmp_path / "run"), started=jobs.append)
    sent, foreseen = record["bytes"], foresee_traffic(experiment)
    assert not foreseen.is_exact
    for kind, most in foreseen.bytes.items():
        assert sent[kind] <= most
    for kind in ("output", "hand_off", "labels"):
        assert sent[kind] == foreseen.bytes[kind]
    assert 0 < sent["code"] < foreseen.bytes["code"] / 2
    assert sent["code_gradient"] == sent["output_gradient"] == 0
    trainer, before = jobs[0].trainer, tensors.load(experiment.codec.options["trained"])
    for name, tensor in trainer.server.side.modules["decoder"].state_dict().items():
        assert torch.equal(tensor, before[f"decoder.{name}"])
    for name, tensor in trainer.clients[0].side.modules["encoder"].state_dict().items():
        assert torch.equal(tensor, before[f"encoder.{name}"])


def test_head_and_backbone_stay_those_of_the_teacher(settings, tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    run(from_settings(settings), folder)
    trained = tensors.load(folder.path / "model.safetensors")
    first = tensors.load(settings["weights"])
    changed = {n for n, own in trained.items() if not torch.equal(own, first[n])}
    assert changed == {"fc2.weight", "fc2.bias"}  # of the tail


def test_what_a_client_computes_is_told_before_the_run(settings):
    cost = measure_computation(from_settings(settings))
    assert cost.client.forward_flops > 0
    assert cost.server.parameters > 0


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"trained": None}, "give trained=FILE, which lightsplit distil writes"),
        ({"gradients": "all"}, "gradients must be none, got all"),
        ({"release": "once"}, "drop release"),
        ({"topology": "vanilla"}, "topology must be u"),
        ({"rounds": "parallel"}, "gradients none"),
    ],
)
def test_what_would_train_it_is_refused(settings, more, said):
    with pytest.raises(ConfigError, match=said):
        from_settings({**settings, **more})


def test_a_file_for_other_channels_is_refused_before_the_run(settings):
    wrong = from_settings({**settings, "channels": 5})
    with pytest.raises(ConfigError, match="other channels"):
        foresee_traffic(wrong)


def test_a_teacher_with_another_codec_or_without_weights_is_refused(small, tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    run(small(codec="topk", epochs=1), folder)
    with pytest.raises(ConfigError, match="must have codec raw, got topk"):
        distil(folder, Recipe())
    other = RunFolder.create(tmp_path / "other")
    run(small(codec="raw", epochs=1), other)
    (tmp_path / "other/model.safetensors").unlink()
    with pytest.raises(RunError, match=r"model\.safetensors does not exist"):
        distil(other, Recipe())

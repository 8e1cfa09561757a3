import pytest

from lightsplit.errors import ConfigError
from lightsplit.experiments import from_settings, run
from lightsplit.experiments.communication import foresee_traffic
from lightsplit.results import RunFolder

pytestmark = pytest.mark.slow

QUICK = {"train_limit": 103, "test_limit": 20, "clients": 3, "batch_size": 10}

RUNS = {
    "raw": {"codec": "raw"},
    "projection": {"ratio": 5.5, "epochs": 2},
    "trained lift": {"codec": "lightsplit-l", "hidden": 16},
    "uniform": {"projection": "uniform"},
    "topk": {"codec": "topk"},
    "topk in int8": {"codec": "topk", "format": "int8"},
    "learned": {"codec": "learned-1x1"},
    "private heads": {"heads": "private", "epochs": 2},
    "vanilla": {"topology": "vanilla"},
    "whole turns": {"turn_steps": "epoch", "epochs": 2},
    "two-byte steps": {"clients": 1, "batch_size": 2, "epochs": 3},
    "cut short": {"max_steps": 7, "epochs": 9},
    "often evaluated": {"eval_every": 2, "epochs": 2},
    "sgd": {"optimizer": "sgd", "momentum": 0.9},
    "half": {"wire": "half"},
    "lean": {"wire": "lean"},
    "max": {"wire": "max"},
    "low rank": {"output_codec": "low-rank", "format": "output=bf16"},
    "vanilla in int8": {"topology": "vanilla", "format": "int8"},
}


@pytest.mark.parametrize("settings", RUNS.values(), ids=RUNS.keys())
def test_the_forecast_equals_the_bytes_that_a_run_counts(settings, tmp_path):
    experiment = from_settings({**QUICK, "epochs": 1, **settings})
    record = run(experiment, RunFolder.create(tmp_path / "run"))
    traffic = foresee_traffic(experiment)
    assert traffic.bytes == record["bytes"]
    assert (traffic.steps, traffic.samples) == (record["steps"], record["samples"])
    assert traffic.code_size == record["code_size"]
    assert traffic.step_ratio == record["step_ratio"]
    assert traffic.total_ratio == record["total_ratio"]


@pytest.mark.parametrize(
    ("ratio", "gibibytes"), [(1, 152.6), (8, 19.1), (16, 9.5), (32, 4.8)]
)
def test_the_papers_first_table_is_two_of_the_four_messages(ratio, gibibytes):
    codec = {"codec": "raw"} if ratio == 1 else {"ratio": ratio}
    settings = {"dataset": "cifar10", "epochs": 1, **codec}
    traffic = foresee_traffic(from_settings(settings))
    two = traffic.bytes["code"] + traffic.bytes["code_gradient"]
    assert round(100 * two / 2**30, 1) == gibibytes


def test_the_step_ratio_counts_all_four_messages():
    settings = {"dataset": "cifar10", "ratio": 32, "epochs": 1}
    assert foresee_traffic(from_settings(settings)).step_ratio == pytest.approx(7.2)


def test_a_plan_reads_no_weights():
    planned = foresee_traffic(from_settings({"weights": "not/there.safetensors"}))
    assert planned == foresee_traffic(from_settings({}))


def test_samples_can_be_given_and_must_do_for_all_clients():
    experiment = from_settings({"clients": 4, "epochs": 1})
    assert foresee_traffic(experiment, samples=100).samples == 100
    with pytest.raises(ConfigError, match="4 clients need 2 samples each, got 7"):
        foresee_traffic(experiment, samples=7)

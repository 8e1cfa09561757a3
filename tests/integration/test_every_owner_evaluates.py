"""With shared heads, every owner measures the model on test data of its own."""

from pathlib import Path

import pytest
from lab.runs import NAMES, Network, assert_same_weights, build_job, reference

from lightsplit.errors import ConfigError
from lightsplit.experiments import from_settings, pieces
from lightsplit.experiments.communication import foresee_traffic
from lightsplit.runs.evaluation import Report, mean_evaluation

OWN_TASK = str(Path(__file__).parent / "own_task" / "my_task.py")
EVERY = {"evaluate": "every", "train_limit": 96, "test_limit": 24, "epochs": 2}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"wire": "max", "turn_steps": 2},
        {"detector": ("cosine-code",), "on_flag": "skip", "detect_every": 1},
    ],
    ids=str,
)
def test_over_the_network_it_is_as_in_one_process(more, tmp_path):
    expected = reference(**EVERY, **more)
    with Network(tmp_path, **EVERY, **more) as network:
        network.join_all()
        got = network.finish()
    assert_same_weights(got, expected)
    assert got.bytes == expected.bytes
    assert len(got.history[-1]["client_figures"]) == len(NAMES)


def test_weights_are_those_of_a_run_in_which_one_evaluates():
    alone = reference(**(EVERY | {"evaluate": "one"}))
    assert reference(**EVERY).clients[0].keys() == alone.clients[0].keys()
    for name, tensor in reference(**EVERY).clients[0].items():
        assert tensor.equal(alone.clients[0][name])
    assert len(alone.history[-1]["client_figures"]) == 1


def test_owners_weigh_by_their_samples_and_one_may_keep_its_figures(tmp_path):
    with Network(tmp_path, **EVERY) as network:
        batches = dict(zip(NAMES, parts_of_the_test(network), strict=True))
        network.join("alice", test=batches["alice"])
        network.join("bob", test=batches["bob"])
        network.join("carol", test=batches["carol"], reports=False)
        network.finish()
    line = network.coordinator.progress.history[-1]
    assert line["client_names"] == ["alice", "bob"]
    assert line["weighted_by"] == "samples"
    ours, theirs = (figures["accuracy"] for figures in line["client_figures"])
    assert line["test_accuracy"] == pytest.approx((20 * ours + 2 * theirs) / 22)


def parts_of_the_test(network):
    """Return batches of 20, 2 and 2 of the test samples."""
    ((inputs, labels),) = network.server_job.trainer._test
    return [
        [(inputs[part], labels[part])]
        for part in (slice(0, 20), slice(20, 22), slice(22, 24))
    ]


@pytest.mark.parametrize(
    ("sizes", "mean", "weighted_by"),
    [((3, 1), 0.25, "samples"), ((3, 0), 0.5, "owners"), ((2, 2), 0.5, "samples")],
)
def test_a_mean_is_weighted_if_all_say_how_many_samples(sizes, mean, weighted_by):
    reports = [Report({"auroc": v}, n) for v, n in zip((0.0, 1.0), sizes, strict=True)]
    found = mean_evaluation(reports)
    assert found.figures == {"auroc": mean}
    assert found.weighted_by == weighted_by


def test_the_forecast_has_every_byte_of_the_evaluations():
    job = build_job(**EVERY)
    list(job.trainer.run())
    foreseen = foresee_traffic(job.experiment, samples=96, test_samples=24)
    assert foreseen.bytes == job.trainer.progress.bytes


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"task": OWN_TASK}, True),
        ({"task": OWN_TASK, "evaluate": "one"}, False),
        ({"task": OWN_TASK, "clients": 1}, False),
        ({}, False),
        ({"heads": "private"}, True),
    ],
)
def test_by_default_every_owner_tests_a_task_of_its_own(settings, expected):
    found = pieces.every_client_evaluates(from_settings(settings), has_own_data=True)
    assert found == expected


def test_private_heads_cannot_be_measured_by_one():
    with pytest.raises(ConfigError, match="evaluate must be every"):
        from_settings({"heads": "private", "evaluate": "one"})

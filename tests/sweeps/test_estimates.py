import pytest

from lightsplit.audits import AuditOptions
from lightsplit.experiments import from_settings
from lightsplit.experiments.communication import foresee_traffic
from lightsplit.sweeps import estimate

pytestmark = pytest.mark.slow


def test_epochs_multiply_the_cost_of_one():
    one, four = (
        estimate(from_settings({"epochs": epochs, "train_limit": 200}))
        for epochs in (1, 4)
    )
    assert four.steps == 4 * one.steps
    assert four.bytes == 4 * one.bytes
    assert 0 < one.seconds < four.seconds


def test_the_bytes_are_within_a_twentieth_of_those_of_the_run():
    experiment = from_settings({"epochs": 3, "seed": 4})
    foreseen = foresee_traffic(experiment).bytes["total"]
    assert abs(estimate(experiment).bytes / foreseen - 1) < 0.05


def test_a_run_that_is_cut_short_costs_no_more_than_its_steps():
    experiment = from_settings({"epochs": 1000, "max_steps": 5})
    assert estimate(experiment).steps == 5


@pytest.mark.parametrize("topology", ["u", "vanilla"])
def test_an_audit_in_training_costs_more_than_the_training(topology):
    experiment = from_settings({"topology": topology, "cut": "l1", "epochs": 1})
    audit = AuditOptions(attacks=("fora", "linear"), budget="full", during=True)
    alone, attacked = estimate(experiment), estimate(experiment, audit=audit)
    assert alone.audit_seconds == 0
    assert attacked.training_seconds == alone.seconds
    assert attacked.audit_seconds > alone.seconds
    quick = estimate(experiment, audit=AuditOptions(attacks=("linear",)))
    assert quick.seconds == alone.seconds


def test_pooled_halves_are_counted_as_they_are():
    pooled = {"data_split": "pooled-halves", "epochs": 1}
    assert foresee_traffic(from_settings(pooled)).samples == (1437 + 360) // 2

import pytest
import torch

from lightsplit.experiments.certificate import SAMPLES, conditional_entropy, measured


def test_the_entropy_is_summed_over_bits_and_averaged_over_classes():
    bits = torch.tensor([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
    labels = torch.tensor([0, 0, 1, 1])
    assert conditional_entropy(bits, labels) == pytest.approx(1.0)
    assert conditional_entropy(bits, torch.arange(4)) == 0


def test_codes_that_differ_are_counted(make_job):
    job = make_job(codec="lightsplit-b", bits=3)
    found = measured(job.trainer.clients[0], job.dataset.test)
    assert found["samples"] == min(SAMPLES, len(job.dataset.test))
    assert 1 <= found["distinct_codes"] <= 8
    assert found["distinct_codes"] <= found["distinct_codes_with_labels"] <= 80
    assert found["reidentification_bound"] == pytest.approx(
        found["distinct_codes"] / found["samples"]
    )
    assert 0 <= found["conditional_entropy"] <= 3


def test_raw_codes_are_all_distinct_and_have_no_bits_to_count(make_job):
    job = make_job(codec="raw")
    found = measured(job.trainer.clients[0], job.dataset.test)
    assert found["reidentification_bound"] == 1
    assert found["conditional_entropy"] is None


def test_a_measurement_leaves_the_client_as_it_was(make_job):
    client = make_job(codec="lightsplit-b").trainer.clients[0]
    client.model.train()
    before = {name: value.clone() for name, value in client.side.state().items()}
    measured(client, make_job().dataset.test)
    assert client.model.training
    assert all(value.equal(before[n]) for n, value in client.side.state().items())


@pytest.mark.slow
@pytest.mark.parametrize(("codec", "bits"), [("lightsplit-b", 16), ("raw", 32 * 1024)])
def test_the_record_promises_bits_times_epochs(finished, codec, bits):
    record = finished(codec=codec)
    given, epochs = record.record["certificate"], 2
    assert given["bits_per_code"] == bits
    assert given["bits_per_sample"] == bits * given["releases"]
    assert given["releases"] == record.job.experiment.training.epochs == epochs
    assert given["epsilon"] is None
    assert "labels" in given["not_about"]

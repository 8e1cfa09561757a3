"""Predictions on codes that the server cannot read."""

from pathlib import Path

import pytest
import torch
from lab.runs import NAMES, Network, build_job

from lightsplit.deployment.prediction import predicting
from lightsplit.errors import ConfigError, RemoteError
from lightsplit.experiments import from_settings, run
from lightsplit.protocol import EncryptedCode
from lightsplit.results import RunFolder
from lightsplit.transports.homomorphic import Encrypting

pytest.importorskip("tenseal")

LINEAR = str(Path(__file__).parent / "own_task" / "linear.py")
SETTINGS = {"task": LINEAR, "codec": "raw", "epochs": 1, "heads": "private"}


@pytest.fixture
def served(tmp_path):
    """Return what serves a run, not yet trained, and gives its twin in one process."""
    networks = []

    def serve(**settings):
        settings = {**SETTINGS, **settings}
        network = Network(tmp_path, **settings)
        networks.append(network.__enter__())
        return network, build_job(**settings)

    yield serve
    for network in networks:
        network.__exit__(None, None, None)


def ask(network, job, use):
    client = job.trainer.clients[0]
    inputs = next(iter(job.trainer._test))[0]
    expected = client.predict(inputs)
    endpoint = network.endpoint(NAMES[0], None)
    with predicting(client, network.contract, endpoint, name=NAMES[0]):
        return expected, use(client, inputs)


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"codec": "lightsplit-f", "ratio": 3}])
def test_encrypted_predictions_are_the_plain_ones(served, settings):
    network, job = served(encrypted=True, **settings)

    def predict(client, inputs):
        return client.predict(inputs), client.send

    expected, (got, send) = ask(network, job, predict)
    torch.testing.assert_close(got, expected, atol=1e-4, rtol=1e-4)
    assert isinstance(send, Encrypting)
    assert send.cost.samples == len(expected)
    assert send.cost.sent_bytes > 100 * send.cost.plain_sent_bytes
    assert send.cost.seconds > send.cost.plain_seconds > 0


@pytest.mark.slow
def test_a_ciphertext_that_is_none_is_refused_and_the_server_goes_on(served):
    network, job = served(encrypted=True)

    def try_both(client, inputs):
        for rubbish in (b"short", b"\0" * 64, (8).to_bytes(8, "little") + b"x" * 64):
            with pytest.raises(RemoteError, match="ciphertext"):
                client.send.send(EncryptedCode(client.index, 0, rubbish))
        return client.predict(inputs)

    expected, got = ask(network, job, try_both)
    torch.testing.assert_close(got, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.slow
def test_a_server_that_reads_codes_refuses_encrypted_ones(served):
    network, job = served()

    def send(client, _inputs):
        with pytest.raises(RemoteError, match="start it with --encrypted"):
            client.send(EncryptedCode(client.index, 0, b"0" * 40))

    ask(network, job, send)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"task.bends": True}, "this one is not linear"),
        ({"topology": "vanilla"}, "this one is not linear"),  # its tail has a ReLU
        ({"codec": "topk", "ratio": 4}, "sends more, or mixes samples"),
        ({"codec": "lightsplit-b", "bits": 4}, "sends more, or mixes samples"),
        ({"format": "int8"}, "format must be fp32"),
        ({"release": "once"}, "drop release once"),
    ],
)
def test_what_cannot_be_computed_is_refused_before_the_run(settings, reason):
    with pytest.raises(ConfigError, match=reason):
        build_job(**{**SETTINGS, "encrypted": True, **settings})


def test_training_is_refused_with_the_reason(tmp_path):
    experiment = from_settings({**SETTINGS, "encrypted": True})
    with pytest.raises(ConfigError, match="training is not encrypted"):
        run(experiment, RunFolder.create(tmp_path / "run"))

"""A server counts the distinct codes that it has read in an evaluation."""

import pytest
import torch

from lightsplit.codecs import Code
from lightsplit.deployment import code_count
from lightsplit.deployment.code_count import CodeCount, CodesSeen
from lightsplit.experiments import build, from_settings
from lightsplit.protocol import CodeMessage, OutputGradient, Recall, StepId


@pytest.fixture
def server():
    settings = {"codec": "lightsplit-b", "bits": 3, "train_limit": 60, "clients": 3}
    return build(from_settings(settings)).trainer.server


@pytest.fixture
def count(server):
    return CodeCount(server)


def codes(*numbers):
    """Return codes of three bits, as few as there are numbers."""
    table = torch.tensor([[n >> place & 1 for place in range(3)] for n in numbers])
    return Code(table.float() * 2 - 1)


@pytest.fixture
def batch(server):
    def batch(client, *numbers) -> CodeMessage:
        at = StepId(client, 0, is_training=False)
        return server.wire.write_code(at, codes(*numbers))

    return batch


def test_the_client_with_the_most_telling_codes_counts(count, batch):
    assert count.worst() is None
    count.add(batch(0, 1, 1, 1, 2))
    count.add(batch(0, 2, 1))
    assert count.worst() == CodesSeen(samples=6, distinct=2)
    count.add(batch(1, 5, 6, 5))
    assert count.worst() == CodesSeen(samples=3, distinct=2)
    assert count.worst().bound == 2 / 3


def test_a_batch_that_is_sent_again_over_a_new_line_counts_once(count, batch):
    count.begin(0)
    count.add(batch(0, 1, 2, 3, 4))
    count.begin(0)  # the line broke, and the grant came again
    count.add(batch(0, 1, 2, 3, 4))
    assert count.worst() == CodesSeen(samples=4, distinct=4)


def test_only_the_first_samples_are_kept(count, batch, monkeypatch):
    monkeypatch.setattr(code_count, "SAMPLES", 5)
    for numbers in ((0, 1, 2), (3, 4, 5), (6, 7)):
        count.add(batch(0, *numbers))
    assert count.worst() == CodesSeen(samples=5, distinct=5)


def test_codes_that_were_sent_once_are_counted_when_they_are_named(count, server):
    server.side.released.add(0, 0, codes(1, 1, 2, 7), is_training=False)
    count.add(Recall(0, 0, torch.tensor([0, 1, 2]), is_training=False))
    assert count.worst() == CodesSeen(samples=3, distinct=2)


def test_a_message_without_a_code_counts_nothing(count):
    count.add(OutputGradient(0, 0, Code(torch.zeros(2, 10))))
    assert count.worst() is None

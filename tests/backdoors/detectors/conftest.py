"""Evidence of clients that are alike, and of some that are not."""

import numpy as np
import pytest
import torch

from lightsplit.backdoors import Evidence

SIZE = 200


def piece(client, vector, before):
    return Evidence(
        client,
        code=vector,
        output=vector,
        gradient=vector,
        weights=(before, before + vector),
    )


def make_field(clients, *, seed=0, noise=0.05, malicious=(), strength=1.0):
    """Return one piece of evidence per client; the malicious lean one way."""
    generator = np.random.default_rng(seed)
    common = generator.standard_normal(SIZE)
    lean = strength * generator.standard_normal(SIZE)
    before = torch.from_numpy(generator.standard_normal(SIZE))
    vectors = common + noise * generator.standard_normal((clients, SIZE))
    vectors[list(malicious)] += lean
    return [
        piece(client, torch.from_numpy(vector), before)
        for client, vector in enumerate(vectors)
    ]


@pytest.fixture(scope="session")
def field():
    return make_field


@pytest.fixture(scope="session")
def make_piece():
    return piece

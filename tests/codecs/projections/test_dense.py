"""The differences between the two dense projections."""

import torch

from lightsplit.codecs.projections import PROJECTIONS


def make(name, size=1024, code_size=128, seed=0):
    return PROJECTIONS.create(name, size=size, code_size=code_size, seed=seed)


def share_kept(projection, activation):
    return (projection.project(activation).norm() / activation.norm()).square()


def test_uniform_keeps_the_mean_of_an_activation_and_haar_does_not():
    constant = torch.ones(1, 1024)
    assert share_kept(make("uniform"), constant) > 0.99
    assert share_kept(make("haar"), constant) < 0.2


def test_haar_keeps_k_of_d_of_the_energy_on_average():
    spike = torch.zeros(1, 64)
    spike[0, 0] = 1
    shares = [share_kept(make("haar", 64, 16, seed), spike) for seed in range(100)]
    assert abs(torch.stack(shares).mean() - 16 / 64) < 0.03


def test_every_entry_of_haar_is_zero_on_average_even_in_the_corner():
    # Without the sign correction LAPACK's corner entry is always negative.
    matrices = [make("haar", 16, 4, seed).matrix() for seed in range(200)]
    mean = torch.stack(matrices).mean(dim=0)
    assert mean.abs().max() < 5 * (1 / 16 / 200) ** 0.5


def test_the_fingerprint_does_not_depend_on_how_the_qr_was_rounded(monkeypatch):
    first = make("haar").fingerprint
    qr = torch.linalg.qr

    def rounded_otherwise(entries):
        columns, triangle = qr(entries)
        return columns * (1 + 1e-7), triangle

    monkeypatch.setattr(torch.linalg, "qr", rounded_otherwise)
    assert make("haar").fingerprint == first

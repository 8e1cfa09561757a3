import math

import pytest
import torch

from lightsplit.codecs import Code
from lightsplit.errors import CodecError
from lightsplit.objectives import ClientView, NoPeek, distance_correlation


def by_definition(one, other):
    """The distance correlation, number by number."""
    n = len(one)

    def centred(rows):
        d = [[math.dist(rows[i], rows[j]) for j in range(n)] for i in range(n)]
        means = [sum(row) / n for row in d]
        mean = sum(means) / n
        return [
            [d[i][j] - means[i] - means[j] + mean for j in range(n)] for i in range(n)
        ]

    def covariance(a, b):
        pairs = [a[i][j] * b[i][j] for i in range(n) for j in range(n)]
        return math.sqrt(sum(pairs) / n**2)

    a, b = centred(one.tolist()), centred(other.tolist())
    return covariance(a, b) / math.sqrt(covariance(a, a) * covariance(b, b))


def test_it_is_the_correlation_of_euclidean_distances():
    one, other = torch.randn(9, 4), torch.randn(9, 3)
    value = distance_correlation(one, other).item()
    assert value == pytest.approx(by_definition(one, other), abs=1e-5)


def test_a_turned_and_scaled_copy_has_one_and_independent_rows_little():
    rows = torch.randn(400, 3)
    turn = torch.linalg.qr(torch.randn(3, 3)).Q
    assert distance_correlation(rows, 7 * rows @ turn + 2).item() == pytest.approx(1)
    assert distance_correlation(rows, torch.randn(400, 3)) < 0.25


@pytest.mark.parametrize("rows", [torch.ones(5, 3), torch.zeros(1, 3)])
def test_equal_rows_and_a_single_one_have_a_finite_gradient(rows):
    rows = rows.requires_grad_()
    distance_correlation(torch.rand(len(rows), 2), rows).backward()
    assert rows.grad.isfinite().all()


def test_its_descent_makes_activations_less_like_the_inputs():
    inputs = torch.randn(64, 6)
    weight = torch.eye(6).requires_grad_()
    before = distance_correlation(inputs, inputs @ weight)
    optimizer = torch.optim.Adam([weight], lr=0.05)
    for _ in range(60):
        optimizer.zero_grad()
        hidden = torch.sin(3 * inputs @ weight)
        distance_correlation(inputs, hidden).backward()
        optimizer.step()
    assert distance_correlation(inputs, hidden) < 0.7 * before


def test_inputs_without_distances_are_refused():
    hidden = torch.randn(4, 3)
    view = ClientView(
        torch.zeros(4, 3).long(), hidden, Code(hidden), None, None, hidden
    )
    with pytest.raises(CodecError, match="one tensor of numbers"):
        NoPeek()(view)

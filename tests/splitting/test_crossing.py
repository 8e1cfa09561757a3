"""Several tensors at one cut travel as one."""

from functools import partial

import pytest
import torch
from torch import nn

from lightsplit.errors import SplitError
from lightsplit.simulation import verify
from lightsplit.splitting import legal_cuts, split
from lightsplit.splitting.arguments import Blank
from lightsplit.splitting.crossing import Crossing

IMAGES, TOKENS, ROWS = (4, 3, 8, 8), (4, 5, 6), (4, 6)


class Pyramid(nn.Module):
    """Maps of two sizes."""

    def __init__(self):
        super().__init__()
        self.fine = nn.Conv2d(3, 4, 3, padding=1)
        self.coarse = nn.Conv2d(4, 6, 2, stride=2)

    def forward(self, x):
        fine = self.fine(x).relu()
        return {"fine": fine, "coarse": self.coarse(fine)}


class Fused(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.ConvTranspose2d(6, 4, 2, stride=2)
        self.inside = nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, maps):
        coarse = maps["coarse"].relu_()  # in place: the piece must be its own
        return self.inside(maps["fine"]) + self.up(coarse), coarse


class Detector(nn.Module):
    """Two maps at both cuts; one of them is read on after the tail's first module."""

    def __init__(self):
        super().__init__()
        self.pyramid, self.fused = Pyramid(), Fused()
        self.last = Both(4, 6)
        self.scale = nn.Parameter(torch.ones(6, 1, 1))

    def forward(self, x):
        fine, coarse = self.fused(self.pyramid(x))
        return self.last(fine, coarse), (coarse * self.scale).mean((2, 3))


class Both(nn.Module):
    def __init__(self, fine, coarse):
        super().__init__()
        self.one, self.two = nn.Conv2d(fine, 2, 1), nn.Conv2d(coarse, 2, 1)

    def forward(self, fine, coarse):
        return self.one(fine).mean((2, 3)) + self.two(coarse).mean((2, 3))


class Streams(nn.Module):
    """A pair at both cuts; the head's second is read by the tail as well."""

    def __init__(self, second=4):
        super().__init__()
        self.start = Pair(6, second)
        self.middle = Pair(6, second)
        self.end = Mixed(second)

    def forward(self, x):
        first, second = self.start(x, x)
        one, two = self.middle(
            first, nn.functional.pad(second, (0, 6 - second.shape[-1]))
        )
        return self.end(one, two) + second.sum(-1, keepdim=True)


class Pair(nn.Module):
    def __init__(self, first, second):
        super().__init__()
        self.a, self.b = nn.Linear(6, first), nn.Linear(6, second)
        self.drop = nn.Dropout(0.3)

    def forward(self, x, y):
        return self.drop(self.a(x)), self.b(y).tanh()


class Mixed(nn.Module):
    def __init__(self, second):
        super().__init__()
        self.a, self.b = nn.Linear(6, 3), nn.Linear(second, 3)

    def forward(self, x, y):
        return self.a(x) + self.b(y)


CASES = {
    "maps of two sizes": (Detector, IMAGES, "pyramid", "last", (4, 4 * 64 + 6 * 16)),
    "rows": (Streams, ROWS, "start", "end", (4, 10)),
    "tokens": (Streams, TOKENS, "start", "end", (4, 5, 10)),
    "no tail": (Streams, ROWS, "start", None, (4, 10)),
}


def _square(output, labels):
    del labels
    found = output if isinstance(output, tuple) else (output,)
    return sum(one.square().mean() for one in found)


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def several(request):
    build, shape, head_until, tail_from, joined = request.param
    torch.manual_seed(0)
    model, cut = build(), {"head_until": head_until, "tail_from": tail_from}
    return model, torch.randn(shape), cut, joined


def test_several_tensors_travel_as_one(several):
    model, x, cut, joined = several
    parts = split(model.eval(), **cut, example=x)
    assert parts.head(x).shape == joined
    assert cut["head_until"] in legal_cuts(model, example=x)


def test_split_equals_unsplit_with_several_tensors_at_both_cuts(several):
    model, x, cut, _ = several
    if cut["tail_from"] is None:
        parts = split(model.eval(), **cut, example=x)
        assert torch.equal(parts.backbone(parts.head(x)), model(x))
        return
    batches = [(torch.randn_like(x), torch.zeros(4)) for _ in range(4)]
    result = verify(
        model,
        batches,
        optimizer=partial(torch.optim.Adam, lr=1e-2),
        loss=_square,
        **cut,
    )
    assert result.is_exact, result


def test_a_tensor_without_a_row_for_each_sample_is_refused_by_name():
    class Biased(Pair):
        def forward(self, x, y):
            first, second = super().forward(x, y)
            return first, second.mean(0, keepdim=True)

    model = Streams()
    model.start = Biased(6, 4)
    with pytest.raises(SplitError, match=r"tensor 2 of 'start' is \(1, 4\) and has no"):
        split(model, head_until="start", tail_from="end", example=torch.randn(ROWS))


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (lambda y: y.argmax(-1, keepdim=True), r"has no gradient \(torch.int64\)"),
        (lambda y: y.double(), r"'start' is torch.float64, and .* is torch.float32"),
    ],
)
def test_a_tensor_of_another_kind_is_refused_by_name(made, reason):
    class Odd(Pair):
        def forward(self, x, y):
            first, second = super().forward(x, y)
            return first, made(second)

    model = Streams()
    model.start = Odd(6, 4)
    model.middle = Taking()
    with pytest.raises(SplitError, match=f"tensor 2 of 'start'.*{reason}"):
        split(model, head_until="start", tail_from="end", example=torch.randn(ROWS))


class Taking(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 6), nn.Linear(1, 4)

    def forward(self, x, y):
        return self.a(x), self.b(y[:, :1].float())


def test_an_input_that_the_head_hands_on_is_refused_unless_it_is_shared():
    class HandsOn(Pair):
        def forward(self, x, y):
            return self.a(x), y.abs()

    model = Streams(second=6)
    model.start = HandsOn(6, 6)
    with pytest.raises(SplitError, match=r"made from the input 'x'.*only if share"):
        split(model, head_until="start", tail_from="end", example=torch.randn(ROWS))


def test_tensors_that_change_their_shapes_are_refused_by_name():
    crossing = Crossing(
        "cut",
        ("one", "two"),
        ((0,), (1,)),
        (Blank((2, 3), torch.float32), Blank((2, 4, 4), torch.float32)),
        (False, False),
    )
    joined = crossing.join([torch.ones(5, 3), torch.ones(5, 4, 4)])
    assert [tuple(one.shape) for one in crossing.apart(joined)] == [(5, 3), (5, 4, 4)]
    with pytest.raises(SplitError, match=r"expected two to be \(5, 4, 4\), got"):
        crossing.join([torch.ones(5, 3), torch.ones(5, 2, 4)])


def test_other_tensors_in_training_are_refused():
    class Changing(Pair):
        def forward(self, x, y):
            first, second = super().forward(x, y)
            return (second, first) if self.training else (first, second)

    class Order(Streams):
        def forward(self, x):
            first, second = self.start(x, x)
            used = second if self.training else first
            return self.end(*self.middle(used, used))

    model = Order()
    model.start = Changing(6, 4)
    with pytest.raises(SplitError, match="other tensors cross there in training mode"):
        split(model, head_until="start", tail_from="end", example=torch.randn(ROWS))

"""Batches with other inputs than the example."""

import copy

import pytest
import torch
from torch import nn

from lightsplit.errors import SplitError
from lightsplit.splitting import companions_of, run_client, split

X = torch.randn(4, 6)


class Net(nn.Module):
    """Reads each optional input in one place."""

    def __init__(self):
        super().__init__()
        self.first, self.middle = nn.Linear(6, 6), Middle()
        self.second, self.last = nn.Linear(6, 6), nn.Linear(6, 3)
        self.drop, self.norm = nn.Dropout(0.5), nn.BatchNorm1d(6)

    def forward(
        self,
        x,
        *,
        types=None,
        labels=None,
        mask=None,
        gate=None,
        late=None,
        flag=None,
        size=2.0,
        skips=False,
        weight=1,
        count=None,
    ):
        x = self.norm(self.drop(self.first(x)))
        if types is not None:
            x = x + types
        if flag is not None and bool(flag.all()):
            flag = None
        factor = 1 if labels is None else 2
        x = self.middle(self.pick(x), mask, factor=factor, count=count)
        if gate is not None:
            x = x * gate
        if not skips:
            x = self.second(x) * size
        if flag is not None:
            x = x + 1
        if late is not None:
            x = x + late
        logits = self.last(x) * weight
        if labels is not None:
            return nn.functional.cross_entropy(logits, labels), logits
        return logits

    @staticmethod
    def pick(x):
        return x


class Middle(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 6)

    def forward(self, x, mask=None, factor=1, count=None):
        del count  # as layers of transformers take what only the loss reads
        x = self.layer(x) * factor
        return x if mask is None else x * mask


class Early(Net):
    """The head ends after the optional types were added."""

    def __init__(self):
        super().__init__()
        self.picked = nn.Identity()

    def pick(self, x):
        return self.picked(x)


def make(kind=Early, head_until="picked", **example):
    torch.manual_seed(0)
    model = kind().eval()
    cut = {
        "head_until": head_until,
        "tail_from": "last",
        "example": {"x": X, **example},
    }
    return model, split(model, **cut)


def run(parts, batch):
    companions = companions_of(parts.head, batch)
    return run_client(
        parts.head,
        parts.tail,
        lambda z: parts.backbone(z, *((companions,) if companions else ())),
        batch,
    )


LABELS = torch.tensor([0, 1, 2, 0])
ROWS = torch.rand(4, 6)


@pytest.mark.parametrize(
    "more",
    [
        {"types": ROWS},
        {"weight": 3},
        {"mask": None},
        {"count": torch.tensor(4)},
    ],
)
def test_what_only_head_or_tail_read_passes(more):
    model, parts = make()
    assert torch.equal(run(parts, {"x": X, **more}), model(X, **more))


def test_labels_of_a_loss_in_the_tail_pass_even_if_they_are_the_input():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Embedding(9, 4), nn.Linear(4, 4)
            self.c = nn.Linear(4, 9)

        def forward(self, ids, labels=None):
            logits = self.c(self.b(self.a(ids)))
            if labels is None:
                return logits
            return nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())

    ids = torch.randint(9, (3, 5))
    model = Own()
    parts = split(model, head_until="a", tail_from="c", example={"ids": ids})
    batch = {"ids": ids, "labels": ids}
    assert torch.equal(run(parts, batch), model(**batch))


def test_an_input_that_the_batch_lacks_passes_where_only_the_client_read_it():
    model, parts = make(types=ROWS, weight=3)
    assert torch.equal(run(parts, {"x": X}), model(X))


READ = {
    "a module of the server": ({"mask": ROWS}, "'mask'.*'middle' reads it at the serv"),
    "code before a module of the server": ({"gate": ROWS}, "'gate'.*'second' reads it"),
    "code before the tail": ({"late": ROWS}, "'late'.*'last' takes what the server m"),
    "a branch that this batch does not take": (
        {"flag": torch.ones(4)},
        "'flag'.*the model itself branches on it",
    ),
}
OTHER = {
    "a module that is left out": ({"skips": True}, "has another 'skips'|the input 'sk"),
    "a number that the server multiplies by": ({"size": 3.0}, "'size'"),
    "an argument of a module of the server": ({"labels": LABELS}, "'labels'"),
}


@pytest.mark.parametrize("case", READ.values(), ids=READ.keys())
def test_what_the_server_would_have_to_read_is_refused_by_name(case):
    more, reason = case
    _, parts = make()
    with pytest.raises(SplitError, match=f"the batch has the input {reason}"):
        run(parts, {"x": X, **more})


@pytest.mark.parametrize("case", OTHER.values(), ids=OTHER.keys())
def test_what_changes_the_way_between_the_cuts_is_refused_by_name(case):
    more, named = case
    _, parts = make()
    with pytest.raises(SplitError, match=f"the batch has .*({named}).*is another one"):
        run(parts, {"x": X, **more})


def test_a_module_of_the_server_that_cannot_be_looked_into_must_not_take_it():
    class Closed(Middle):
        def forward(self, x, mask=None, factor=1, count=None):
            if x.sum().item() is None:  # it does not run without numbers
                return x
            return super().forward(x, mask, factor, count)

    class Holding(Early):
        def __init__(self):
            super().__init__()
            self.middle = Closed()

    _, parts = make(Holding)
    with pytest.raises(SplitError, match=r"'count'.* 'middle' takes it at the serv"):
        run(parts, {"x": X, "count": torch.tensor(4)})


@pytest.mark.parametrize("name", ["skips", "size"])
def test_another_value_than_the_examples_is_refused_by_name(name):
    first, second = {"skips": (False, True), "size": (1.0, 2.0)}[name]
    _, parts = make(**{name: first})
    with pytest.raises(SplitError, match=f"the batch has another '{name}' than the ex"):
        run(parts, {"x": X, name: second})


def test_an_input_that_decided_the_way_must_not_be_missing():
    _, parts = make(size=3.0)
    with pytest.raises(SplitError, match="the batch lacks the input 'size', which the"):
        run(parts, {"x": X})


def test_the_check_is_made_once_and_leaves_nothing_behind():
    model, parts = make()
    whole = copy.deepcopy(model).train()
    parts.head.train(), parts.backbone.train(), parts.tail.train()
    calls = []
    parts.head.first.register_forward_hook(lambda *_: calls.append(1))
    for step in range(2):
        results = []
        for one in (lambda b: run(parts, b), lambda b: whole(**b)):
            torch.manual_seed(step)
            results.append(one({"x": X, "types": ROWS}))
        assert torch.equal(*results)
    assert torch.equal(parts.head.norm.running_mean, whole.norm.running_mean)
    assert len(calls) == 2 + 2

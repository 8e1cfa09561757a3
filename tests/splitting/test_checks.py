import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from lightsplit.errors import SplitError
from lightsplit.splitting import split


class Checkpointed(nn.Module):
    """Saves memory in its stages as trainers do: only while training."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.stage = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3))
        self.middle = nn.Linear(3, 3)
        self.last = nn.Linear(3, 3)

    def forward(self, x):
        x = self.first(x)
        if self.training:
            x = checkpoint(self.stage, x, use_reentrant=False)
        else:
            x = self.stage(x)
        return self.last(self.middle(x))


def _cut(head_until, tail_from):
    return split(
        Checkpointed(),
        head_until=head_until,
        tail_from=tail_from,
        example=torch.randn(2, 3),
    )


@pytest.mark.parametrize(
    ("head_until", "tail_from", "blamed"),
    [
        ("stage.0", "last", "head_until='stage.0'"),
        ("first", "stage.2", "tail_from='stage.2'"),
    ],
)
def test_gradient_checkpointing_over_a_cut_is_refused(head_until, tail_from, blamed):
    with pytest.raises(SplitError, match="gradient checkpointing runs over") as error:
        _cut(head_until, tail_from)
    assert blamed in str(error.value)


def test_gradient_checkpointing_inside_one_part_is_fine():
    parts = _cut("first", "last")
    x = torch.randn(2, 3)
    parts.tail(parts.backbone(parts.head(x))).sum().backward()
    grads = [each.grad.clone() for each in parts.whole.parameters()]
    parts.whole.zero_grad()
    parts.whole(x).sum().backward()
    for ours, theirs in zip(grads, parts.whole.parameters(), strict=True):
        assert torch.equal(ours, theirs.grad)

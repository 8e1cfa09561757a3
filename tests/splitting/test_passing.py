"""Results that only stand-ins take need no memory; all others can be written to."""

import pytest
import torch
from torch import nn

from lightsplit.splitting import run_client, split
from lightsplit.splitting.stand_ins import StandIn

BATCH = torch.rand(4, 6)


class Chain(nn.Module):
    """Hands tensors from module to module, with ``between`` in the middle."""

    def __init__(self, between=lambda x, act: act(x)):
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.act1, self.act2 = nn.ReLU(inplace=True), nn.ReLU(inplace=True)
        self.cut = nn.Linear(6, 6)
        self.middle = nn.Linear(6, 6)
        self.last = nn.Linear(6, 3)
        self.between = between

    def forward(self, x):
        x = self.cut(self.between(self.first(x), self.act1))
        return self.last(self.between(self.middle(x), self.act2))


def written_to(x, act):
    x = act(x)
    x += 1
    return x


def written_to_after_it_was_passed_on(x, act):
    act(x)  # changes x
    x += 1
    return x


def parts_of(model):
    return split(model, head_until="cut", tail_from="last", example=BATCH)


def memory_of(part, path):
    """Return how many numbers the result of a stand-in has memory for."""
    found = []
    stand_in = part.get_submodule(path)
    assert isinstance(stand_in, StandIn)
    hook = stand_in.register_forward_hook(lambda *call: found.append(call[2]))
    part(torch.rand(4, 6))
    hook.remove()
    assert found[0].shape == (4, 6)
    assert not found[0].any()
    return found[0].untyped_storage().nbytes() // 4


def test_a_result_that_only_stand_ins_take_has_memory_for_one_number():
    backbone = parts_of(Chain()).backbone
    assert memory_of(backbone, "first") == memory_of(backbone, "act1") == 1


@pytest.mark.parametrize(
    "between",
    [
        lambda x, act: act(x),
        lambda x, act: act(x) + 1,
        written_to,
        written_to_after_it_was_passed_on,
    ],
)
@pytest.mark.parametrize("mode", [True, False])
def test_the_code_of_a_model_may_write_into_what_it_gets(between, mode):
    model = Chain(between).train(mode)
    parts = parts_of(model)
    output = run_client(parts.head, parts.tail, parts.backbone, BATCH)
    torch.testing.assert_close(output, model(BATCH), rtol=0, atol=0)
    torch.testing.assert_close(parts.tail(parts.backbone(parts.head(BATCH))), output)

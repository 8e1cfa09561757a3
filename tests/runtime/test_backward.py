import pytest
import torch
from torch import nn

from lightsplit.runtime.backward import backward, gradient_at

GRADIENT = torch.randn(5, 3)


def network():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(), nn.Linear(8, 3))
    return model, torch.randn(5, 4, requires_grad=True)


def gradients(run, end):
    """Return what ``run`` leaves at the input and at every weight."""
    model, inputs = network()
    for _ in range(2):  # gradients add up until they are forgotten
        run(end(model(inputs)))
    return [inputs.grad, *(weight.grad for weight in model.parameters())]


@pytest.mark.parametrize(
    ("ours", "torchs", "end"),
    [
        (backward, torch.Tensor.backward, lambda output: output.square().mean()),
        (backward, torch.Tensor.backward, lambda output: output[:1, :1]),
        (
            lambda output: backward(output, GRADIENT),
            lambda output: output.backward(GRADIENT),
            lambda output: output,
        ),
    ],
    ids=["loss", "one number of two dimensions", "gradient"],
)
def test_a_pass_leaves_what_torchs_own_leaves_to_the_last_bit(ours, torchs, end):
    found, expected = gradients(ours, end), gradients(torchs, end)
    assert len(found) == 5
    assert all(map(torch.equal, found, expected))


def test_hooks_of_modules_and_tensors_are_called():
    model, inputs = network()
    seen = []
    inputs.register_hook(lambda gradient: seen.append(gradient.shape))
    model[0].register_full_backward_hook(lambda *_: seen.append("module"))
    backward(model(inputs).sum())
    assert sorted(map(str, seen)) == ["module", "torch.Size([5, 4])"]


def test_a_graph_is_gone_after_its_pass():
    loss = torch.rand(3, requires_grad=True).exp().sum()
    backward(loss)
    with pytest.raises(RuntimeError, match="second time"):
        backward(loss)


@pytest.mark.parametrize(
    ("output", "gradient", "match"),
    [
        (torch.ones(2, requires_grad=True).exp(), None, "only for scalar outputs"),
        (torch.ones(()), None, "does not require grad"),
        (torch.ones(2, requires_grad=True).exp(), torch.ones(3), "expected shape"),
    ],
    ids=["no scalar", "no graph", "another shape"],
)
def test_what_torch_refuses_is_refused(output, gradient, match):
    with pytest.raises(RuntimeError, match=match):
        backward(output, gradient)


def test_a_leaf_that_the_pass_did_not_reach_has_no_gradient():
    values = torch.rand(2, 3, requires_grad=True)
    assert torch.equal(gradient_at(values), torch.zeros(2, 3))


def test_off_the_cpu_the_pass_is_torchs_own():
    values = torch.rand(2, 3, device="meta", requires_grad=True)
    backward(values.exp().sum())
    assert gradient_at(values).device == values.device
    assert values.grad.shape == values.shape

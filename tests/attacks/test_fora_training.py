"""One iteration of FORA is the released one, with nothing computed twice."""

import copy

import torch
from torch.nn.functional import mse_loss

from lightsplit.attacks.divergences import gradient_penalty, multi_kernel_mmd
from lightsplit.attacks.fora_networks import ConstantSlopes
from lightsplit.attacks.fora_training import Imitation, Settings
from lightsplit.codecs import CODECS

SETTINGS = Settings(width=8)


def make_imitation():
    torch.manual_seed(1)
    made = Imitation(
        CODECS.create("raw", shape=(4, 4, 4), ratio=1),
        torch.nn.Identity(),
        image=(1, 8, 8),
        settings=SETTINGS,
        works_on_codes=False,
        device=torch.device("cpu"),
    )
    for learner in made.learners.values():
        learner.network.double()
    return made


def batch():
    images = torch.rand(6, 1, 8, 8, dtype=torch.float64)
    return torch.rand(6, 4, 4, 4, dtype=torch.float64), images


def released(networks, optimizers, victims, images):
    """Do an iteration as the authors wrote it, pass by pass."""
    images = images * 2 - 1
    before = networks["substitute"](images)
    judged = networks["critic"](before).mean()
    step(
        optimizers["substitute"], 0.2 * judged + 0.8 * multi_kernel_mmd(victims, before)
    )
    after = networks["substitute"](images).detach()
    step(optimizers["decoder"], mse_loss(networks["decoder"](after), images))
    fake, critic = before.detach(), networks["critic"]
    penalty = gradient_penalty(critic, fake, victims)
    gap = critic(victims).mean() - critic(fake).mean()
    step(optimizers["critic"], gap + 1000 * penalty)
    networks["decoder"](victims)


def step(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def test_five_iterations_are_those_of_the_released_order():
    ours = make_imitation()
    networks = {n: copy.deepcopy(one.network) for n, one in ours.learners.items()}
    rates = {"substitute": 1e-4, "decoder": 1e-4, "critic": 3e-4}
    optimizers = {
        name: torch.optim.Adam(network.parameters(), lr=rates[name])
        for name, network in networks.items()
    }
    for seed in range(5):
        torch.manual_seed(seed)
        victims, images = batch()
        released(networks, optimizers, victims, images)
        torch.manual_seed(seed)
        ours.learn(*batch())
    for name, network in networks.items():
        state = ours.learners[name].network.state_dict()
        torch.testing.assert_close(state, network.state_dict(), msg=name)


def test_the_critic_is_run_once_on_each_of_three_batches():
    ours, runs = make_imitation(), []
    ours.learners["critic"].network.register_forward_hook(lambda *_: runs.append(1))
    ours.learn(*batch())
    assert len(runs) == 3  # the substitute's, the victim's, those between


def test_constant_slopes_are_those_of_a_relu():
    inputs = torch.tensor([-2.0, 0.0, 3.0], requires_grad=True)
    outputs = ConstantSlopes()(inputs)
    assert torch.equal(outputs, inputs.relu())
    (slopes,) = torch.autograd.grad(outputs.sum(), inputs, create_graph=True)
    assert slopes.tolist() == [0, 0, 1]


def test_constant_slopes_send_nothing_back_when_a_slope_is_differentiated():
    inputs = torch.tensor([-2.0, 3.0], requires_grad=True)
    weight = torch.tensor(2.0, requires_grad=True)
    outputs = weight * ConstantSlopes()(inputs)
    (slopes,) = torch.autograd.grad(outputs.sum(), inputs, create_graph=True)
    by_weight, by_inputs = torch.autograd.grad(
        slopes.sum(), [weight, inputs], allow_unused=True
    )
    assert by_weight == 1
    assert by_inputs is None

import pytest
import torch

from lightsplit.backdoors import FeatureSpaceHijacker
from lightsplit.codecs import CODECS, Code
from lightsplit.errors import ConfigError, ProtocolError
from lightsplit.protocol import CodeGradient, CodeMessage, OutputGradient, OutputMessage

pytestmark = pytest.mark.slow

PUBLIC = torch.rand(20, 1, 4, 4)


def make(seed=0, codec="raw", **options):
    made = CODECS.create(codec, **{"shape": (6,), "ratio": 1, **options})
    return FeatureSpaceHijacker(
        PUBLIC, made, forward=lambda code: Code(code.values[:, :2]), seed=seed
    )


def code(step=0, **options):
    generator = torch.Generator().manual_seed(step)
    return CodeMessage(0, step, Code(torch.randn(5, 6, generator=generator)), **options)


def test_replies_look_like_an_honest_servers():
    hijacker = make()
    output = hijacker.handle(code())
    assert isinstance(output, OutputMessage)
    assert output.output.values.shape == (5, 2)
    reply = hijacker.handle(OutputGradient(0, 0, torch.randn(5, 2)))
    assert isinstance(reply, CodeGradient)
    assert reply.gradient.shape == (5, 6)


def test_the_vanilla_topology_is_answered_at_once():
    reply = make().handle(code(labels=torch.arange(5)))
    assert isinstance(reply, CodeGradient)
    assert reply.loss is not None


def test_the_gradient_does_not_depend_on_the_clients_output_gradient():
    gradients = []
    for said in (torch.zeros(5, 2), torch.randn(5, 2)):
        hijacker = make()
        hijacker.handle(code())
        gradients.append(hijacker.handle(OutputGradient(0, 0, said)).gradient)
    assert torch.equal(*gradients)
    assert gradients[0].abs().sum() > 0


def test_evaluation_teaches_it_nothing():
    hijacker = make()
    before = [p.clone() for p in hijacker.critic.parameters()]
    hijacker.handle(code(is_training=False))
    after = list(hijacker.critic.parameters())
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


def test_a_gradient_without_its_code_is_refused():
    with pytest.raises(ProtocolError, match="step 3 of client 0 has sent no code"):
        make().handle(OutputGradient(0, 3, torch.zeros(5, 2)))


def test_the_same_seed_gives_the_same_attack():
    def run(seed):
        hijacker = make(seed)
        for step in range(3):
            hijacker.handle(code(step))
        return hijacker.reconstruct(torch.zeros(2, 6))

    assert torch.equal(run(1), run(1))
    assert not torch.equal(run(1), run(2))


def test_guesses_are_images():
    guesses = make().reconstruct(torch.randn(7, 6))
    assert guesses.shape == (7, 1, 4, 4)
    assert 0 <= guesses.min() <= guesses.max() <= 1


@pytest.mark.parametrize("codec", ["lightsplit-f", "lightsplit-l", "learned-1x1"])
def test_the_pilot_makes_codes_as_the_client_does(codec):
    options = {"shape": (4, 2, 2), "ratio": 4}
    options |= {"hidden": 8} if codec == "lightsplit-l" else {}
    hijacker = make(codec=codec, **options)
    codes = hijacker.pilot(PUBLIC)
    assert codes.shape == (20, 4)
    assert hijacker.reconstruct(codes).shape == PUBLIC.shape


def test_a_code_with_places_is_refused():
    with pytest.raises(ConfigError, match="without side information, got 'topk'"):
        make(codec="topk", ratio=3)


def test_codes_that_the_head_makes_come_to_look_public():
    """A free code, moved only by the gradients received, ends where the pilot's are."""
    torch.manual_seed(0)
    hijacker, values = make(), torch.nn.Parameter(torch.randn(32, 6) + 8)
    optimizer = torch.optim.Adam([values], lr=0.05)
    distances = []
    for step in range(400):
        hijacker.handle(CodeMessage(0, step, Code(values.detach())))
        reply = hijacker.handle(OutputGradient(0, step, torch.zeros(32, 2)))
        values.grad = reply.gradient
        optimizer.step()
        public = hijacker.pilot(PUBLIC).mean(0)
        distances.append((values.mean(0) - public).norm().item())
    assert distances[-1] < 0.2 * distances[0]

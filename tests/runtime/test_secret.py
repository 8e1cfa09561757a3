import copy
import pickle
import stat

import pytest
import torch
from torch import nn

from lightsplit import seeding
from lightsplit.errors import ConfigError
from lightsplit.runtime import Client, ClientSide, Secret
from lightsplit.runtime.secret import ClientDraws

LONG = Secret(2**255 + 12345)


def drawn(scope, count=8):
    with scope:
        return torch.rand(count)


def test_random_secrets_differ_and_are_no_seeds():
    found = {Secret.random() for _ in range(50)}
    assert len(found) == 50
    assert not any(secret.is_seed for secret in found)


@pytest.mark.parametrize("value", [-(2**80), 2**256, 2**300])
def test_a_value_out_of_range_is_refused_without_showing_it(value):
    with pytest.raises(ConfigError, match="a secret must be an integer") as caught:
        Secret(value)
    assert str(abs(value)) not in str(caught.value)


def test_nothing_shows_the_value():
    for text in (repr(LONG), str(LONG), f"{LONG}"):
        assert str(LONG.value) not in text
        assert f"{LONG.value:x}" not in text
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(LONG)
    assert copy.deepcopy([LONG])[0] is LONG
    assert copy.copy(LONG) is LONG


@pytest.mark.parametrize("secret", [Secret(0), Secret(7), LONG, Secret(2**256 - 1)])
def test_a_saved_secret_comes_back_from_a_file_for_its_owner_alone(secret, tmp_path):
    path = tmp_path / "new" / "secret"
    secret.save(path)
    assert Secret.load(path) == secret
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in path.parent.iterdir()] == ["secret"]


def test_a_secret_is_made_once_and_kept(tmp_path):
    first = Secret.kept(tmp_path / "secret")
    assert not first.is_seed
    assert Secret.kept(tmp_path / "secret") == first


def test_a_derived_secret_depends_on_the_secret_and_on_the_text():
    found = {LONG, LONG.derived("a"), LONG.derived("b"), Secret(1).derived("a")}
    assert len(found) == 4
    assert LONG.derived("a") == LONG.derived("a")
    assert not any(secret.is_seed for secret in found)


def test_a_secret_is_never_overwritten(tmp_path):
    path = tmp_path / "secret"
    Secret(1).save(path)
    with pytest.raises(ConfigError, match="will not be overwritten"):
        Secret(2).save(path)
    assert Secret.load(path) == Secret(1)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_file_that_others_can_use_is_refused(mode, tmp_path):
    path = tmp_path / "secret"
    LONG.save(path)
    path.chmod(mode)
    with pytest.raises(ConfigError, match=f"mode {mode:04o}.*chmod 600"):
        Secret.load(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"7",
        b"lightsplit-secret-1:",
        b"lightsplit-secret-1:xyz",
        b"lightsplit-secret-1:-1",
        b"lightsplit-secret-1:0_1",
        b"lightsplit-secret-1:1\n2\n",
        b"lightsplit-secret-2:1\n",
        b"lightsplit-secret-1:" + b"f" * 65,
        b"lightsplit-key-1:AAAA",
        bytes(range(256)),
    ],
)
def test_an_empty_or_odd_file_is_refused(content, tmp_path):
    path = tmp_path / "secret"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match=r"secret is not a client's secret: expected"):
        Secret.load(path)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="cannot read"):
        Secret.load(tmp_path / "nowhere")


@pytest.mark.parametrize("seed", [0, 3, 2**64 - 1])
def test_the_secret_of_a_seed_draws_the_same_as_the_run(seed):
    names = (2, 5, "head")
    mine = drawn(Secret(seed).scope(*names))
    assert torch.equal(mine, drawn(seeding.scope(seed, *names)))


def test_a_real_secret_draws_differently_from_every_seed_of_torch():
    """Torch uses 32 bits of its seed; knowing the derived one must be of no use."""
    names = (2, 5, "head")
    mine = drawn(LONG.scope(*names))
    assert torch.equal(mine, drawn(LONG.scope(*names)))
    assert not torch.equal(mine, drawn(seeding.scope(LONG.value, *names)))
    assert not torch.equal(mine, drawn(LONG.scope(2, 6, "head")))


def test_predictions_are_counted_from_the_start_of_each_step():
    draws = ClientDraws(Secret(5))
    first = [drawn(draws.prediction(1, 4)) for _ in range(2)]
    assert torch.equal(first[0], drawn(seeding.scope(5, 1, 4, "predict", 0)))
    assert torch.equal(first[1], drawn(seeding.scope(5, 1, 4, "predict", 1)))
    later = drawn(draws.prediction(1, 5))
    assert torch.equal(later, drawn(seeding.scope(5, 1, 5, "predict", 0)))
    draws.training(1, 4, "head")  # the same step again, after the run went back
    drawn(draws.prediction(1, 5))
    draws.training(1, 4, "head")
    assert torch.equal(later, drawn(draws.prediction(1, 5)))


class Noisy(nn.Module):
    """Adds noise in every mode."""

    def forward(self, inputs):
        return inputs + torch.randn_like(inputs)


def noisy_client(pair, secret):
    ours, messages = pair(), []

    def send(message):
        messages.append(message)
        return ours.server.handle(message)

    head = nn.Sequential(ours.parts.head, Noisy())
    side = ClientSide(head, ours.parts.tail, ours.codec, torch.optim.SGD)
    return Client(side, send, index=2, secret=secret), messages


def noise_of(pair, secret, batch):
    """Return the noise in the first code of a client, as its owner can tell it."""
    client, messages = noisy_client(pair, secret)
    client.step(*batch)
    clean = pair().parts.head.train()(batch[0])
    return messages[0].code.values - clean.detach()


def redrawn_noise(seed, shape):
    """Return the noise that a server draws from the contract's seed."""
    with seeding.scope(seed, 2, 0, "head"):
        return torch.randn(shape)


@pytest.mark.parametrize("is_secret", [False, True])
def test_a_server_redraws_the_noise_of_a_seed_and_not_of_a_secret(
    pair, make_batches, is_secret
):
    batch = make_batches(1)[0]
    secret = Secret.random() if is_secret else Secret(3)
    noise = noise_of(pair, secret, batch)
    guess = redrawn_noise(3, noise.shape)
    assert torch.allclose(noise, guess, atol=1e-5) is not is_secret


@pytest.mark.parametrize("secret", [Secret(3), LONG])
def test_a_prediction_draws_from_the_secret_alone(pair, make_batches, secret):
    inputs = make_batches(1)[0][0]

    def predictions():
        client, messages = noisy_client(pair, secret)
        for _ in range(2):
            client.predict(inputs)
        return [message.code.values for message in messages]

    state = torch.get_rng_state()
    first = predictions()
    torch.manual_seed(99)
    again = predictions()
    assert all(map(torch.equal, first, again))
    assert not torch.equal(first[0], first[1])  # the mean of many would undo the noise
    torch.set_rng_state(state)

"""The server cannot redraw what a client draws from its own secret.

The attacker here has the contract, the run's seed, every message, and more than any
server has: the client's images, and for the noise even the true head. It must fail
against a random secret and succeed where the secret is the run's seed, else it would
prove nothing.
"""

import shutil
import stat

import pytest
import torch
from lab.eavesdropping import overheard
from lab.faults import Moments, left_behind, lines, supervise
from lab.processes import Cluster
from lab.runs import NAMES, assert_same_weights

from lightsplit import seeding
from lightsplit.codecs import Code
from lightsplit.codecs.raw import RawEncoder
from lightsplit.deployment.endpoint import Endpoint
from lightsplit.deployment.join_options import JoinOptions
from lightsplit.errors import ConfigError
from lightsplit.experiments import build, from_settings, pieces
from lightsplit.experiments.deploy import join_experiment
from lightsplit.experiments.own_secret import OwnSecret
from lightsplit.runtime import Secret
from lightsplit.transports.sealing import SealingKey

SEED = 4
STILL = {  # a rate at which no weight moves: the last head is the first one
    "seed": SEED,
    "clients": 1,
    "train_limit": 48,
    "test_limit": 20,
    "batch_size": 16,
    "epochs": 1,
    "codec": "raw",
    "ratio": 1,
    "optimizer": "sgd",
    "lr": 1e-30,
    "momentum": 0.0,
}
SECRETS = {"the run's seed": Secret(SEED), "random": None}


@pytest.fixture(params=SECRETS)
def is_random(request):
    return request.param == "random"


@pytest.fixture
def heard(is_random, tmp_path, monkeypatch):
    """A networked run, and what its server and its client have at the end."""
    given = None if is_random else Secret(SEED)
    return overheard(from_settings(STILL), tmp_path, monkeypatch, secret=given)


@pytest.fixture
def redrawn():
    """The run as the server can build it, from the seed in the contract."""
    return build(from_settings(STILL))


def codes_of(client, images):
    client.side.set_training(True)
    with torch.no_grad():
        return client.side.encode(images).values


def share_explained(codes, guesses):
    """Return how many rows of ``codes`` are among ``guesses``."""
    exactly = "donot_use_mm_for_euclid_dist"
    distances = torch.cdist(codes.flatten(1), guesses.flatten(1), compute_mode=exactly)
    return float((distances.min(1).values < 1e-3).float().mean())


def test_the_head_a_server_draws_from_the_seed_is_not_the_clients(
    heard, redrawn, is_random
):
    head = redrawn.trainer.clients[0].side.state()
    weights = [name for name in head if head[name].ndim > 1]
    assert {name.split(".")[0] for name in weights} == {"head", "tail"}
    for name in weights:
        assert torch.equal(head[name], heard.state[name]) is not is_random


def test_codes_of_the_very_images_by_the_redrawn_head_are_not_the_clients(
    heard, redrawn, is_random
):
    client = redrawn.trainer.clients[0]
    batches = redrawn.trainer.batches[0]
    assert len(heard.codes) == len(batches)
    own = torch.cat([codes_of(client, batches[step][0]) for step in heard.codes])
    found = [share_explained(codes, own) for codes in heard.codes.values()]
    assert found == [0.0 if is_random else 1.0] * len(found)


def test_the_order_of_the_batches_a_server_redraws_is_not_the_clients(
    heard, redrawn, is_random
):
    client = redrawn.trainer.clients[0]
    client.side.load(heard.state)  # an oracle: the true head
    batches = redrawn.trainer.batches[0]
    guesses = [codes_of(client, batches[step][0]) for step in heard.codes]
    matches = [
        torch.allclose(guess, heard.codes[step], atol=1e-5)
        for step, guess in enumerate(guesses)
    ]
    assert matches == [not is_random] * len(matches)


def test_the_noise_a_server_redraws_is_not_the_clients(
    redrawn, is_random, tmp_path, monkeypatch
):
    def forward(_encoder, activation):
        return Code(activation + torch.randn_like(activation))

    with monkeypatch.context() as patch:
        patch.setattr(RawEncoder, "forward", forward)
        given = None if is_random else Secret(SEED)
        heard = overheard(from_settings(STILL), tmp_path, patch, secret=given)
    kept = OwnSecret.find(given, tmp_path / "alice")
    own = kept.for_run(redrawn.experiment).own
    client = redrawn.trainer.clients[0]
    client.side.load(heard.state)
    batches = pieces.make_batches(  # an oracle: the true head and the true order
        redrawn.experiment, redrawn.dataset.train, redrawn.held[0], 0, secret=own
    )
    for step, code in heard.codes.items():
        noise = code - codes_of(client, batches[step][0])
        with seeding.scope(SEED, 0, step, "head"):
            guess = torch.randn_like(noise)
        assert torch.allclose(noise, guess, atol=1e-4) is not is_random
        with own.scope(0, step, "head"):  # what the owner can do, the test can
            assert torch.allclose(noise, torch.randn_like(noise), atol=1e-4)


def test_the_private_codes_a_server_redraws_are_not_the_clients(
    is_random, tmp_path, monkeypatch
):
    private = {"codec": "lightsplit-b", "bits": 6, "release": "once", "dp": 0.5}
    experiment = from_settings({**STILL, "ratio": None, "local_epochs": 1, **private})
    given = None if is_random else Secret(SEED)
    heard = overheard(experiment, tmp_path, monkeypatch, secret=given)
    job = build(experiment)
    client, batches = job.trainer.clients[0], job.trainer.batches[0]
    client.side.load(heard.state)  # an oracle: the true head and encoder
    explained = []
    for place in range(3):
        numbers = batches.in_order(place)
        first = int(numbers[0])
        client.model.eval()
        with torch.no_grad(), client.model.draws.release(0, "train", first):
            made = client.model.encode(
                client.side.activate(batches.numbered(numbers)[0])
            )
        sent = client.side.codec.unpack(heard.released[True, first]).values
        explained.append((made.sent.values == sent).all(1))
        assert (made.code.values == sent).all(1).float().mean() < 0.5  # mostly noise
    share = torch.cat(explained).float().mean().item()
    assert share < 0.3 if is_random else share == 1.0


def test_the_secret_is_kept_for_its_owner_alone_and_crosses_nowhere(tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        overheard(from_settings(STILL), tmp_path, patch)
    kept = tmp_path / "alice" / "secret"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    digits = f"{Secret.load(kept).value:x}".encode()
    others = [p for p in tmp_path.rglob("*") if p.is_file() and p != kept]
    assert len(others) > 3
    assert not [p for p in others if digits in p.read_bytes()]


def test_a_given_secret_is_not_copied_and_a_refused_one_changes_nothing(
    tmp_path, monkeypatch
):
    experiment = from_settings(STILL)
    overheard(experiment, tmp_path / "given", monkeypatch, secret=Secret(SEED))
    assert not (tmp_path / "given" / "alice" / "secret").exists()
    Secret.random().save(tmp_path / "kept" / "secret")
    before = (tmp_path / "kept" / "secret").read_bytes()
    options = JoinOptions(state_folder=tmp_path / "kept", secret=Secret(SEED))
    with pytest.raises(ConfigError, match="that of an earlier start"):
        join_experiment(experiment, Endpoint("127.0.0.1:9"), options, name="alice")
    assert [p.name for p in (tmp_path / "kept").iterdir()] == ["secret"]
    assert (tmp_path / "kept" / "secret").read_bytes() == before


def run_cluster(cluster, kills, seed):
    """Run to the end, with so many kills; each process is started again."""

    def strike(speaker):
        victim = cluster.processes[strike.next]
        strike.next = "server" if strike.next == speaker else speaker
        if victim.code is not None:
            return False
        victim.signal(9)
        return True

    strike.next = "server"
    moments = Moments(strike, count=kills, seed=seed)
    with lines(cluster, moments, cluster.start_server()) as proxies:
        for name in NAMES:
            cluster.start_client(name)
        supervise(cluster, proxies)
    assert moments.left == 0
    return left_behind(cluster)


@pytest.mark.parametrize(
    "settings",
    [{"heads": "shared"}, {"heads": "private"}, {"heads": "shared", "wire": "max"}],
    ids=str,
)
def test_killed_with_random_secrets_is_uninterrupted_with_the_same(
    settings, zygote, tmp_path
):
    settings = {"epochs": 6, **settings}
    options = {
        "settings": settings,
        "serve": ["--checkpoint-every", 3],
        "join": ["--give-up-seconds", 300],
    }
    folders = [tmp_path / "killed", tmp_path / "whole"]
    for folder in folders:
        folder.mkdir()
    SealingKey.generate().save(folders[0] / "clients.key")
    shutil.copy(folders[0] / "clients.key", folders[1] / "clients.key")
    killed = run_cluster(Cluster(zygote, folders[0], **options), 8, str(settings))
    kept = {name: Secret.load(folders[0] / name / "secret") for name in NAMES}
    assert len(set(kept.values())) == len(NAMES)
    for name, secret in kept.items():
        secret.save(folders[1] / name / "secret")
    whole = run_cluster(Cluster(zygote, folders[1], **options), 0, "")
    assert_same_weights(killed, whole)


def test_clients_with_other_first_weights_refuse_a_change_of_them(zygote, tmp_path):
    """In int8 a head travels as its change since the start, which must be the same."""
    SealingKey.generate().save(tmp_path / "clients.key")
    cluster = Cluster(zygote, tmp_path, settings={"hand_off": "int8"})
    cluster.ports = dict.fromkeys(NAMES, cluster.start_server())
    for number, name in enumerate(NAMES):
        Secret(number).save(tmp_path / f"{name}.secret")
        cluster._secret = ["--secret", tmp_path / f"{name}.secret"]
        cluster.start_client(name)
    assert cluster.clients["bob"].wait() == 1
    assert "with first weights" in cluster.clients["bob"].text
    assert "Traceback" not in cluster.clients["bob"].text

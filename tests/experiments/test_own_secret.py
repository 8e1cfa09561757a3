import pytest
import torch

from lightsplit.errors import ConfigError
from lightsplit.experiments import pieces
from lightsplit.experiments.cuts import make_cuts
from lightsplit.experiments.network_ends import client_cuts
from lightsplit.experiments.own_secret import FILE_NAME, ClientSecrets, OwnSecret
from lightsplit.results import tensors
from lightsplit.runtime import Secret
from lightsplit.transports.sealing import SealingKey

KEY = SealingKey(bytes(range(32)))
LEARNED = {"codec": "learned-1x1", "ratio": 2}


def state_of(experiment, secrets):
    cuts = client_cuts(experiment, secrets)
    return pieces.make_client_side(experiment, cuts).state()


def same(first, second):
    assert first.keys() == second.keys()
    return {name for name in first if torch.equal(first[name], second[name])}


def drawn_at_random(state):
    """Name the weights that two draws do not share; a bias of zeros says nothing."""
    return {name for name, tensor in state.items() if tensor.ndim > 1}


def secrets_for(experiment, given=None, key=None):
    """Return the secrets of a new client without a folder."""
    return OwnSecret.find(given, None).for_run(experiment, key)


def test_without_a_secret_each_client_makes_its_own_and_writes_nothing_yet(tmp_path):
    found = [OwnSecret.find(None, tmp_path / "alice").secret for _ in range(2)]
    assert found[0] != found[1]
    assert not (tmp_path / "alice").exists()


def test_a_kept_secret_is_used_from_then_on(tmp_path, small):
    mine = OwnSecret.find(None, tmp_path)
    for _ in range(2):
        mine.keep()
    again = OwnSecret.find(None, tmp_path)
    assert again == mine
    assert again.for_run(small()) == mine.for_run(small())
    assert Secret.load(tmp_path / FILE_NAME) == mine.secret


def test_a_kept_secret_that_others_can_read_is_refused(tmp_path):
    OwnSecret.find(None, tmp_path).keep()
    (tmp_path / FILE_NAME).chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        OwnSecret.find(None, tmp_path)


def test_a_given_secret_decides_everything_and_is_not_kept(small, tmp_path):
    mine = OwnSecret.find(Secret(3), tmp_path)
    mine.keep()
    assert mine.for_run(small(), KEY) == ClientSecrets.of_run(3)
    assert not list(tmp_path.iterdir())


def test_a_run_that_began_without_a_given_secret_does_not_go_on_with_one(tmp_path):
    OwnSecret.find(None, tmp_path).keep()
    kept = Secret.load(tmp_path / FILE_NAME)
    with pytest.raises(ConfigError, match="that of an earlier start"):
        OwnSecret.find(kept, tmp_path)


@pytest.mark.parametrize("other", [{"seed": 1}, {"ratio": 4}, {"wcc": 0.1}], ids=str)
def test_two_runs_with_one_secret_draw_nothing_twice(small, other):
    mine = OwnSecret.find(None, None)
    first, second = mine.for_run(small()), mine.for_run(small(**other))
    assert first.own != second.own
    assert mine.secret not in (first.own, second.own)


@pytest.mark.parametrize("settings", [{}, LEARNED, {"topology": "vanilla"}], ids=str)
def test_the_seed_for_a_secret_gives_the_first_weights_of_one_process(small, settings):
    experiment = small(**settings)
    cuts = make_cuts(experiment, pieces.load_parts(experiment))
    alone = pieces.make_client_side(experiment, cuts).state()
    assert same(state_of(experiment, ClientSecrets.of_run(0)), alone) == alone.keys()


@pytest.mark.parametrize("settings", [{}, LEARNED, {"topology": "vanilla"}], ids=str)
def test_two_random_secrets_give_different_heads_tails_and_encoders(small, settings):
    experiment = small(**settings)
    first, second = (state_of(experiment, secrets_for(experiment)) for _ in range(2))
    random = drawn_at_random(first)
    assert {name.split(".")[0] for name in random} >= {"head"}
    assert ("encoder" in str(random)) is bool(settings == LEARNED)
    assert not same(first, second) & random


def test_clients_with_one_key_start_with_the_same_head_and_draw_alone(small):
    experiment = small(**LEARNED)
    secrets = [secrets_for(experiment, key=KEY) for _ in range(2)]
    assert secrets[0].own != secrets[1].own
    first, second = (state_of(experiment, one) for one in secrets)
    assert same(first, second) == first.keys()


@pytest.mark.parametrize(
    "other", [{"seed": 1}, {"key": SealingKey(bytes(32))}, {"key": None}], ids=str
)
def test_another_key_or_run_gives_another_head(small, other):
    usual = {"seed": 0, "key": KEY}
    first, second = (
        state_of(small(), secrets_for(small(seed=options["seed"]), key=options["key"]))
        for options in (usual, usual | other)
    )
    assert not same(first, second) & drawn_at_random(first)


def test_the_first_weights_from_a_key_do_not_hold_the_key(small):
    drawn = secrets_for(small(), key=KEY).first_weights
    assert drawn.value != int.from_bytes(bytes(range(32)), "big")
    assert not drawn.is_seed


def test_both_ends_agree_on_the_contract_whatever_the_secret(small):
    for settings in ({}, LEARNED, {"output_codec": "linear", "output_size": 4}):
        experiment = small(**settings)
        server = make_cuts(experiment, pieces.load_parts(experiment))
        client = client_cuts(experiment, secrets_for(experiment))
        assert client.contract == server.contract


def test_weights_from_a_file_replace_the_secret_ones(small, tmp_path):
    whole = pieces.load_parts(small()).whole
    tensors.save(tmp_path / "whole.safetensors", whole.state_dict())
    experiment = small(weights=str(tmp_path / "whole.safetensors"))
    head = client_cuts(experiment, secrets_for(experiment)).parts.head
    given = whole.state_dict()
    assert all(torch.equal(given[n], w) for n, w in head.state_dict().items())


def test_the_order_of_the_batches_is_the_clients_own(small, make_job):
    experiment, data = small(), make_job().dataset.train
    held = torch.arange(40)

    def order(secret):
        batches = pieces.make_batches(experiment, data, held, 0, secret=secret)
        return torch.cat([batches[step][0].flatten(1) for step in range(len(batches))])

    assert torch.equal(order(None), order(Secret(0)))
    secret = Secret.random()
    assert torch.equal(order(secret), order(secret))
    assert not torch.equal(order(secret), order(None))

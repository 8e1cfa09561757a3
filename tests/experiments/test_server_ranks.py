import pytest

from lightsplit.errors import ConfigError
from lightsplit.experiments import from_settings, pieces
from lightsplit.experiments.cuts import make_cuts
from lightsplit.experiments.server_ranks import assist_experiment, spread_over_ranks


def make_server(experiment):
    cuts = make_cuts(experiment, pieces.load_parts(experiment))
    return pieces.make_server(experiment, cuts)


@pytest.fixture
def _two_ranks(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")


@pytest.mark.usefixtures("_two_ranks")
def test_turns_have_no_joined_batch_to_share():
    experiment = from_settings({"rounds": "turns"})
    with (
        pytest.raises(ConfigError, match="give --rounds parallel"),
        spread_over_ranks(make_server(experiment)),
    ):
        pass
    with pytest.raises(ConfigError, match="2 ranks share the joined batch"):
        assist_experiment(experiment)


def test_one_rank_computes_alone():
    server = make_server(from_settings({"rounds": "parallel"}))
    with spread_over_ranks(server):
        assert server.ranks is None


def test_a_rank_asks_for_the_accelerator_with_its_number(monkeypatch):
    monkeypatch.setenv("LOCAL_RANK", "99")  # no machine has so many
    with pytest.raises(ConfigError, match="cannot use device 'cuda:99'"):
        pieces.make_device("cuda")

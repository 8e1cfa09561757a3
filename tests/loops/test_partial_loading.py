"""Each end loads its own weights alone, and learns what it does with a whole model."""

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import lightsplit
from lightsplit.loops.agreement import agree

EXAMPLE = torch.zeros(4, 8)


class Opened(nn.Module):
    """Each part has a weight outside layers; head and tail share one."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.shift = nn.Parameter(torch.randn(8))
        self.norm = nn.BatchNorm1d(8)
        self.middle = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.3), nn.Linear(8, 8))
        self.factor = nn.Parameter(torch.randn(8))
        self.last = nn.Linear(8, 8, bias=False)
        self.last.weight = self.first.weight
        self.offset = nn.Parameter(torch.randn(8))

    def forward(self, x):
        x = self.norm(self.first(x) + self.shift)
        return self.last(self.middle(x) * self.factor) + self.offset


def chain():
    return nn.Sequential(
        nn.Linear(8, 6), nn.BatchNorm1d(6), nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 3)
    )


MODELS = {
    "a chain": (chain, {"head_until": "1", "tail_from": "4", "example": EXAMPLE}),
    "weights outside layers": (
        Opened,
        {"head_until": "norm", "tail_from": "last", "example": EXAMPLE},
    ),
}


class Case:
    """A model with its cut and its checkpoint."""

    def __init__(self, build, cut, path):
        self.build, self.cut, self.path = build, cut, path
        parts = lightsplit.split(self.whole(), **cut)
        self.of_server = dict(parts.backbone.named_parameters()).keys()
        self.all = dict(parts.whole.named_parameters()).keys()
        state = parts.whole.state_dict()
        save_file({name: one.clone() for name, one in state.items()}, path)

    def whole(self):
        """Return a model with all weights."""
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return self.build()

    def part(self, end):
        """Return a model with the weights of one end alone."""
        with lightsplit.empty_weights():
            model = self.build()
        parts = lightsplit.split(model, **self.cut)
        mine = [parts.backbone] if end == "server" else [parts.head, parts.tail]
        lightsplit.load_part(mine, self.path)
        return model


@pytest.fixture(params=MODELS.values(), ids=MODELS.keys())
def case(request, tmp_path):
    return Case(*request.param, tmp_path / "model.safetensors")


def empty(model):
    return {name for name, one in model.named_parameters() if one.is_meta}


def test_the_model_itself_gets_the_weights_of_its_part_and_no_others(case):
    assert empty(case.part("owner")) == case.of_server
    assert empty(case.part("server")) == case.all - case.of_server


def test_both_ends_come_to_the_contract_of_whole_models(case):
    expected = agree(case.whole(), **case.cut).contract
    assert agree(case.part("owner"), **case.cut).contract == expected
    assert agree(case.part("server"), **case.cut).contract == expected


def test_an_end_without_its_own_weights_is_refused_by_name(kit, case):
    owners, server = case.part("owner"), case.part("server")
    host = lightsplit.host(server, optimizer=kit.ADAM, **case.cut)
    named = r"got none for .*: load them with load_part"
    with pytest.raises(lightsplit.LightSplitError, match=named):
        lightsplit.connect(server, server=host, **case.cut)
    with pytest.raises(lightsplit.LightSplitError, match=named):
        lightsplit.host(owners, optimizer=kit.ADAM, **case.cut)


@pytest.mark.slow
def test_parts_learn_over_a_server_what_whole_models_learn(kit, case, tmp_path):
    found = []
    for make in (case.part, lambda _end: case.whole()):
        theirs, mine = make("server"), make("owner")
        host = lightsplit.host(theirs, optimizer=kit.ADAM, **case.cut)
        with kit.served(host, tmp_path / f"saves {len(found)}") as address:
            model = lightsplit.connect(
                mine, server=address, secret=lightsplit.Secret(0), **case.cut
            )
            kit.train(model, kit.ADAM(model.parameters()), 5)
            predicted = model.eval()(kit.batch(9)[0])
            owners = {name: one.clone() for name, one in model.named_parameters()}
            model.close()
        found.append({"prediction": predicted, **owners, **host.server.state()})
    parts, wholes = found
    assert parts.keys() == wholes.keys()
    assert all(torch.equal(parts[name], wholes[name]) for name in wholes)

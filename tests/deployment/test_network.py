"""``serve`` and ``join`` with any model, as an owner calls them in Python."""

import copy
import threading
from functools import partial

import pytest
import torch
from torch import nn

from lightsplit import Server, ServerSide, make_codec, split
from lightsplit.codecs import Code
from lightsplit.deployment.endpoint import Endpoint
from lightsplit.deployment.join_options import JoinOptions
from lightsplit.deployment.network import join, make_contract, make_expectation, serve
from lightsplit.errors import ProtocolError, TransportError
from lightsplit.protocol import CodeMessage, Reader, to_frames
from lightsplit.runs.plan import RunPlan
from lightsplit.runs.schedule import Schedule
from lightsplit.transports.sealing import SealingKey


def started(work, **arguments):
    thread = threading.Thread(target=work, kwargs=arguments)
    thread.start()
    return thread


@pytest.mark.parametrize("heads", ["shared", "private"])
def test_an_own_model_over_the_network_is_that_model_in_one_process(
    heads, net, tmp_path
):
    alone = net.Ends(heads=heads)
    is_private = heads == "private"
    sides = [copy.deepcopy(alone.side) if is_private else alone.side for _ in net.NAMES]
    owners = [alone.client_with(side, index) for index, side in enumerate(sides)]
    for turn in Schedule([3, 2, 3], turn_steps=1).turns():
        owners[turn.client].run_turn(alone.batches[turn.client], turn.steps)

    ends = net.Ends(heads=heads)
    mine = [net.Ends(heads=heads) for _ in net.NAMES]
    ports, has_port = [], threading.Event()

    def watch(_coordinator, port):
        ports.append(port)
        has_port.set()
        return True

    server = started(
        partial(serve, ends.server, ends.contract, RunPlan(), Endpoint("127.0.0.1:0")),
        folder=tmp_path / "server",
        names=net.NAMES,
        watch=watch,
    )
    assert has_port.wait(120)
    key = SealingKey.generate()
    clients = [
        started(
            partial(join, one.client_with(one.side, 0), one.contract),
            endpoint=Endpoint(f"localhost:{ports[0]}"),
            name=name,
            batches=one.batches.__getitem__,
            options=JoinOptions(key=key, state_folder=tmp_path / name),
        )
        for name, one in zip(net.NAMES, mine, strict=True)
    ]
    for thread in (*clients, server):
        thread.join(240)
    pairs = [(ends.server.side, alone.server.side)]
    pairs += [(one.side, side) for one, side in zip(mine, sides, strict=True)]
    for got, expected in pairs:
        assert got.state().keys() == expected.state().keys()
        for name, tensor in expected.state().items():
            assert torch.equal(got.state()[name], tensor), name


def test_an_absent_server_is_logged_unless_a_callback_is_given(net, caplog, tmp_path):
    ends = net.Ends(heads="private")
    told = []
    for options in ({}, {"away": told.append}):
        caplog.clear()
        with pytest.raises(TransportError):
            join(
                ends.client_with(ends.side, 0),
                ends.contract,
                Endpoint("127.0.0.1:9"),
                name=net.NAMES[0],
                batches=ends.batches.__getitem__,
                options=JoinOptions(
                    state_folder=tmp_path, give_up_seconds=0.5, **options
                ),
            )
        lines = [record.getMessage() for record in caplog.records]
        assert bool(lines) == (not options)
        assert all(line.startswith("127.0.0.1:9: ") for line in lines)
        assert all(line.endswith("; trying again") for line in lines)
    assert told


@pytest.fixture
def parts():
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(16, 5)
    )
    return split(model, head_until="1", tail_from="3")


def test_the_contract_of_an_own_model_finds_the_shapes_and_changes_nothing(parts):
    parts.whole.train()
    parts.head.eval()
    modes = [module.training for module in parts.whole.modules()]
    before = {k: v.clone() for k, v in parts.whole.state_dict().items()}
    codec = make_codec("raw", shape=(4, 2, 2))
    contract = make_contract(
        parts,
        codec,
        example=torch.zeros(1, 1, 4, 4),
        clients=2,
        batch_size=8,
        heads="private",
    )
    assert (contract.activation_shape, contract.output_shape) == ((4, 2, 2), (16,))
    assert (contract.topology, contract.heads, contract.clients) == ("u", "private", 2)
    assert [module.training for module in parts.whole.modules()] == modes
    after = parts.whole.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_connections_can_share_their_expectations(parts):
    codec = make_codec("raw", shape=(4, 2, 2))
    contract = make_contract(
        parts, codec, example=torch.zeros(1, 1, 4, 4), clients=1, batch_size=8
    )
    server = Server(ServerSide(parts.backbone, codec, torch.optim.Adam))
    expectation = make_expectation(contract, server)
    for rows, is_training in ((8, True), (512, False)):
        message = CodeMessage(
            0, 0, Code(torch.zeros(rows, 4, 2, 2)), is_training=is_training
        )
        frames = to_frames(message)
        assert Reader(expectation).feed(frames[0]).is_training == is_training
    with pytest.raises(ProtocolError, match="1 to 8"):
        Reader(expectation).feed(to_frames(CodeMessage(0, 0, message.code))[0])

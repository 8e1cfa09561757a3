import pytest
import torch
from torch import nn

from lightsplit import Client, ClientSide, Secret, Server, ServerSide, split
from lightsplit.codecs import CODECS
from lightsplit.errors import LightSplitError


def test_a_loop_of_ones_own_gives_the_weights_of_client_step(kit):
    network = kit.make_network()
    _, model = kit.make_ends(network)
    kit.train(model, kit.ADAM(model.parameters()), 5)

    other = kit.make_network()
    parts = split(other, head_until="0", tail_from="5")
    codec = CODECS.create("raw", shape=(6,))
    server = Server(ServerSide(parts.backbone, codec, kit.ADAM))
    side = ClientSide(parts.head, parts.tail, codec, kit.ADAM)
    client = Client(side, server.handle, secret=Secret(0))
    for step in range(5):
        client.step(*kit.batch(step))
    assert kit.same(network, other)


def test_the_model_holds_head_and_tail_alone(kit):
    _, model = kit.make_ends()
    names = {name.split(".")[1] for name, _ in model.named_parameters()}
    assert names == {"0", "5"}


def test_the_server_learns_when_the_optimizer_steps_and_not_before(kit):
    network = kit.make_network()
    host, model = kit.make_ends(network)
    optimizer = kit.ADAM(model.parameters())
    before = network[2].weight.clone()
    kit.loss_of(model, 0).backward()
    host.loops.settle()
    assert torch.equal(network[2].weight, before)
    optimizer.step()
    assert not torch.equal(network[2].weight, before)
    assert host.loops.applied() == {"owner": 1}


def plain_twin(kit):
    network = kit.make_network()
    network[4].p = 0.0  # two halves draw their own dropout
    return network


def test_gradients_add_up_until_the_optimizer_steps(kit):
    network, twin = plain_twin(kit), plain_twin(kit)
    _, model = kit.make_ends(network)
    for one in (model, twin):
        optimizer = kit.ADAM(one.parameters())
        for step in range(6):
            (kit.loss_of(one, step) / 3).backward()
            if step % 3 == 2:
                optimizer.step()
                optimizer.zero_grad()
    assert kit.same(network, twin)


def test_two_forward_passes_may_come_before_their_backward_pass(kit):
    network, twin = plain_twin(kit), plain_twin(kit)
    _, model = kit.make_ends(network)
    for one in (model, twin):
        optimizer = kit.ADAM(one.parameters())
        (kit.loss_of(one, 0) + kit.loss_of(one, 1)).backward()
        optimizer.step()
    assert all(
        torch.allclose(mine, theirs)
        for mine, theirs in zip(network.parameters(), twin.parameters(), strict=True)
    )


def test_the_server_follows_the_learning_rate_schedule(kit):
    network, twin = plain_twin(kit), plain_twin(kit)
    _, model = kit.make_ends(network)
    for one in (model, twin):
        optimizer = kit.ADAM(one.parameters())
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 5)
        for step in range(5):
            kit.train(one, optimizer, 1, start=step)
            schedule.step()
    assert kit.same(network, twin)


def test_clipping_at_both_ends_bounds_every_update(kit):
    _, model = kit.make_ends()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    (1e3 * kit.loss_of(model, 0)).backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    assert norm > 0.5
    optimizer.step()


@pytest.mark.parametrize("way", ["eval", "no_grad"])
def test_predictions_change_nothing(kit, way):
    network = kit.make_network()
    host, model = kit.make_ends(network)
    kit.train(model, kit.ADAM(model.parameters()), 1)
    before = {name: one.clone() for name, one in network.state_dict().items()}
    if way == "eval":
        output = model.eval()(kit.batch(0)[0])
        assert torch.equal(output, network.eval()(kit.batch(0)[0]))
    else:
        with torch.no_grad():
            output = model(kit.batch(0)[0])
    assert not output.requires_grad
    after = network.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert host.loops.applied() == {"owner": 1}


def test_autocast_reaches_the_clients_half_alone(kit):
    network, twin = plain_twin(kit), plain_twin(kit)
    _, model = kit.make_ends(network)
    optimizer = kit.ADAM(model.parameters())
    with torch.autocast("cpu", torch.bfloat16):
        loss = kit.loss_of(model, 0)
    loss.backward()
    optimizer.step()
    assert model.meter.counts["code"] == 4 * 6 * 4  # float32 on the wire
    assert torch.isfinite(loss)
    assert not kit.same(network, twin)


def test_another_optimizer_does_not_concern_the_server(kit):
    host, model = kit.make_ends()
    stranger = nn.Linear(2, 2)
    kit.loss_of(model, 0).backward()
    stranger(torch.rand(2, 2)).sum().backward()
    kit.ADAM(stranger.parameters()).step()
    assert host.loops.applied() == {"owner": 0}


def test_a_frozen_client_updates_the_server_by_hand(kit):
    network = kit.make_network()
    _, model = kit.make_ends(network)
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    before = network[2].weight.clone()
    kit.loss_of(model, 0).backward()
    model.update_server()
    assert not torch.equal(network[2].weight, before)


def test_a_step_without_gradients_is_no_update(kit):
    host, model = kit.make_ends()
    kit.ADAM(model.parameters()).step()
    assert host.loops.applied() == {"owner": 0}


def test_a_second_backward_pass_of_one_forward_pass_is_refused(kit):
    _, model = kit.make_ends()
    loss = kit.loss_of(model, 0)
    loss.backward(retain_graph=True)
    with pytest.raises(LightSplitError, match="came twice"):
        loss.backward()

"""Prediction over the wire is the prediction in one process, and leaves no trace."""

import pytest
import torch
from lab.faults import Halts
from lab.lines import Caller
from lab.processes import wait_until
from lab.proxy import Proxy
from lab.runs import (
    NAMES,
    Network,
    assert_same_state,
    assert_same_weights,
    build_job,
    copied,
    reference,
)

from lightsplit.deployment.prediction import predicting
from lightsplit.errors import ConfigError, RemoteError, RunError, SealError
from lightsplit.protocol.control import Ready
from lightsplit.transports.sealing import SealingKey


def client_of(job, index=0):
    client = job.trainer.clients[index]
    return client, next(iter(job.trainer._test))[0]


def logits_over_the_wire(network, job, name="bob", **options):
    client, inputs = client_of(job, NAMES.index(name))
    options = {"key": network.key, **options}
    endpoint = network.endpoint(name, options.pop("port", None))
    with predicting(client, network.contract, endpoint, name=name, **options):
        return client.predict(inputs)


@pytest.fixture(params=["u", "vanilla"])
def finished(request, certificates, tmp_path):
    """A server that was started again on a run that is over, and its trained twin."""
    settings = {"topology": request.param, "epochs": 1}
    with Network(tmp_path, tls=certificates, **settings) as network:
        network.join_all()
        network.finish()
    twin = build_job(**settings)
    list(twin.trainer.run())
    key = network.key
    with Network(tmp_path, tls=certificates, **settings) as again:
        again.key = key
        yield again, twin, build_job(**settings)


def test_the_logits_are_those_of_one_process(finished):
    network, twin, fresh = finished
    before = copied(network.server.side.state())
    client, inputs = client_of(twin)
    assert torch.equal(logits_over_the_wire(network, fresh), client.predict(inputs))
    assert_same_state(network.server.side.state(), before)


def test_where_codes_are_sent_once_the_owner_brings_its_frozen_head(tmp_path):
    settings = {"codec": "lightsplit-b", "release": "once", "local_epochs": 1}
    with Network(tmp_path, **settings, epochs=1) as network:
        network.join_all()
        network.finish()
    key, twin = network.key, build_job(**settings, epochs=1)
    list(twin.trainer.run())
    client, inputs = client_of(twin)
    expected = client.predict(inputs)
    with Network(tmp_path, **settings, epochs=1) as again:
        again.key = key
        fresh = build_job(**settings, epochs=1)
        with pytest.raises(RunError, match="the head is frozen"):
            logits_over_the_wire(again, fresh)
        bob = fresh.trainer.clients[1]
        bob.kept = bob.hand_off.frozen(client.side.state())  # as its folder has it
        assert torch.equal(logits_over_the_wire(again, fresh), expected)


def test_a_wrong_key_and_a_missing_one_are_refused(finished):
    network, _, fresh = finished
    stranger = SealingKey.generate()
    with pytest.raises(SealError, match=stranger.fingerprint):
        logits_over_the_wire(network, fresh, key=stranger)
    with pytest.raises(ConfigError, match="a key is needed"):
        logits_over_the_wire(network, fresh, key=None)


@pytest.mark.parametrize(
    "more",
    [{}, {"codec": "lightsplit-l"}, {"codec": "lightsplit-l", "statistics": "batch"}],
    ids=str,
)
def test_private_heads_predict_with_the_clients_own_side(more, tmp_path):
    settings = {"heads": "private", "epochs": 1, **more}
    with Network(tmp_path, **settings) as network:
        network.join_all()
        network.finish()
    twin = build_job(**settings)
    list(twin.trainer.run())
    with Network(tmp_path, **settings) as again:
        for index, name in enumerate(NAMES):
            client, inputs = client_of(twin, index)
            got = logits_over_the_wire(again, network.jobs[name], name, key=None)
            assert torch.equal(got, client.predict(inputs))


def test_an_open_step_is_not_touched_by_a_prediction(tmp_path):
    alone = build_job(heads="private").trainer.server
    with Network(tmp_path, heads="private") as network:
        callers = [Caller(network, name) for name in NAMES]
        alice = callers[0]
        for caller in callers:
            caller.index = caller.hello().index
            caller.post(Ready(2))
        alice.take()
        alice.call(alice.code(0))
        before = copied(network.server.side.state())
        logits_over_the_wire(network, build_job(heads="private"))
        assert_same_state(network.server.side.state(), before)
        got = alice.call(alice.gradient(0))
        alone.handle(alice.code(0))
        assert torch.equal(got.gradient, alone.handle(alice.gradient(0)).gradient)
        logits_over_the_wire(
            network, build_job(heads="private")
        )  # the update is done before it
        assert_same_state(network.server.side.state(), alone.side.state())
        for caller in callers:
            caller.line.close()


def test_predictions_all_through_a_run_do_not_change_it(tmp_path):
    job, halts = build_job(), Halts(10)  # of Carol: her last epoch
    with (
        Network(tmp_path, epochs=4) as network,
        Proxy(network.port, halts.look) as line,
    ):
        for name in NAMES:
            network.join(name, port=line.port if name == "carol" else None)
        client, inputs = client_of(job, 1)
        endpoint = network.endpoint("bob")
        wait_until(lambda: network.coordinator.progress.turns, "the first turn")
        with predicting(
            client, network.contract, endpoint, name="bob", key=network.key
        ):
            while not halts.is_held:
                client.predict(inputs)
            client.predict(inputs)
        with halts.next():
            assert not network.coordinator.is_over
        got = network.finish()
    assert_same_weights(got, reference(epochs=4))
    assert got.bytes == reference(epochs=4).bytes


def test_training_has_no_place_in_a_session_for_prediction(tmp_path):
    with Network(tmp_path) as network, Caller(network) as caller:
        caller.index = caller.hello(purpose="predict").index
        with pytest.raises(RemoteError, match="outside training") as caught:
            caller.call(caller.code(0))
    assert caught.value.code == "out-of-order"


def test_a_prediction_takes_nobodys_seat_in_an_open_run(tmp_path):
    with Network(tmp_path, are_names_open=True) as network:
        with Caller(network, "mallory") as caller, pytest.raises(RemoteError):
            caller.hello(purpose="predict")
        assert list(network.coordinator.members) == []


def test_a_line_that_broke_is_opened_again(tmp_path):
    with Network(tmp_path, heads="private") as network, Proxy(network.port) as proxy:
        client, inputs = client_of(build_job(heads="private"))
        endpoint = network.endpoint("alice", proxy.port)
        with predicting(client, network.contract, endpoint, name="alice"):
            first = client.predict(inputs)
            proxy.cut()
            assert torch.equal(client.predict(inputs), first)


def test_a_silent_line_for_prediction_is_cut_and_opened_again(tmp_path):
    plan = {"step_timeout_seconds": 0.3}
    with Network(tmp_path, plan=plan, heads="private") as network:
        client, inputs = client_of(build_job(heads="private"))
        endpoint = network.endpoint("alice")
        with predicting(client, network.contract, endpoint, name="alice"):
            first = client.predict(inputs)
            idle = network.coordinator._idle
            wait_until(lambda: not len(idle), "the cut")
            assert torch.equal(client.predict(inputs), first)

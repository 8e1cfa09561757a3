"""Over the network a loop comes out as in one process, bit for bit."""

import shutil
import threading
import time
from contextlib import ExitStack, contextmanager

import grpc
import pytest
import torch

import lightsplit
from lightsplit.deployment.door import most_streams
from lightsplit.deployment.pauses import Pauses
from lightsplit.errors import (
    ConfigError,
    ContractError,
    LightSplitError,
    RunError,
    TransportError,
)
from lightsplit.protocol.control import Hello, Ready
from lightsplit.transports.certificates import CertificateFolder
from lightsplit.transports.credentials import TlsFiles, channel_credentials
from lightsplit.transports.grpc_client import Connection
from lightsplit.transports.grpc_server import SESSION
from lightsplit.transports.registrar import Registrar

pytestmark = pytest.mark.slow


def connected(network, address, cut):
    secret = lightsplit.Secret(0)
    return lightsplit.connect(network, server=address, secret=secret, **cut)


@pytest.fixture
def certificates(tmp_path):
    folder = CertificateFolder(tmp_path / "pki")
    folder.make_authority()
    folder.make_server()
    for name in ("alice", "stranger"):
        folder.make_client(name)
    return folder.path


def ends(kit, tmp_path, **more):
    """Return two networks: one for the server, one for the owner."""
    cut = {**kit.CUT, **more}
    mine, theirs = kit.make_network(), kit.make_network()
    return cut, mine, theirs, lightsplit.host(theirs, optimizer=kit.ADAM, **cut)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"wire": "int8"},
        {"codec": "lightsplit-f", "codec_options": {"ratio": 2}, "wire": "bf16"},
    ],
    ids=str,
)
def test_network_is_one_process(kit, tmp_path, more):
    cut, mine, theirs, host = ends(kit, tmp_path, **more)
    with kit.served(host, tmp_path / "saves") as address:
        model = lightsplit.connect(
            mine, server=address, secret=lightsplit.Secret(0), **cut
        )
        kit.train(model, kit.ADAM(model.parameters()), 4)
        predicted = model.eval()(kit.batch(9)[0])
        model.close()

    alone = kit.make_network()
    _, local = kit.make_ends(alone, cut=cut)
    kit.train(local, kit.ADAM(local.parameters()), 4)
    assert torch.equal(predicted, local.eval()(kit.batch(9)[0]))
    for part, network in ((mine, alone), (theirs, alone)):
        parts = (0, 5) if part is mine else (2, 3)
        for place in parts:
            assert kit.same(part[place], network[place])
    assert model.meter.counts == local.meter.counts


def test_owners_are_authenticated(kit, tmp_path, certificates):
    cut, mine, _, host = ends(kit, tmp_path)
    with kit.served(host, tmp_path / "saves", certs=certificates) as address:
        model = lightsplit.connect(
            mine, server=address, name="alice", certs=certificates, **cut
        )
        kit.train(model, kit.ADAM(model.parameters()), 1)
        model.close()
    assert host.loops.applied() == {"alice": 1}


def test_another_contract_is_refused_at_the_door(kit, tmp_path):
    cut, mine, _, host = ends(kit, tmp_path)
    with (
        kit.served(host, tmp_path / "saves") as address,
        pytest.raises(ContractError, match="batch_size: client has 9, server has 4"),
    ):
        lightsplit.connect(mine, server=address, batch_size=9, **cut)


def test_a_client_that_wants_turns_is_told_what_this_server_is(kit, tmp_path):
    cut, mine, _, host = ends(kit, tmp_path)
    with kit.served(host, tmp_path / "saves") as address:
        model = lightsplit.connect(mine, server=address, **cut)
        line = model.line
        line.close()
        line._hello = Hello("owner", host.agreement.contract.to_json(), "train")
        with pytest.raises(LightSplitError, match="loops without turns"):
            line.start(0)
        line.close()


def test_a_message_that_belongs_to_turns_is_refused(kit, tmp_path):
    cut, mine, _, host = ends(kit, tmp_path)
    with kit.served(host, tmp_path / "saves") as address:
        model = lightsplit.connect(mine, server=address, **cut)
        with pytest.raises(LightSplitError, match="expected a step or an update"):
            model.line._call(Ready(3))
        model.close()


def test_a_full_disk_ends_the_server_in_one_sentence_and_nothing_is_lost(
    kit, tmp_path, caplog
):
    """The client hears nothing of the disk, tries again, and ends as if nothing was."""
    cut, mine, _, host = ends(kit, tmp_path)
    saves, obstacle = tmp_path / "saves", tmp_path / "saves" / "update-00000003.tmp"
    with kit.served(host, saves, save_every=1) as address:
        model = connected(mine, address, cut)
        optimizer = kit.ADAM(model.parameters())
        kit.train(model, optimizer, 2)
        obstacle.write_text("in the way")
        trainer = threading.Thread(target=kit.train, args=(model, optimizer, 2, 2))
        trainer.start()
        wait_until(lambda: host.failure is not None)
    obstacle.unlink()
    assert isinstance(host.failure, RunError)
    assert "cannot save the server in" in str(host.failure)
    again = lightsplit.host(kit.make_network(), optimizer=kit.ADAM, **cut)
    with kit.served(again, saves, address=address):
        trainer.join(240)
        assert not trainer.is_alive()
        model.close()
    assert "the server stops and may come back; trying again" in caplog.text
    assert str(saves) not in caplog.text
    assert again.loops.applied() == {"owner": 4}
    alone = kit.make_network()
    _, local = kit.make_ends(alone, cut=cut)
    kit.train(local, kit.ADAM(local.parameters()), 4)
    assert all(kit.same(mine[place], alone[place]) for place in (0, 5))


def wait_until(condition):
    deadline = time.monotonic() + 240
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_two_servers_do_not_share_a_folder(kit, tmp_path):
    *_, host = ends(kit, tmp_path)
    *_, other = ends(kit, tmp_path)
    with (
        kit.served(host, tmp_path / "saves"),
        pytest.raises(RunError, match="another pro"),
    ):
        other.serve("127.0.0.1:0", tmp_path / "saves", watch=lambda *_: False)


def test_a_server_that_breaks_every_line_is_not_asked_without_a_pause(kit, tmp_path):
    cut, mine, _, host = ends(kit, tmp_path)
    with kit.served(host, tmp_path / "saves") as address:
        model = connected(mine, address, cut)
        model.line._pauses = Pauses(2.0)
        opened, call = [], Connection.call

        def broken(self, message):
            if isinstance(message, Hello):
                opened.append(message)
                return call(self, message)
            raise TransportError("broken")

        Connection.call = broken
        try:
            with pytest.raises(TransportError, match="broken"):
                kit.train(model, kit.ADAM(model.parameters()), 1)
        finally:
            Connection.call = call
        model.close()
    assert 2 <= len(opened) <= 6


def test_a_newer_connection_of_the_same_name_takes_over(kit, tmp_path):
    cut, mine, _, host = ends(kit, tmp_path)
    with kit.served(host, tmp_path / "saves") as address:
        first = lightsplit.connect(mine, server=address, give_up_seconds=0, **cut)
        second = lightsplit.connect(mine, server=address, **cut)
        kit.train(second, kit.ADAM(second.parameters()), 1)
        first.close()
        second.close()


def test_a_server_needs_a_folder_and_certificates_beyond_this_machine(kit, tmp_path):
    _, _, _, host = ends(kit, tmp_path)
    with pytest.raises(ConfigError, match="expected a folder"):
        host.serve("127.0.0.1:0", "")
    with pytest.raises(ConfigError, match="needs certificates"):
        host.serve("0.0.0.0:0", tmp_path / "saves")


def test_what_is_no_server_is_refused(kit):
    with pytest.raises(ConfigError, match=r"or what lightsplit\.host returns, got int"):
        lightsplit.connect(kit.make_network(), server=7443, **kit.CUT)
    with pytest.raises(ConfigError, match="expected host:port"):
        lightsplit.connect(kit.make_network(), server="nowhere", **kit.CUT)


@contextmanager
def silent_streams(address, certificates, name, count):
    """Hold streams on connections of sixteen each, and say nothing."""
    end = threading.Event()

    def silence():
        end.wait()
        yield from ()

    credentials = channel_credentials(TlsFiles.of_client(certificates, name))
    own = [("grpc.use_local_subchannel_pool", 1)]
    calls = []
    with ExitStack() as stack:
        for _ in range(0, count, 16):
            channel = grpc.secure_channel(address, credentials, options=own)
            stack.enter_context(channel)
            method = channel.stream_stream(SESSION)
            calls += [method(silence()) for _ in range(16)]
        stack.callback(end.set)
        yield calls


def wait_until_one_ends(calls):
    """Wait until the server has more streams than it takes."""
    deadline = time.monotonic() + 240
    while all(call.is_active() for call in calls):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_silent_streams_keep_no_owner_out(kit, tmp_path, certificates):
    cut, mine, _, host = ends(kit, tmp_path)
    options = {"certs": certificates, "names": ["alice"]}
    many = 2 * most_streams(1)
    with (
        kit.served(host, tmp_path / "saves", **options) as address,
        silent_streams(address, certificates, "stranger", many),
        silent_streams(address, certificates, "alice", many) as calls,
    ):
        wait_until_one_ends(calls)
        model = lightsplit.connect(
            mine, server=address, name="alice", certs=certificates, **cut
        )
        kit.train(model, kit.ADAM(model.parameters()), 1)
        model.close()
    assert host.loops.applied() == {"alice": 1}


def test_a_revoked_owner_is_put_out(kit, tmp_path, certificates):
    cut, mine, _, host = ends(kit, tmp_path)
    own = shutil.copytree(certificates, tmp_path / "alice")
    with kit.served(host, tmp_path / "saves", certs=certificates) as address:
        model = lightsplit.connect(mine, server=address, name="alice", certs=own, **cut)
        kit.train(model, kit.ADAM(model.parameters()), 1)
        Registrar(CertificateFolder(certificates)).revoke("alice")
        with pytest.raises(LightSplitError, match="is revoked"):
            train_until_refused(kit, model)
        model.close()


def train_until_refused(kit, model):
    optimizer = kit.ADAM(model.parameters())
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        kit.train(model, optimizer, 1)

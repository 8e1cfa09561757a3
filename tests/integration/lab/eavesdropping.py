"""A run with one client over the network, and every message that its server gets."""

import threading
from types import SimpleNamespace

from safetensors.torch import load_file

from lab.runs import PATIENCE_SECONDS
from lightsplit.deployment.endpoint import Endpoint
from lightsplit.deployment.join_options import JoinOptions
from lightsplit.experiments.deploy import join_experiment, serve_experiment
from lightsplit.protocol import CodeMessage, Release
from lightsplit.results import RunFolder
from lightsplit.transports.grpc_client import Connection


def overheard(experiment, folder, monkeypatch, **membership):
    """Train to the end; return the client's codes and the state it left.

    Codes are by step; those that are sent once are by kind and number of sample.
    """
    codes, released, call = {}, {}, Connection.call

    def listen(self, message):
        if isinstance(message, CodeMessage) and message.is_training:
            codes[message.step] = message.code.values.clone()
        if isinstance(message, Release):
            released[message.is_training, message.first] = message.code
        return call(self, message)

    monkeypatch.setattr(Connection, "call", listen)
    state = folder / "alice"
    options = JoinOptions(state_folder=state, give_up_seconds=20, **membership)
    port, listens = [], threading.Event()

    def watch(_coordinator, number):
        port.append(number)
        listens.set()
        return True

    server = threading.Thread(
        target=serve_experiment,
        args=(experiment, RunFolder(folder / "server"), Endpoint("127.0.0.1:0")),
        kwargs={"watch": watch},
    )
    server.start()
    assert listens.wait(PATIENCE_SECONDS)
    place = Endpoint(f"127.0.0.1:{port[0]}")
    join_experiment(experiment, place, options, name="alice")
    server.join(PATIENCE_SECONDS)
    left = load_file(state / "client.safetensors")
    return SimpleNamespace(codes=codes, released=released, state=left)

"""A port that few can read at a time."""

import http.client
import socket
import threading
from contextlib import ExitStack
from http import HTTPStatus

import pytest

from lightsplit.deployment.status.http_port import Answer, listen


@pytest.fixture
def port():
    """Return a port that says what it was asked for."""

    def reply(path, host, authorization):
        text = f"{path} {host} {authorization}"
        return Answer(HTTPStatus.OK, "text/plain", text.encode())

    made = listen("127.0.0.1", 0, reply)
    thread = threading.Thread(target=made.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def ask(port, method):
    line = http.client.HTTPConnection(*port.server_address, timeout=120)
    headers = {"Host": "me", "Authorization": "Bearer x"}
    line.request(method, "/a?b", headers=headers)
    reply = line.getresponse()
    found = reply.status, reply.read()
    line.close()
    return found


def test_a_request_is_its_path_its_host_and_its_authorization(port):
    assert ask(port, "GET") == (200, b"/a me Bearer x")
    assert ask(port, "HEAD") == (200, b"")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_but_reading_is_possible(port, method):
    assert ask(port, method)[0] == 501


def test_idle_readers_do_not_pile_up(port):
    place = port.server_address
    with ExitStack() as stack:
        idle = [stack.enter_context(socket.create_connection(place)) for _ in range(40)]
        hung_up = 0
        for line in idle[16:]:
            line.settimeout(120)
            hung_up += line.recv(1) == b""
    assert hung_up == 24

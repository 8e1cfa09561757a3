"""The status port: what it shows, and to whom."""

import base64
import json
import urllib.error
import urllib.request
from importlib import resources

import pytest

from lightsplit.deployment.status import server as module
from lightsplit.deployment.status.server import StatusServer
from lightsplit.errors import ConfigError, MissingExtraError

TOKEN = "correct horse battery staple"  # noqa: S105  of these tests


def get(server, path, **headers):
    """Return status, headers and text of an answer."""
    url = f"http://127.0.0.1:{server.port}{path}"
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(url, headers=named)
    try:
        with urllib.request.urlopen(request, timeout=120) as reply:  # noqa: S310
            return reply.status, reply.headers, reply.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read().decode()


@pytest.fixture
def server(board):
    with StatusServer(board, "127.0.0.1:0") as started:
        yield started


@pytest.fixture
def guarded(board):
    with StatusServer(board, "127.0.0.1:0", TOKEN) as started:
        yield started


def test_the_state_is_the_picture(server):
    status, headers, text = get(server, "/state.json?now")
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert json.loads(text)["clients"][0]["name"] == "alice"


def test_health_is_ok_or_says_what_is_wrong(server, board, monkeypatch):
    assert get(server, "/healthz")[::2] == (200, "ok\n")
    monkeypatch.setattr(type(board), "trouble", "it stands still")
    assert get(server, "/healthz")[::2] == (503, "it stands still\n")


def test_metrics_are_there_and_say_what_they_need(server, monkeypatch):
    status, _, text = get(server, "/metrics")
    assert status == 200
    assert "lightsplit_steps_total 12.0" in text

    def missing(_picture):
        raise MissingExtraError("pip install 'lightsplit[metrics]'")

    monkeypatch.setattr(module, "RunCollector", missing)
    monkeypatch.setattr(server, "_collector", None)
    assert get(server, "/metrics")[::2] == (501, "pip install 'lightsplit[metrics]'\n")


@pytest.mark.parametrize("path", ["/", "/page.css", "/page.js"])
def test_the_page_needs_nothing_from_elsewhere(server, path):
    status, headers, text = get(server, path)
    assert status == 200
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'")
    assert "//" not in text.replace("http://www.w3.org/2000/svg", "").replace(
        "// Draws", ""
    )


def test_every_file_of_the_page_is_served():
    folder = resources.files("lightsplit.deployment.status") / "page"
    served = {file for file, _ in module._PAGE.values()}
    assert served == {file.name for file in folder.iterdir()}


def test_other_paths_are_not_found(server):
    assert get(server, "/../board.py")[0] == 404


def test_a_page_of_another_machine_cannot_read_the_loopback_port(server):
    assert get(server, "/state.json", Host="evil.example")[0] == 403
    assert get(server, "/healthz", Host="10.0.0.5")[0] == 200
    assert get(server, "/state.json", Host="localhost:9464")[0] == 200


@pytest.mark.parametrize("path", ["/", "/state.json", "/metrics", "/page.js"])
def test_without_the_token_nothing_but_health_is_shown(guarded, path):
    status, headers, text = get(guarded, path)
    assert (status, text) == (401, "the token is missing or wrong\n")
    assert headers["WWW-Authenticate"].startswith("Basic")
    assert get(guarded, "/healthz")[0] == 200


@pytest.mark.parametrize(
    ("given", "status"),
    [
        (f"Bearer {TOKEN}", 200),
        ("Basic " + base64.b64encode(f"me:{TOKEN}".encode()).decode(), 200),
        ("Bearer wrong", 401),
        ("Basic no-base64!", 401),
        ("Basic " + base64.b64encode(b"\xff").decode(), 401),
        (f"Digest {TOKEN}", 401),
    ],
)
def test_a_token_is_a_bearer_or_a_password(guarded, given, status):
    assert get(guarded, "/state.json", Authorization=given)[0] == status


def test_beyond_this_machine_a_token_is_needed(board):
    with pytest.raises(ConfigError, match=r"not on this machine.*--status-token"):
        StatusServer(board, "0.0.0.0:0")


@pytest.mark.parametrize("address", ["127.0.0.1", "9464", "127.0.0.1:x", ":9464"])
def test_an_address_has_a_host_and_a_port(board, address):
    with pytest.raises(ConfigError, match="host:port"):
        StatusServer(board, address)


def test_a_port_that_is_taken_is_one_sentence(server, board):
    with pytest.raises(ConfigError, match=r"cannot show the status on 127.0.0.1"):
        StatusServer(board, f"127.0.0.1:{server.port}")

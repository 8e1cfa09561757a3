"""Two hosts on one machine: network namespaces with a link between them.

shaped   [ls-server] 10.213.0.1 ══ veth, netem on both ends ══ 10.213.0.2 [ls-client]
routed   [ls-server] 10.213.0.1 ── veth ── relay, here ── veth ── 10.213.1.1 [ls-client]
"""

import contextlib
import platform
import shutil
import subprocess
from collections.abc import Iterator

SERVER, CLIENT = "ls-server", "ls-client"
SERVER_HOST = "10.213.0.1"
RELAY_HOST = "10.213.1.2"  # as the client sees it, where hosts are routed
_HERE = ""


class NotAllowedError(Exception):
    """Namespaces or shaping are not to be had here; the text says why."""


@contextlib.contextmanager
def shaped_hosts(*, bits_per_second: float, delay_seconds: float) -> Iterator[None]:
    """Make both hosts for the block, the link between them shaped by the kernel."""
    shape = [f"{bits_per_second:.0f}bit", "delay", f"{delay_seconds * 1e3:g}ms"]
    with _hosts():
        ends = _link("ls-veth0", (SERVER, SERVER_HOST), (CLIENT, "10.213.0.2"))
        for host, device in ends.items():
            netem = ("tc", "qdisc", "add", "dev", device, "root", "netem", "rate")
            _run(*inside(host), *netem, *shape)
        yield


@contextlib.contextmanager
def routed_hosts() -> Iterator[None]:
    """Make both hosts for the block, each joined to this one and to no other."""
    with _hosts():
        _link("ls-veth0", (SERVER, SERVER_HOST), (_HERE, "10.213.0.2"))
        _link("ls-veth1", (CLIENT, "10.213.1.1"), (_HERE, RELAY_HOST))
        yield


def inside(host: str) -> tuple[str, ...]:
    """Return what precedes a command that is to run on ``host``."""
    return ("ip", "netns", "exec", host) if host else ()


@contextlib.contextmanager
def _hosts() -> Iterator[None]:
    if platform.system() != "Linux" or not (shutil.which("ip") and shutil.which("tc")):
        raise NotAllowedError("needs Linux with iproute2 (ip and tc)")
    try:
        for host in (SERVER, CLIENT):
            _run("ip", "netns", "add", host)
        yield
    finally:  # the links go with their ends
        for host in (SERVER, CLIENT):
            _try("ip", "netns", "del", host)


def _link(name: str, *ends: tuple[str, str]) -> dict[str, str]:
    """Join two hosts under their addresses; return the device of each."""
    devices = {
        host: f"{name}{letter}" for (host, _), letter in zip(ends, "ab", strict=True)
    }
    first, second = devices.values()
    _run("ip", "link", "add", first, "type", "veth", "peer", "name", second)
    for host, address in ends:
        device = devices[host]
        if host:
            _run("ip", "link", "set", device, "netns", host)
        _run(*inside(host), "ip", "address", "add", f"{address}/24", "dev", device)
        _run(*inside(host), "ip", "link", "set", device, "up")
    return devices


def _run(*command: str) -> None:
    done = _try(*command)
    if done.returncode:
        raise NotAllowedError(f"{' '.join(command)}: {done.stderr.strip()}")


def _try(*command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603

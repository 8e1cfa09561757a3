"""Two hosts on one machine: network namespaces with a shaped link between them.

[ls-server] 10.213.0.1 ══ veth, netem on both ends ══ 10.213.0.2 [ls-client]
"""

import contextlib
import platform
import shutil
import subprocess
from collections.abc import Iterator

SERVER, CLIENT = "ls-server", "ls-client"
SERVER_HOST = "10.213.0.1"
_ENDS = {SERVER: ("ls-veth0", SERVER_HOST), CLIENT: ("ls-veth1", "10.213.0.2")}


class NotAllowedError(Exception):
    """Namespaces or shaping are not to be had here; the text says why."""


@contextlib.contextmanager
def shaped_hosts(*, bits_per_second: float, delay_seconds: float) -> Iterator[None]:
    """Make both hosts for the block; ``inside`` runs a command on one of them."""
    if platform.system() != "Linux" or not (shutil.which("ip") and shutil.which("tc")):
        raise NotAllowedError("needs Linux with iproute2 (ip and tc)")
    shape = [f"{bits_per_second:.0f}bit", "delay", f"{delay_seconds * 1e3:g}ms"]
    first, second = (name for name, _ in _ENDS.values())
    try:
        for host in _ENDS:
            _run("ip", "netns", "add", host)
        _run("ip", "link", "add", first, "type", "veth", "peer", "name", second)
        for host, (device, address) in _ENDS.items():
            _run("ip", "link", "set", device, "netns", host)
            _run(*inside(host), "ip", "address", "add", f"{address}/24", "dev", device)
            _run(*inside(host), "ip", "link", "set", device, "up")
            netem = ("tc", "qdisc", "add", "dev", device, "root", "netem", "rate")
            _run(*inside(host), *netem, *shape)
        yield
    finally:
        for host in _ENDS:
            _try("ip", "netns", "del", host)
        _try("ip", "link", "del", first)


def inside(host: str) -> tuple[str, ...]:
    """Return what precedes a command that is to run on ``host``."""
    return ("ip", "netns", "exec", host)


def _run(*command: str) -> None:
    done = _try(*command)
    if done.returncode:
        raise NotAllowedError(f"{' '.join(command)}: {done.stderr.strip()}")


def _try(*command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603

"""How many connections a process can hold without running out of descriptors."""

import resource

from lightsplit.errors import ConfigError

RESERVED = 128  # for checkpoints, logs and everything else that a server opens
FEWEST = 32


def connection_limit() -> int:
    """Return the most connections that leave descriptors for the server's files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return 2**20
    return max(FEWEST, soft - RESERVED)


def raise_limit(connections: int) -> None:
    """Let this process hold so many connections, as far as the system allows it.

    Many systems give a process 1,024 descriptors and let it ask for more.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + RESERVED
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def make_room(owners: int) -> None:
    """Let this process hold a connection for each owner, or refuse to serve them."""
    raise_limit(owners)
    limit = connection_limit()
    if owners > limit:
        raise ConfigError(
            f"a server of {owners:,} owners must open {owners + RESERVED:,} files at a "
            f"time, and the system allows it {limit + RESERVED:,}; raise the limit "
            f"first: ulimit -n {owners + RESERVED}"
        )

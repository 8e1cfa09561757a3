"""How many connections a process can hold without running out of descriptors."""

import resource

RESERVED = 128  # for checkpoints, logs and everything else that a server opens
FEWEST = 32


def connection_limit() -> int:
    """Return the most connections that leave descriptors for the server's files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return 2**20
    return max(FEWEST, soft - RESERVED)

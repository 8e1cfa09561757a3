"""The malicious clients: given by index, or drawn from the seed."""

import re

from lightsplit.errors import ConfigError
from lightsplit.seeding import numpy_generator


def draw_malicious(
    wanted: str | float, *, clients: int, spared: int | None = None, seed: int = 0
) -> tuple[int, ...]:
    """Return the sorted indices of the malicious clients.

    Args:
        wanted: a list such as "0,4"; or a share of the clients (at least one client);
            or, if 1 or more, a number of clients.
        clients: the number of clients.
        spared: a client that is never drawn, such as the trusted one.
        seed: the same seed draws the same clients; a smaller number draws a subset.
    """
    if isinstance(wanted, str):
        return _named(wanted, clients)
    if not wanted:
        return ()
    count = max(1, round(wanted * clients)) if wanted < 1 else wanted
    able = [client for client in range(clients) if client != spared]
    if count != int(count) or count > len(able):
        raise ConfigError(
            "malicious must be a share below 1 or a whole number up to "
            f"{len(able)}, got {wanted:g}"
        )
    order = numpy_generator(seed, "malicious").permutation(len(able))
    return tuple(sorted(able[place] for place in order[: int(count)]))


def _named(text: str, clients: int) -> tuple[int, ...]:
    if not re.fullmatch(r"\s*\d+\s*(,\s*\d+\s*)*", text):
        raise ConfigError(f"malicious_clients must be a list such as 0,4, got {text!r}")
    indices = sorted({int(part) for part in text.split(",")})
    if indices[-1] >= clients:
        raise ConfigError(
            f"malicious_clients must be from 0 to {clients - 1}, got {text!r}"
        )
    return tuple(indices)

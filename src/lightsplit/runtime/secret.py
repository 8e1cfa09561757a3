"""A client's secret: the seed of everything that the server must not be able to redraw.

    secret ──► first weights of head, tail and encoder; order of the batches; dropout;
               noise; the steps at which an inspector tries the server

The secret stays with the client: no message carries it, and the contract does not hold
it. In one process there is nobody to hide from, and ``Secret(seed)`` with the run's
seed makes the run repeatable.
"""

import hmac
import re
import secrets
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NoReturn, Self

from lightsplit import seeding
from lightsplit.errors import ConfigError
from lightsplit.transports import key_files

SECRET_BITS = 256
FILE_PREFIX = "lightsplit-secret-1:"
_LONGEST_SEED_BITS = 64
_LINE = re.compile(rf"{FILE_PREFIX}([0-9a-f]{{1,{SECRET_BITS // 4}}})\n?".encode())


class Secret:
    """An integer that only its owner knows.

    A value of up to 64 bits counts as the seed of a run: draws derive from it exactly
    as they derive from the run's seed. ``Secret.random()`` makes a real secret.

    Example:
        >>> Secret.random()
        Secret('********')
        >>> Secret(3) == Secret(3)
        True
    """

    __slots__ = ("_value",)

    def __init__(self, value: int) -> None:
        if not 0 <= value < 2**SECRET_BITS:
            came = "a negative one" if value < 0 else f"{value.bit_length()} bits"
            raise ConfigError(
                f"a secret must be an integer from 0 on with at most {SECRET_BITS} "
                f"bits, got {came}"
            )
        self._value = int(value)

    @classmethod
    def random(cls) -> Self:
        """Return a new secret from the operating system's randomness."""
        return cls(secrets.randbits(SECRET_BITS))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a secret that ``save`` wrote; refuse a file that others can read."""
        found = _LINE.fullmatch(key_files.read(path, is_secret=True))
        if found is None:
            raise ConfigError(
                f"{path} is not a client's secret: expected one line, "
                f"'{FILE_PREFIX}' and hexadecimal digits"
            )
        return cls(int(found[1], 16))

    @classmethod
    def kept(cls, path: Path) -> Self:
        """Return the secret in the file ``path``; the first time, make a random one."""
        if not path.exists():
            cls.random().save(path)
        return cls.load(path)

    def save(self, path: Path) -> None:
        """Write the secret for its owner's eyes only; refuse if ``path`` exists."""
        line = f"{FILE_PREFIX}{self._value:x}\n"
        key_files.write_new(path, line.encode(), is_secret=True)

    @property
    def value(self) -> int:
        """The integer, as a seed for draws that take one."""
        return self._value

    @property
    def is_seed(self) -> bool:
        """Return whether the value is short enough to be the seed of a run."""
        return self._value.bit_length() <= _LONGEST_SEED_BITS

    def derived(self, text: str) -> "Secret":
        """Return another secret, which depends on ``text`` and gives nothing away."""
        key = self._value.to_bytes(SECRET_BITS // 8, "big")
        return Secret(int.from_bytes(hmac.digest(key, text.encode(), "sha256"), "big"))

    def scope(self, *names: int | str) -> AbstractContextManager[None]:
        """Run the block with torch seeded for ``names``; then restore its generators.

        Torch uses only 32 bits of a seed on the CPU, few enough to try them all. A real
        secret therefore seeds the whole state of the generator.
        """
        if self.is_seed:
            return seeding.scope(self._value, *names)
        return seeding.wide_scope(self._value, *names)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return "Secret('********')"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled; save() it and load() it")


class ClientDraws:
    """Gives every pass of one client through its modules its own seed.

    Training draws from (secret, client, step, part). Prediction draws from (secret,
    client, step, "predict", count), where the count of passes starts again at every
    step and every evaluation: a resumed run draws the same numbers.
    """

    def __init__(self, secret: Secret) -> None:
        self.secret = secret
        self._predicted_at = (0, 0)
        self._predictions = 0

    def training(
        self, client: int, step: int, part: str
    ) -> AbstractContextManager[None]:
        """Seed the pass of ``step`` through the head or the tail."""
        self._predictions = 0
        return self.secret.scope(client, step, part)

    def release(
        self, client: int, pool: str, first: int
    ) -> AbstractContextManager[None]:
        """Seed the codes, sent once, of samples from number ``first`` on.

        The draws depend on the secret and the samples' position. The server assigns a
        client's number, so another number must not lead to other draws. In one process,
        where all clients draw from one seed, their number tells them apart.
        """
        who = client if self.secret.is_seed else "own"
        return self.secret.scope(who, "release", pool, first)

    def begin_evaluation(self) -> None:
        """Draw as for the first evaluation after this step, if it is another one."""
        self._predictions = 0

    def prediction(self, client: int, step: int) -> AbstractContextManager[None]:
        """Seed the next pass of a prediction, after ``step`` steps of training."""
        if self._predicted_at != (client, step):
            self._predicted_at, self._predictions = (client, step), 0
        self._predictions += 1
        return self.secret.scope(client, step, "predict", self._predictions - 1)

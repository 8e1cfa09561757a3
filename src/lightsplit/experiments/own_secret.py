"""The source of a client's randomness: the run's seed, or the client's own secret.

In one process every client draws from the run's seed, so that results repeat. Over the
network a client draws from a random secret of its own, which it keeps in its folder.
Clients that share a sealing key draw the first weights from that key instead, because
they share a head and must start from the same weights. A secret given by the owner
overrides all this; given the run's seed, a networked client draws the same numbers as
a client in one process.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

from lightsplit import seeding
from lightsplit.errors import ConfigError
from lightsplit.experiments.config import Experiment
from lightsplit.runtime import Secret
from lightsplit.transports.sealing import SealingKey

FILE_NAME = "secret"


class ClientSecrets(NamedTuple):
    """The two secrets that a client of one run draws from.

    Attributes:
        own: seeds the order of the batches, dropout, noise and an inspector's probes.
        first_weights: seeds the first weights of head, tail and encoder.
    """

    own: Secret
    first_weights: Secret

    @classmethod
    def of_run(cls, seed: int) -> Self:
        """Return the secrets of every client in one process."""
        return cls(Secret(seed), Secret(seed))

    @property
    def start(self) -> str:
        """A name of the first weights that does not reveal their secret."""
        return f"{seeding.derive(self.first_weights.value, 'name'):016x}"


@dataclass(frozen=True)
class OwnSecret:
    """The secret of one networked client.

    Attributes:
        secret: the secret itself, given by the owner or random.
        file: the file that keeps a random secret; None if it was given or is not kept.
        is_given: whether the owner gave it.
    """

    secret: Secret
    file: Path | None
    is_given: bool

    @classmethod
    def find(cls, given: Secret | None, folder: Path | None) -> Self:
        """Return the given secret, else that of an earlier start, else a random one.

        Nothing is written before ``keep``, so a refused client leaves no trace.
        """
        file = None if folder is None else folder / FILE_NAME
        is_kept = file is not None and file.exists()
        if given is not None and is_kept:
            raise ConfigError(
                f"got a secret, but {file} already holds that of an earlier start: "
                "start without --secret to resume that run, or choose another folder"
            )
        if given is not None:
            return cls(given, None, is_given=True)
        secret = Secret.load(file) if file and is_kept else Secret.random()
        return cls(secret, file, is_given=False)

    def keep(self) -> None:
        """Write a random secret to its file, unless the file exists already."""
        if self.file is not None and not self.file.exists():
            self.secret.save(self.file)

    def for_run(
        self, experiment: Experiment, key: SealingKey | None = None
    ) -> ClientSecrets:
        """Return the secrets that the client draws from in this run.

        Runs with different settings share no draw, even from the same secret: noise
        that is used twice can be subtracted.
        """
        own = self.of_experiment(experiment.to_toml())
        if key is None or self.is_given:
            return ClientSecrets(own, own)
        return ClientSecrets(own, Secret(key.derive("first weights", experiment.seed)))

    def of_experiment(self, text: str) -> Secret:
        """Return the secret for a run whose experiment file is ``text``."""
        return self.secret if self.is_given else self.secret.derived(text)

"""Predictions with a trained split model, over the network."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

from torch.utils.data import Subset, default_collate

from lightsplit.data import MaskForm
from lightsplit.deployment.endpoint import Endpoint
from lightsplit.deployment.prediction import predicting
from lightsplit.errors import ConfigError, DataError, MissingDataError
from lightsplit.experiments import pieces
from lightsplit.experiments.client_data import load_own
from lightsplit.experiments.config import (
    Experiment,
    make_experiment,
    read_experiment,
)
from lightsplit.experiments.network_ends import client_end, not_connected
from lightsplit.experiments.own_secret import OwnSecret
from lightsplit.nesting import batch_size
from lightsplit.results import tensors
from lightsplit.runs import EVALUATION_BATCH, Scoring
from lightsplit.runs.evaluation import Scorer
from lightsplit.runtime import Client, Secret
from lightsplit.tasks import Task
from lightsplit.transports.credentials import TlsFiles
from lightsplit.transports.homomorphic import Cost, Encrypting
from lightsplit.transports.sealing import SealingKey
from lightsplit.user_code import one_line_errors


class Predictions(NamedTuple):
    """The model's answers.

    Attributes:
        samples: the name of each sample: its file, or its number.
        predictions: a class for each sample, by name if the task has names; a mask of
            grey values if its form has masks; else the model's output.
        labels: the true ones in the same words; empty if the samples have none.
        figures: the loss and the task's metrics; empty without labels.
        cost: of encrypted predictions; None if they were not encrypted.
    """

    samples: list[str]
    predictions: list[Any]
    labels: list[Any]
    figures: dict[str, float]
    cost: Cost | None = None


class Predictor:
    """A connection to a trained model: the owner's half here, the backbone there.

    It stays open until its block ends. A line that breaks, or that the server cuts
    because it was silent, is opened once more at the next batch.

    Args:
        client: connected to the server.
        task: of the run.

    Attributes:
        task: of the run.
    """

    def __init__(self, client: Client, task: Task) -> None:
        self.client = client
        self.task = task

    @classmethod
    @contextmanager
    def connect(  # noqa: PLR0913
        cls,
        experiment: Path | str,
        *,
        server: str,
        name: str,
        certs: Path | str | None = None,
        state: Path | str | None = None,
        key: Path | str | None = None,
        secret: Path | str | None = None,
        insecure: bool = False,
    ) -> Iterator[Self]:
        """Connect to the server of a run and yield a predictor until the block ends.

        Args:
            experiment: the experiment file that ``lightsplit join`` took.
            server: ``host:port``.
            name: of this owner, as in its certificate.
            certs: folder with this owner's certificate; without it plain text, on this
                machine only.
            state: folder of this owner's half from ``join``, with private heads or
                codes that were sent once.
            key: file with the key of the hand-offs, with shared heads.
            secret: file with the owner's secret, if ``join`` was given one.
            insecure: allows plain text beyond this machine.
        """
        tls = TlsFiles.of_client(Path(certs), name) if certs else None
        with connected(
            make_experiment(read_experiment(Path(experiment))),
            Endpoint(server, tls, insecure),
            name=name,
            key=SealingKey.load(Path(key)) if key else None,
            secret=Secret.load(Path(secret)) if secret else None,
            folder=Path(state) if state else None,
        ) as (client, task):
            yield cls(client, task)

    def __call__(self, inputs: Any) -> Any:
        """Return the model's output for a batch of inputs, collated as for the model.

        A batch has up to 512 samples.
        """
        _check_batch(batch_size(inputs))
        return self.client.predict(inputs)

    def in_words(self, values: Any) -> list[Any]:
        """Return classes by their names or grey values where the task has them."""
        if isinstance(self.task.form, MaskForm):
            return self.task.form.greys(values)
        names = getattr(self.task.form, "classes", None)
        found = list(values.tolist())
        if self.task.classes is None or not isinstance(names, tuple):
            return found
        return [names[one] for one in found]

    def chosen(self, output: Any) -> list[Any]:
        """Return the class of each sample in an output, by its name if it has one.

        Without classes this is the output itself.
        """
        has_classes = self.task.classes is not None
        is_mask = isinstance(self.task.form, MaskForm)
        return self.in_words(output.argmax(1) if has_classes or is_mask else output)


@contextmanager
def connected(
    experiment: Experiment,
    endpoint: Endpoint,
    *,
    name: str,
    key: SealingKey | None = None,
    secret: Secret | None = None,
    folder: Path | None = None,
) -> Iterator[tuple[Client, Task]]:
    """Yield a client that is connected to the server of a run, and the run's task.

    Args:
        experiment: the same experiment as the server's.
        endpoint: how to reach the server.
        name: the client's name, as in its certificate.
        key: of the hand-offs, with shared heads.
        secret: of the client, if ``join`` was given one.
        folder: of this client's side from ``join``, with private heads.
    """
    secrets = OwnSecret.find(secret, folder).for_run(experiment, key)
    side, contract = client_end(experiment, secrets)
    client = pieces.make_client(experiment, side, not_connected, secrets=secrets)
    if folder is not None:
        side.load(tensors.load(folder / "client.safetensors"))
        client.kept = client.hand_off.frozen(side.state())
    with predicting(client, contract, endpoint, name=name, key=key):
        yield client, experiment.make_task()


def predict_experiment(  # noqa: PLR0913
    experiment: Experiment,
    endpoint: Endpoint,
    *,
    name: str,
    key: SealingKey | None = None,
    secret: Secret | None = None,
    folder: Path | None = None,
    data_dir: Path | None = None,
    own_data: Path | None = None,
    batch: int = EVALUATION_BATCH,
    watch: Callable[[int, int], None] = lambda _done, _all: None,
) -> Predictions:
    """Return predictions and labels of the test set, and the task's figures.

    Args:
        experiment: the same experiment as the server's.
        endpoint: how to reach the server.
        name: the client's name, as in its certificate.
        key: of the hand-offs, with shared heads.
        secret: of the client, if ``join`` was given one.
        folder: of this client's side from ``join``, with private heads.
        data_dir: folder of the datasets.
        own_data: folder with this owner's own files instead: those that the task's
            ``new_data`` finds in it, or else the test set of ``data``.
        batch: samples that are sent at a time.
        watch: called with the number of samples done and of all after each batch.
    """
    _check_batch(batch)
    task = experiment.make_task()
    samples = _samples(experiment, data_dir, own_data)
    names = sample_names(samples)
    predictions: list[Any] = []
    labels: list[Any] = []
    with connected(
        experiment, endpoint, name=name, key=key, secret=secret, folder=folder
    ) as (client, _):
        predictor = Predictor(client, task)
        scorer = Scorer(Scoring.of(task), client)
        for inputs, truth in _batches(samples, batch):
            output = predictor(inputs)
            predictions += predictor.chosen(output)
            if truth is not None:
                scorer.add(output, truth)
                labels += predictor.in_words(truth)
            watch(len(predictions), len(samples))
        send = client.send
        cost = send.cost if isinstance(send, Encrypting) else None
    figures = scorer.figures() if labels else {}
    return Predictions(names, predictions, labels, figures, cost)


def _check_batch(samples: int) -> None:
    if not 1 <= samples <= EVALUATION_BATCH:
        raise ConfigError(
            f"the batch size of a prediction must be 1 to {EVALUATION_BATCH}, "
            f"got {samples}"
        )


def _samples(
    experiment: Experiment, data_dir: Path | None, own_data: Path | None
) -> Any:
    """Return the owner's new samples, or a test set."""
    task = experiment.make_task()
    if own_data is None:
        return pieces.load_dataset(experiment, data_dir).test
    if task.new_data is None:
        return load_own(experiment, own_data).test
    if not own_data.is_dir():
        raise MissingDataError(f"there is no folder {own_data} to predict on")
    with one_line_errors(f"the new data of {task.name} cannot be loaded", DataError):
        found = task.new_data(own_data)
    return load_own(experiment, own_data).test if found is None else Unlabelled(found)


class Unlabelled:
    """Samples without labels, in batches.

    Args:
        dataset: a sample is its inputs.
    """

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def batch(self, rows: Any) -> tuple[Any, None]:
        """Return the inputs at ``rows``, collated, and no labels."""
        return default_collate([self.dataset[row] for row in rows.tolist()]), None


def _batches(samples: Any, batch_size: int) -> Iterator[tuple[Any, Any]]:
    return iter(pieces.TestBatches(samples, batch_size))


def sample_names(samples: Any) -> list[str]:
    """Return the files of the samples if they come from files, else their numbers."""
    files = _files(getattr(samples, "dataset", None))
    if files is None:
        return [str(number) for number in range(len(samples))]
    return [file.name for file in files]


def _files(dataset: Any) -> list[Path] | None:
    if isinstance(dataset, Subset):
        files = _files(dataset.dataset)
        return None if files is None else [files[row] for row in dataset.indices]
    found = getattr(dataset, "files", None) or [None]
    files = [one[0] if isinstance(one, tuple) else one for one in found]
    return files if all(isinstance(one, Path) for one in files) else None

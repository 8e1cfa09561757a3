"""The settings and figures of a run for MLflow, if the extra is installed."""

import os
import time
from collections.abc import Mapping
from typing import Any

from lightsplit.errors import ConfigError
from lightsplit.extras import check
from lightsplit.runs.callbacks import Callback, RunStart, scalars

EXPERIMENT = "lightsplit"
_LONGEST = 6000  # characters of a setting that MLflow takes


class MLflowLog(Callback):
    """Adds a run to an MLflow store: a database or a tracking server.

    MLflow's own reports to its makers are switched off, unless the environment says
    otherwise (``MLFLOW_DISABLE_TELEMETRY=false``).

    Args:
        store: ``sqlite:///mlflow.db``, ``http://host:5000``, or any other address that
            MLflow takes.
    """

    def __init__(self, store: str) -> None:
        check("mlflow", purpose="--mlflow")
        if "://" not in store:
            raise ConfigError(
                "--mlflow expects the address of a store, such as sqlite:///mlflow.db "
                f"or http://host:5000, got {store!r}"
            )
        self._store = store
        self._client: Any = None
        self._run = ""

    def start(self, run: RunStart) -> None:
        """Begin a run with every setting as a parameter."""
        from mlflow.entities import Param

        self._client = _client(self._store)
        created = self._client.create_run(
            _experiment(self._client),
            run_name=run.name,
            tags={"command": run.command, "folder": str(run.folder or "")},
        )
        self._run = created.info.run_id
        params = [
            Param(name, str(value)[:_LONGEST]) for name, value in run.settings.items()
        ]
        self._client.log_batch(self._run, params=params)

    def log(self, line: Mapping[str, Any]) -> None:
        """Add the line's numbers at its step."""
        from mlflow.entities import Metric

        now, step = int(time.time() * 1000), line["step"]
        found = scalars(line).items()
        metrics = [Metric(name, value, now, step) for name, value in found]
        self._client.log_batch(self._run, metrics=metrics)

    def end(self, *, is_finished: bool) -> None:
        """Say how the run ended; one that may be resumed counts as killed."""
        status = "FINISHED" if is_finished else "KILLED"
        self._client.set_terminated(self._run, status=status)


def _client(store: str) -> Any:
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=store)


def _experiment(client: Any) -> str:
    """Return the number of our experiment in the store, which is made if need be."""
    from mlflow.exceptions import MlflowException

    known = client.get_experiment_by_name(EXPERIMENT)
    if known is None:
        try:
            return str(client.create_experiment(EXPERIMENT))
        except MlflowException:  # another process was faster
            known = client.get_experiment_by_name(EXPERIMENT)
            if known is None:
                raise
    return str(known.experiment_id)

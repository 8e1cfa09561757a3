"""Cells on a Ray cluster: the same orders, the same events.

All cells are given to Ray at once, which places them as its nodes have room. A task is
never repeated by Ray itself: the sweep does that, so a cell whose worker died goes on
from its checkpoint. Cells on machines that do not see the sweep's folder come back
with their files.
"""

from collections.abc import Callable
from typing import Any

from lightsplit.errors import ConfigError
from lightsplit.sweeps.work import Ended, Event, Order, run_cell

NO_LIMIT = 1_000_000


class RayWorkers:
    """Tasks of a Ray cluster; ``local`` starts one on this machine."""

    def __init__(self, address: str, *, cpus: float = 1, gpus: float = 0) -> None:
        self._ray = _load_ray()
        _connect(self._ray, address)
        from ray.util.queue import Queue

        self._queue = Queue(actor_options={"num_cpus": 0})
        self._task = self._ray.remote(
            num_cpus=cpus, num_gpus=gpus, max_retries=0, max_calls=1
        )(_run_remotely)
        self._running: dict[Any, str] = {}
        self._cancelled: set[Any] = set()

    @property
    def free(self) -> int:
        """How many more cells can be started now: Ray has a queue of its own."""
        return NO_LIMIT

    def start(self, order: Order) -> None:
        """Give a cell to the cluster."""
        self._running[self._task.remote(order, self._queue)] = order.key

    def events(self, timeout_seconds: float) -> list[Event]:
        """Return what the tasks have said, the death of a worker included."""
        ended, _ = self._ray.wait(
            list(self._running), num_returns=1, timeout=timeout_seconds
        )
        return [*self._told(), *map(self._result, ended)]

    def stop(self) -> None:
        """Cancel every task; what is not finished goes on from its checkpoint."""
        for reference in self._running:
            self._ray.cancel(reference, force=True)
            self._cancelled.add(reference)

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        self._ray.shutdown()

    def _told(self) -> list[Event]:
        events: list[Event] = self._queue.get_nowait_batch(self._queue.size())
        return events

    def _result(self, reference: Any) -> Ended:
        key = self._running.pop(reference)
        try:
            ended: Ended = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            outcome = "stopped" if reference in self._cancelled else "lost"
            return Ended(key, outcome, _first_line(error))
        return ended


def _run_remotely(order: Order, queue: Any) -> Ended:
    """Run a cell where Ray has put it."""
    never: Callable[[], bool] = lambda: False  # noqa: E731
    return run_cell(order, queue.put_nowait, never)


def _connect(ray: Any, address: str) -> None:
    options = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        if address == "local":
            ray.init(address="local", include_dashboard=False, **options)
        else:
            ray.init(address=address, **options)
    except Exception as error:  # Ray has no narrower one for a start that takes long
        reason = _first_line(error)
        raise ConfigError(f"cannot reach Ray at {address!r}: {reason}") from error


def _first_line(error: Exception) -> str:
    """Return what an error says first; some of Ray's say nothing but their name."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _load_ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise ConfigError(
            "Ray is not installed; pip install 'lightsplit[ray]'"
        ) from error
    return ray

"""Cells on a Ray cluster, with the same orders and events as local ones.

The sweep gives all cells to Ray at once, and Ray places them as its nodes have room.
Ray never repeats a task. The sweep repeats it, so that a cell whose worker died resumes
from its checkpoint. A cell on a machine that does not see the sweep's folder sends its
files back. If a node does not start on a busy machine, the start is tried again.
"""

import time
from collections.abc import Callable
from typing import Any

from lightsplit.errors import ConfigError
from lightsplit.extras import require
from lightsplit.sweeps.work import Ended, Event, Order, run_cell

NO_LIMIT = 1_000_000
STARTS = 3  # attempts to start a node on this machine
PAUSE_SECONDS = 5.0
OPTIONS = {"log_to_driver": False, "logging_level": "ERROR"}

Say = Callable[[str], None]


class RayWorkers:
    """Tasks of a Ray cluster; the address ``local`` starts one on this machine.

    Args:
        address: ``local``, or the address of a cluster.
        cpus: CPUs of each cell.
        gpus: GPUs of each cell.
        say: called with one line of text when a start fails and is tried again.
    """

    def __init__(
        self,
        address: str,
        *,
        cpus: float = 1,
        gpus: float = 0,
        say: Say = lambda _line: None,
    ) -> None:
        self._ray: Any = require("ray", extra="ray", purpose="--ray")
        if address == "local":
            _start(self._ray, say)
        else:
            _connect(self._ray, address)
        queues = require("ray.util.queue", extra="ray")
        self._queue = queues.Queue(actor_options={"num_cpus": 0})
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
        """Submit a cell to the cluster."""
        self._running[self._task.remote(order, self._queue)] = order.key

    def events(self, timeout_seconds: float) -> list[Event]:
        """Return the events of the tasks, including the death of a worker."""
        ended, _ = self._ray.wait(
            list(self._running), num_returns=1, timeout=timeout_seconds
        )
        return [*self._told(), *map(self._result, ended)]

    def stop(self) -> None:
        """Cancel every task; an unfinished cell can resume from its checkpoint."""
        for reference in self._running:
            self._ray.cancel(reference, force=True)
            self._cancelled.add(reference)

    def close(self) -> None:
        """Leave the cluster, and end it if it was started here."""
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
    """Run a cell on the node that Ray chose."""
    never: Callable[[], bool] = lambda: False  # noqa: E731
    return run_cell(order, queue.put_nowait, never)


def _start(ray: Any, say: Say) -> None:
    """Start a node here; a busy machine may need several attempts."""
    reason = ""
    for start in range(1, STARTS + 1):
        try:
            ray.init(address="local", include_dashboard=False, **OPTIONS)
        except Exception as error:  # noqa: BLE001 (Ray raises it for a slow start)
            reason = _first_line(error)
        else:
            return
        ray.shutdown()  # end the processes that did start
        if start < STARTS:
            say(
                f"Ray did not start ({reason}); trying again in {PAUSE_SECONDS:g} s, "
                f"attempt {start + 1} of {STARTS}"
            )
            time.sleep(PAUSE_SECONDS)
    raise ConfigError(
        f"expected Ray to start on this machine, but it failed {STARTS} times "
        f"({reason}); leave out --ray, or run 'ray start --head' and give its address"
    )


def _connect(ray: Any, address: str) -> None:
    try:
        ray.init(address=address, **OPTIONS)
    except Exception as error:  # Ray has no narrower error for a slow start
        reason = _first_line(error)
        raise ConfigError(f"cannot reach Ray at {address!r}: {reason}") from error


def _first_line(error: Exception) -> str:
    """Return the first line of an error; some of Ray's errors have only a name."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]

"""Timing that a noisy machine cannot bend much: interleaved rounds, medians, ratios."""

import statistics
import time
from collections.abc import Callable, Mapping


def interleaved_medians(
    tasks: Mapping[str, Callable[[], object]], *, rounds: int, warm_up: int = 2
) -> dict[str, float]:
    """Return the median seconds of each task, run in turn ``rounds`` times."""
    seconds = interleaved_seconds(tasks, rounds=warm_up + rounds)
    return {
        name: statistics.median(values[warm_up:]) for name, values in seconds.items()
    }


def interleaved_seconds(
    tasks: Mapping[str, Callable[[], object]], *, rounds: int
) -> dict[str, list[float]]:
    """Return the seconds of each task in every round."""
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(rounds):
        for name, task in tasks.items():
            began = time.perf_counter()
            task()
            seconds[name].append(time.perf_counter() - began)
    return seconds

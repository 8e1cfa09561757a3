"""SDAR and FORA, a step each: the victim's share, the attack's, and where that goes.

    python -m benchmarks.online_attacks [--quick] [--batch-size N]

Random images of CIFAR-10's shape, one thread, seconds of CPU time: what else runs on
the machine disturbs them less than wall time. All attacks take their turns in one
process. Parts are timed from outside while the attack runs:

    NAME forward    all forward passes of a network
    slopes          derivatives of discriminators or critic that teach another network
    NAME backward   backward passes and updates of networks that learn
    penalty         FORA's gradient penalty up to its second derivative, which is in
                    the critic's backward pass
"""

import argparse
import json
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from benchmarks.random_cifar import write_random_cifar
from lightsplit.attacks import (
    Exchange,
    Knowledge,
    LabelledImages,
    equip,
    fora_training,
    sdar_training,
)
from lightsplit.attacks.divergences import gradient_penalty, multi_kernel_mmd
from lightsplit.attacks.fora import FORA
from lightsplit.attacks.learner import descend
from lightsplit.attacks.online import TrainedAlongside
from lightsplit.attacks.sdar import SDAR
from lightsplit.audits.setup import fresh_parts, server_setup
from lightsplit.experiments import Job, build, from_settings
from lightsplit.protocol import Reply, Request

KINDS: dict[str, type[TrainedAlongside]] = {"sdar": SDAR, "fora": FORA}
CASES = {
    "sdar vanilla": ("sdar", {"model": "resnet20", "cut": "4", "topology": "vanilla"}),
    "sdar u": ("sdar", {"model": "resnet20", "cut": "4", "topology": "u"}),
    "fora vanilla": ("fora", {"model": "mobilenet", "cut": "2", "topology": "vanilla"}),
}


def measure(*, batch_size: int = 32, rounds: int = 5) -> dict[str, object]:
    """Return seconds per step of each attack and its victim, and of each part."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with tempfile.TemporaryDirectory() as folder:
            write_random_cifar(Path(folder))
            scenes = {n: Scene(*case, batch_size, folder) for n, case in CASES.items()}
            for scene in scenes.values():
                scene.step()  # a first one, to warm up
                scene.forget()
            for _ in range(rounds):
                for scene in scenes.values():
                    scene.step()
    finally:
        torch.set_num_threads(threads)
    return {
        "batch_size": batch_size,
        "rounds": rounds,
        "cpu_seconds": {name: scene.medians() for name, scene in scenes.items()},
    }


class Scene:
    """A victim in training with an attack at its server, and clocks at both."""

    def __init__(
        self, attack: str, settings: dict[str, str], batch_size: int, folder: str
    ) -> None:
        more = {"dataset": "cifar10", "codec": "raw", "clients": 1}
        experiment = from_settings({**settings, **more, "batch_size": batch_size})
        self._job = build(experiment, Path(folder))
        self._attack = _prepare(attack, self._job)
        self._actor = self._job.trainer.clients[0]
        self._send = self._actor.send
        self._actor.send = self._watched
        self._spent: dict[str, float] = defaultdict(float)
        self._steps: list[dict[str, float]] = []
        self._is_whole = False
        for name, learner in self._attack.learners.items():
            _clock_calls(learner.network, f"{name} forward", self._timed)
        _clock_calls(self._attack.server, "server forward", self._timed)

    def step(self) -> None:
        """Take one step of the victim's training, watched by the attack."""
        self._spent.clear()
        began = time.process_time()
        with self._clocks():
            self._actor.run_turn(self._job.trainer.batches[0], 1)
        parts, attack = dict(self._spent), self._spent.pop("attack")
        victim = time.process_time() - began - attack
        parts["rest"] = attack - sum(self._spent.values())
        self._steps.append({"victim": victim, **parts})

    def forget(self) -> None:
        """Drop what was measured so far."""
        self._steps.clear()

    def medians(self) -> dict[str, float]:
        """Return the median of each part over the steps."""
        return {
            name: round(statistics.median(step[name] for step in self._steps), 4)
            for name in self._steps[0]
        }

    def _watched(self, request: Request) -> Reply:
        reply = self._send(request)
        weights = self._job.trainer.server.side.modules.state_dict()
        with self._timed("attack"):
            self._attack.observe(Exchange(request, reply), weights)
        return reply

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        if self._is_whole:  # a part that is not taken apart
            yield
            return
        self._is_whole = part == "penalty"
        began = time.process_time()
        yield
        self._spent[part] += time.process_time() - began
        self._is_whole = False

    @contextmanager
    def _clocks(self) -> Iterator[None]:
        """Time the functions in which an attack's losses and updates are made."""
        learners = self._attack.learners.items()
        names = {id(learner): name for name, learner in learners}

        def title(updated: list[object], *_: object) -> str:
            return f"{', '.join(names[id(one)] for one in updated)} backward"

        with (
            mock.patch.multiple(
                fora_training,
                descend=self._clocked(descend, title),
                multi_kernel_mmd=self._clocked(multi_kernel_mmd, "mk-mmd"),
                gradient_penalty=self._clocked(gradient_penalty, "penalty"),
            ),
            mock.patch.object(sdar_training, "descend", self._clocked(descend, title)),
            mock.patch.object(
                torch.autograd, "grad", self._clocked(torch.autograd.grad, "slopes")
            ),
        ):
            yield

    def _clocked(
        self, function: Callable[..., Any], part: str | Callable[..., str]
    ) -> Callable[..., Any]:
        def timed(*args: Any, **options: Any) -> Any:
            with self._timed(part if isinstance(part, str) else part(*args)):
                return function(*args, **options)

        return timed


def _clock_calls(
    network: torch.nn.Module, part: str, timed: Callable[..., Any]
) -> None:
    """Let a network's own calls run under a clock."""
    forward = network.forward

    def clocked(*args: Any) -> Any:
        with timed(part):
            return forward(*args)

    network.forward = clocked


def _prepare(attack: str, job: Job) -> TrainedAlongside:
    test, task = job.dataset.test, job.experiment.make_task()
    knowledge = Knowledge(
        image_shape=task.image_shape,
        classes=task.class_count,
        auxiliary=LabelledImages(*test.batch(range(len(test)))),
        architecture=lambda: fresh_parts(job.experiment, 1).head,
        setup=server_setup(job.experiment, job.contract, 1),
    )
    equipped = equip(KINDS[attack], knowledge, form="published")
    assert equipped is not None  # noqa: S101  it has all there is
    return equipped


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two rounds, not five")
    parser.add_argument("--batch-size", type=int, default=32)
    options = parser.parse_args()
    rounds = 2 if options.quick else 5
    print(json.dumps(measure(batch_size=options.batch_size, rounds=rounds), indent=2))


if __name__ == "__main__":
    main()

"""UnSplit, images stacked, against the released form: one image, plain PyTorch.

    python -m benchmarks.unsplit

Both take the same steps on mnistnet; each takes its turn within one run. Images per
hour are for the published schedule, 1,000 times (100 + 100) steps, from 200 measured.
"""

import json
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from benchmarks.timing import interleaved_medians
from lightsplit.attacks.unsplit_clones import Observed
from lightsplit.attacks.unsplit_loop import RELEASED, Schedule, invert
from lightsplit.models import CUTS, MODELS

IMAGE = (1, 28, 28)
STACKED = (10, 40)
MEASURED = Schedule(main_iterations=2, inner_iterations=50)


def measure(rounds: int = 5) -> dict[str, object]:
    """Return images per hour at each cut, and how many times the released form's."""
    return {
        "model": "mnistnet",
        "threads": torch.get_num_threads(),
        "rounds": rounds,
        "cuts": {cut: _at_cut(cut, rounds) for cut in CUTS["mnistnet"].names},
    }


def _at_cut(cut: str, rounds: int) -> dict[str, object]:
    head = partial(_head, cut)
    rows = head()(torch.rand(max(STACKED), *IMAGE)).detach()
    tasks: dict[str, Callable[[], object]] = {
        "released": partial(_released, rows[:1], head())
    }
    for count in STACKED:
        tasks[f"{count} stacked"] = partial(
            invert,
            [Observed(rows[:count])],
            head,
            image_shape=IMAGE,
            schedule=MEASURED,
        )
    seconds = interleaved_medians(tasks, rounds=rounds, warm_up=1)
    share = _steps(MEASURED) / _steps(RELEASED)
    counts = dict(zip(tasks, (1, *STACKED), strict=True))
    hourly = {name: counts[name] * share * 3600 / seconds[name] for name in tasks}
    return {
        "images_per_hour": {name: round(each, 2) for name, each in hourly.items()},
        "times_released": {
            name: round(each / hourly["released"], 2)
            for name, each in hourly.items()
            if name != "released"
        },
    }


def _head(cut: str) -> nn.Module:
    return MODELS.create("mnistnet", cut=cut).split().head


def _steps(schedule: Schedule) -> int:
    return schedule.main_iterations * schedule.inner_iterations


def _released(target: Tensor, clone: nn.Module) -> None:
    """Search one image as the authors' code does, recorded by autograd."""
    guess = torch.full((1, *IMAGE), 0.5, requires_grad=True)
    on_guess = torch.optim.Adam([guess], lr=1e-3, amsgrad=True)
    on_clone = torch.optim.Adam(clone.parameters(), lr=1e-3, amsgrad=True)
    for _ in range(MEASURED.main_iterations):
        for _ in range(MEASURED.inner_iterations):
            fit = mse_loss(clone(guess), target)
            _step(on_guess, fit + 0.1 * _variation(guess) + guess.square().mean())
        for _ in range(MEASURED.inner_iterations):
            _step(on_clone, mse_loss(clone(guess), target))


def _variation(images: Tensor) -> Tensor:
    down = (images[:, :, 1:] - images[:, :, :-1]).square().mean()
    return down + (images[..., 1:] - images[..., :-1]).square().mean()


def _step(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()


if __name__ == "__main__":
    print(json.dumps(measure(), indent=2))

"""What a run will send, from shapes alone: no data, no training.

    schedule ──► (client, step, batch size) ──► messages without numbers ──► ByteMeter

The messages are real ones whose tensors have a shape and no memory (torch's ``meta``
device), counted by the meter that counts a run: the two agree to the byte. Samples are
dealt out evenly, as in an IID partition; with skewed labels the payloads stay the same
and only hand-offs and framing move. Early stopping cannot be foreseen.
"""

import math
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from lightsplit.codecs import Code, Codec, Layout, OutputCodec, TensorSpec
from lightsplit.errors import ConfigError
from lightsplit.experiments import pieces
from lightsplit.experiments.config import FACTS, Experiment, make_experiment
from lightsplit.experiments.cuts import Cuts, make_formats, plan_cuts
from lightsplit.experiments.record import raw_step_bytes
from lightsplit.formats import WireFormats
from lightsplit.protocol import (
    STEP_KINDS,
    CodeGradient,
    CodeMessage,
    OutputGradient,
    OutputMessage,
    Reply,
    Request,
)
from lightsplit.runtime import HandOff
from lightsplit.splitting import SplitModel
from lightsplit.training import EVALUATION_BATCH, Progress
from lightsplit.transports import ByteMeter

# Published training and test images; what is really there may be less.
SIZES = {
    "digits": (1437, 360),
    "mnist": (60000, 10000),
    "fashion-mnist": (60000, 10000),
    "cifar10": (50000, 10000),
    "cifar100": (50000, 10000),
    "gtsrb": (39209, 12630),
}


@dataclass(frozen=True)
class Traffic:
    """The bytes of a run before it is run.

    Attributes:
        activation_size, code_size, output_size: values per sample (d, k, and of u).
        samples: trained on, over all epochs.
        steps: of all clients.
        bytes: by kind, as in record.json.
        raw_step_bytes: of all messages of all steps with the raw codec in fp32.
    """

    activation_size: int
    code_size: int
    output_size: int
    samples: int
    steps: int
    bytes: dict[str, int]
    raw_step_bytes: int

    @property
    def step_bytes(self) -> int:
        """Payload of all messages of all steps."""
        return sum(self.bytes[kind] for kind in (*STEP_KINDS, "labels"))

    @property
    def step_ratio(self) -> float:
        """Raw fp32 over ours, all messages of a step counted."""
        return self.raw_step_bytes / self.step_bytes


def foresee_traffic(
    experiment: Experiment, *, samples: int = 0, test_samples: int = 0
) -> Traffic:
    """Return what ``experiment`` will send.

    Args:
        experiment: to be run.
        samples: for training; 0 is the published number.
        test_samples: for evaluation; 0 is the published number.
    """
    train = _training_samples(experiment, samples)
    test = count_test_samples(experiment, test_samples)
    parts = _parts(experiment.dataset, experiment.model, experiment.cut)
    cuts = plan_cuts(experiment, parts)
    codec, contract = cuts.codec, cuts.contract
    course = _follow(experiment, train)
    messages = _Messages(cuts, make_formats(experiment), FACTS[experiment.dataset][1])
    meter = messages.meter(course, test)
    meter.add("setup", experiment.clients * len(contract.to_json().encode()))
    if experiment.heads == "shared":
        meter.add("hand_off", 2 * course.changes * _hand_off_bytes(experiment, cuts))
    progress = Progress(samples=course.samples, steps=course.steps)
    return Traffic(
        activation_size=codec.activation_size,
        code_size=codec.code_size,
        output_size=math.prod(contract.output_shape),
        samples=course.samples,
        steps=course.steps,
        bytes=meter.by_kind(),
        raw_step_bytes=raw_step_bytes(progress, contract),
    )


def count_test_samples(experiment: Experiment, available: int = 0) -> int:
    """Return how many samples an evaluation classifies; 0 is the published number."""
    count = available or _sizes(experiment)[1]
    return min(count, experiment.test_limit or count)


def _sizes(experiment: Experiment) -> tuple[int, int]:
    train, test = SIZES[experiment.dataset]
    if experiment.data_split == "pooled-halves":
        return (train + test) // 2, (train + test + 1) // 2
    return train, test


@lru_cache(maxsize=8)
def _parts(dataset: str, model: str, cut: str) -> SplitModel:
    """Return parts with whatever weights: many plans ask for the same model."""
    settings = {"dataset": dataset, "model": model, "cut": cut}
    return pieces.load_parts(make_experiment(settings))


@dataclass
class _Course:
    """What happens in a run, as far as bytes depend on it.

    Attributes:
        exchanges: how many steps of each (batch size, client, step) there are, clients
            and steps written with as many bytes being one.
        evaluations: how often each (client, step) evaluates, likewise.
        changes: how often another client takes over.
    """

    exchanges: Counter[tuple[int, int, int]]
    evaluations: Counter[tuple[int, int]]
    changes: int = 0
    steps: int = 0
    samples: int = 0


def _training_samples(experiment: Experiment, samples: int) -> int:
    count = samples or _sizes(experiment)[0]
    count = min(count, experiment.train_limit or count)
    if count < 2 * experiment.clients:
        raise ConfigError(
            f"{experiment.clients} clients need 2 samples each, got {count} in all"
        )
    return count


def _follow(experiment: Experiment, samples: int) -> _Course:
    """Go through the schedule of an even partition."""
    batches = _batch_sizes(samples, experiment)
    schedule = pieces.make_schedule(experiment, batches)
    course, taken, previous = _Course(Counter(), Counter()), [0] * len(batches), None
    for turn in schedule.turns():
        client, sizes = turn.client, batches[turn.client]
        course.changes += previous not in (None, client)
        previous = client
        for step in range(taken[client], taken[client] + turn.steps):
            size = sizes[step % len(sizes)]
            course.exchanges[size, _as_wide(client), _as_wide(step)] += 1
            course.samples += size
        taken[client] += turn.steps
        course.steps += turn.steps
        if schedule.is_evaluated(turn, course.steps, experiment.eval_every):
            is_shared = experiment.heads == "shared"
            for asked in [client] if is_shared else range(len(batches)):
                course.evaluations[_as_wide(asked), _as_wide(taken[asked])] += 1
    return course


def _batch_sizes(samples: int, experiment: Experiment) -> list[list[int]]:
    """Return the sizes of the batches of each client in one epoch."""
    shares = _split(samples, experiment.clients)
    return [_split(n, math.ceil(n / experiment.batch_size)) for n in shares]


def _split(count: int, parts: int) -> list[int]:
    """Return ``count`` in parts that differ by at most one, the larger ones first."""
    each, more = divmod(count, parts)
    return [each + 1] * more + [each] * (parts - more)


def _as_wide(number: int) -> int:
    """Return the smallest number that takes as many bytes on the wire.

    Example:
        >>> [_as_wide(n) for n in (0, 1, 127, 128, 20000)]
        [0, 1, 1, 128, 16384]
    """
    return number if number < 2 else 1 << 7 * ((number.bit_length() - 1) // 7)


class _Messages:
    """Messages of the right shapes and no numbers."""

    def __init__(self, cuts: Cuts, formats: WireFormats, classes: int) -> None:
        self._codec = cuts.codec
        self._output_codec = cuts.output_codec
        self._formats = formats
        self._classes = classes

    def meter(self, course: _Course, test_samples: int) -> ByteMeter:
        """Return a meter that counted every message of ``course``."""
        whole, rest = divmod(test_samples, EVALUATION_BATCH)
        tests = Counter({EVALUATION_BATCH: whole, rest: 1 if rest else 0})
        meter = ByteMeter()
        for (size, client, step), times in course.exchanges.items():
            self._count(meter, self._step(size, client, step), times)
        for (client, step), times in course.evaluations.items():
            for size, batches in tests.items():
                pair = self._evaluation(size, client, step)
                self._count(meter, [pair], times * batches)
        return meter

    def _count(
        self, meter: ByteMeter, pairs: list[tuple[Request, Reply]], times: int
    ) -> None:
        one = ByteMeter()
        for request, reply in pairs:
            one(request, lambda _request, reply=reply: reply)  # type: ignore[misc]
        for kind, count in one.counts.items():
            meter.add(kind, count * times)

    def _step(self, size: int, client: int, step: int) -> list[tuple[Request, Reply]]:
        code, key = self._code(size), (client, step)
        back, scales = self._gradient("code_gradient", self._codec, size)
        if self._output_codec is None:
            labels = _empty(TensorSpec((size,), torch.int64))
            reply = CodeGradient(*key, back, 1.0, scales)
            return [(CodeMessage(*key, code, labels), reply)]
        output = self._output(size, self._output_codec)
        gradient = self._gradient("output_gradient", self._output_codec, size)
        return [
            (CodeMessage(*key, code), OutputMessage(*key, output)),
            (OutputGradient(*key, *gradient), CodeGradient(*key, back, None, scales)),
        ]

    def _evaluation(self, size: int, client: int, step: int) -> tuple[Request, Reply]:
        output = Code(_empty(TensorSpec((size, self._classes))))  # logits, as they are
        if self._output_codec is not None:
            output = self._output(size, self._output_codec)
        request = CodeMessage(client, step, self._code(size), is_training=False)
        return request, OutputMessage(client, step, output)

    def _code(self, size: int) -> Code:
        return _empties(self._formats.layout("code", self._codec.layout(size)))

    def _output(self, size: int, codec: OutputCodec) -> Code:
        return _empties(self._formats.layout("output", codec.layout(size)))

    def _gradient(self, kind: str, codec: Codec, size: int) -> Code:
        values = codec.layout(size).values
        return _empties(self._formats.gradient_layout(kind, codec, values))


def _empties(layout: Layout) -> Code:
    return Code(_empty(layout.values), tuple(map(_empty, layout.side)))


def _empty(spec: TensorSpec) -> Tensor:
    return torch.empty(spec.shape, dtype=spec.dtype, device="meta")


def _hand_off_bytes(experiment: Experiment, cuts: Cuts) -> int:
    """Return the bytes of a hand-off once the optimizer has made its slots."""
    side = pieces.make_client_side(experiment, cuts)
    hand_off = HandOff(side, experiment.hand_off, seed=experiment.seed)
    for parameter in side.modules.parameters():
        parameter.grad = torch.zeros_like(parameter)
    side.update()
    return hand_off.size_bytes(side)

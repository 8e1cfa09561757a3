"""A forecast of the bytes of a run, from shapes alone: no data, no training.

    schedule ──► (client, step, batch size) ──► messages without numbers ──► ByteMeter

The messages are real messages whose tensors have a shape and no memory (torch's
``meta`` device). The meter of a run counts them, so forecast and run agree to the byte.
If the length of codes depends on their content, the forecast uses the longest. Samples
are distributed evenly, as in an IID partition; with skewed labels the payloads stay the
same and only hand-offs and framing change. Early stopping is ignored.
"""

import math
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from lightsplit.errors import ConfigError
from lightsplit.experiments import pieces
from lightsplit.experiments.certificate import code_bits, promised
from lightsplit.experiments.config import Experiment
from lightsplit.experiments.cuts import Cuts, make_formats, plan_cuts
from lightsplit.experiments.planned_messages import (
    PlannedMessages,
    PlannedOnce,
    PlannedRounds,
    count,
)
from lightsplit.experiments.planned_parts import (
    hand_off_bytes,
    planned_parts,
    result_shape,
)
from lightsplit.experiments.raw_traffic import raw_step_bytes, raw_total_bytes
from lightsplit.protocol import STEP_KINDS, Wire
from lightsplit.protocol.phases import RELEASE
from lightsplit.runs import EVALUATION_BATCH, Progress
from lightsplit.runs.rounds import drawn_owners
from lightsplit.runs.schedule import Turn
from lightsplit.transports import ByteMeter


@dataclass(frozen=True)
class Traffic:
    """The bytes of a run, known before it starts.

    Attributes:
        activation_size, code_size, output_size: values per sample (d, k, and of u).
        samples: number of samples trained on, over all epochs.
        steps: number of steps of all clients.
        bytes: bytes by kind, as in record.json.
        raw_step_bytes: bytes of all messages of all steps with the raw codec in fp32.
        raw_total_bytes: bytes of the whole run with raw activations, outputs and heads.
        code_bits: bits of one sample's code as it travels.
        certificate: the statements about the codes that need no attack.
        is_exact: whether a run counts exactly these bytes, or at most these.
    """

    activation_size: int
    code_size: int
    output_size: int
    samples: int
    steps: int
    bytes: dict[str, int]
    raw_step_bytes: int
    raw_total_bytes: float
    code_bits: int
    certificate: dict[str, Any]
    is_exact: bool = True

    @property
    def step_bytes(self) -> int:
        """Payload of all messages of all steps."""
        return sum(self.bytes[kind] for kind in (*STEP_KINDS, "labels"))

    @property
    def step_ratio(self) -> float | None:
        """The step ratio: raw fp32 over ours; None where no message is sent."""
        return self.raw_step_bytes / self.step_bytes if self.step_bytes else None

    @property
    def total_ratio(self) -> float:
        """The total ratio: raw fp32 over ours, over everything that crosses."""
        return self.raw_total_bytes / self.bytes["total"]


def foresee_traffic(
    experiment: Experiment,
    *,
    samples: int | None = None,
    test_samples: int | None = None,
) -> Traffic:
    """Return the traffic that ``experiment`` will cause.

    Args:
        experiment: the experiment to forecast.
        samples: training samples; None takes the dataset's published number.
        test_samples: test samples; None takes the published number, or none where no
            number is published.
    """
    train = _training_samples(experiment, samples)
    test = count_test_samples(experiment, test_samples)
    cuts = plan_cuts(experiment, planned_parts(experiment))
    codec, contract = cuts.codec, cuts.contract
    course = _follow(experiment, train, test)
    wire = Wire(codec, cuts.output_codec, make_formats(experiment))
    meter = ByteMeter()
    if codec.is_sent:
        _count_messages(meter, _messages(experiment, cuts, wire), course, test)
    meter.add("setup", experiment.owners.clients * len(contract.to_json().encode()))
    if contract.side_travels:
        meter.add("hand_off", 2 * course.changes * hand_off_bytes(experiment, cuts))
        meter.add("hand_off", course.fetches * hand_off_bytes(experiment, cuts))
        early = course.early_changes
        if early:
            bytes_each = hand_off_bytes(experiment, cuts, has_server=False)
            meter.add("hand_off", 2 * early * bytes_each)
    progress = Progress(samples=course.samples, steps=course.steps)
    counts, raw_steps = meter.by_kind(), raw_step_bytes(progress, contract)
    return Traffic(
        activation_size=codec.activation_size,
        code_size=codec.code_size if codec.is_sent else 0,
        output_size=math.prod(contract.output_shape),
        samples=course.samples,
        steps=course.steps,
        bytes=counts,
        raw_step_bytes=raw_steps,
        raw_total_bytes=raw_total_bytes(experiment, counts, raw_steps),
        code_bits=code_bits(wire),
        certificate=promised(experiment, wire),
        is_exact=not codec.is_sent or wire.layout("code", 1).is_exact,
    )


def _messages(experiment: Experiment, cuts: Cuts, wire: Wire) -> PlannedMessages:
    """Return the messages of the run's steps."""
    kind = PlannedOnce if experiment.sends_once else PlannedMessages
    shape, has_gradients = result_shape(experiment), experiment.split.gradients == "all"
    if not cuts.contract.averages_side:
        return kind(wire, shape, has_gradients=has_gradients)
    return PlannedRounds(
        wire,
        shape,
        has_gradients=has_gradients,
        in_every_step=experiment.is_parallel,
        length=cuts.contract.share_numbers,
        owners=min(
            experiment.owners.owners_per_round or experiment.owners.clients,
            experiment.owners.clients,
        ),
    )


def count_test_samples(experiment: Experiment, available: int | None = None) -> int:
    """Return the number of test samples; None takes the dataset's published number.

    Where no number is published, evaluation is left out of a forecast.
    """
    is_known = available or experiment.make_task().sizes is not None
    count = (available or _sizes(experiment)[1]) if is_known else 0
    return min(count, experiment.task.test_limit or count)


def _sizes(experiment: Experiment) -> tuple[int, int]:
    task = experiment.make_task()
    if task.sizes is None:
        raise ConfigError(
            f"{task.name} does not say how many samples it has; give --samples"
        )
    train, test = task.sizes
    if experiment.task.data_split == "pooled-halves":
        return (train + test) // 2, (train + test + 1) // 2
    return train, test


@dataclass
class _Course:
    """The events of a run, as far as bytes depend on them.

    Attributes:
        exchanges: the number of steps of each (batch size, client, step). Clients and
            steps count as one if their numbers take equally many bytes on the wire.
        evaluations: the number of evaluations of each (client, step), likewise.
        releases: the number of messages with codes that are sent once, of each
            (samples, client, step, first sample, is training), likewise.
        turns: the number of turns of each (client, last step), likewise.
        changes: how often another client takes over.
        early_changes: the same, after turns in which the server had no part.
        fetches: how often a client gets a shared side to evaluate it.
    """

    exchanges: Counter[tuple[int, int, int]]
    evaluations: Counter[tuple[int, int]]
    releases: Counter[tuple[int, int, int, int, bool]] = field(default_factory=Counter)
    turns: Counter[tuple[int, int]] = field(default_factory=Counter)
    changes: int = 0
    early_changes: int = 0
    fetches: int = 0
    steps: int = 0
    samples: int = 0


def _training_samples(experiment: Experiment, samples: int | None) -> int:
    count = samples or _sizes(experiment)[0]
    count = min(count, experiment.task.train_limit or count)
    if count < 2 * experiment.owners.clients:
        clients = experiment.owners.clients
        raise ConfigError(f"{clients} clients need 2 samples each, got {count} in all")
    return count


def _follow(experiment: Experiment, samples: int, test_samples: int) -> _Course:
    """Walk through the schedule of an even partition."""
    every = experiment.training.eval_every or 0
    most, seed = experiment.owners.owners_per_round, experiment.seed
    batches = _batch_sizes(samples, experiment)
    by_all = pieces.every_client_evaluates(experiment, has_own_data=False)
    schedule = pieces.make_schedule(experiment, batches)
    course, taken = _Course(Counter(), Counter()), [0] * len(batches)
    previous: Turn | None = None
    tested: set[int] = set()
    place = 0
    for turn in schedule.turns():
        client = turn.client
        if previous is not None and previous.client != client:
            course.changes += previous.trains_server
            course.early_changes += not previous.trains_server
        previous = turn
        place += turn.steps
        drawn = _drawn(most or 0, len(batches), seed, turn.round)
        if client in drawn:
            _follow_turn(course, turn, batches[client], taken[client])
            taken[client] += turn.steps
            course.turns[_as_wide(client), _as_wide(taken[client] - 1)] += 1
            course.steps += turn.steps
        if schedule.is_evaluated(turn, place, every):
            course.fetches += len(batches) if by_all else 0
            for asked in drawn if by_all else [min(client, max(drawn))]:
                course.evaluations[_as_wide(asked), _as_wide(taken[asked])] += 1
                if experiment.sends_once and asked not in tested:
                    tested.add(asked)
                    _follow_test(course, asked, taken[asked], test_samples)
    return course


@lru_cache(maxsize=1)  # asked once for each owner of a round
def _drawn(most: int, clients: int, seed: int, number: int) -> set[int]:
    """Return the owners of a round."""
    return drawn_owners(set(range(clients)), most, seed=seed, number=number)


def _follow_turn(course: _Course, turn: Turn, sizes: list[int], taken: int) -> None:
    """Count the messages of a turn, before which its client took so many steps."""
    for place in range(turn.steps if turn.phase == RELEASE else 0):
        first = sum(sizes[:place])
        key = (_as_wide(turn.client), _as_wide(taken + place), _as_wide(first))
        course.releases[sizes[place], *key, True] += 1
    for step in range(taken, taken + turn.steps if turn.trains_server else taken):
        size = sizes[step % len(sizes)]
        course.exchanges[size, _as_wide(turn.client), _as_wide(step)] += 1
        course.samples += size


def _follow_test(course: _Course, client: int, step: int, samples: int) -> None:
    """Count the codes of test samples, which a client sends once."""
    for first in range(0, samples, EVALUATION_BATCH):
        size = min(EVALUATION_BATCH, samples - first)
        key = (_as_wide(client), _as_wide(step), _as_wide(first))
        course.releases[size, *key, False] += 1


def _count_messages(
    meter: ByteMeter, messages: PlannedMessages, course: _Course, test_samples: int
) -> None:
    """Let ``meter`` count every message of ``course``."""
    whole, rest = divmod(test_samples, EVALUATION_BATCH)
    tests = {EVALUATION_BATCH: whole} | ({rest: 1} if rest else {})
    for (size, client, step), times in course.exchanges.items():
        count(meter, messages.step(size, client, step), times)
    for (client, step), times in course.turns.items():
        count(meter, messages.end_of_turn(client, step), times)
    for release, times in course.releases.items():
        count(meter, messages.release(*release), times)
    for (client, step), times in course.evaluations.items():
        for size, batches in tests.items():
            count(meter, messages.evaluation(size, client, step), times * batches)


def _batch_sizes(samples: int, experiment: Experiment) -> list[list[int]]:
    """Return the batch sizes of each client in one epoch."""
    shares = _split(samples, experiment.owners.clients)
    return [_split(n, math.ceil(n / experiment.training.batch_size)) for n in shares]


def _split(count: int, parts: int) -> list[int]:
    """Split ``count`` into parts that differ by at most one, the larger ones first."""
    each, more = divmod(count, parts)
    return [each + 1] * more + [each] * (parts - more)


def _as_wide(number: int) -> int:
    """Return the smallest number that takes equally many bytes on the wire.

    Example:
        >>> [_as_wide(n) for n in (0, 1, 127, 128, 20000)]
        [0, 1, 1, 128, 16384]
    """
    return number if number < 2 else 1 << 7 * ((number.bit_length() - 1) // 7)

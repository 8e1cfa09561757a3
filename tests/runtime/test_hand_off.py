"""Hand-offs: the precision of each format, and the residuals that correct it."""

import pytest
import torch

from lightsplit.errors import ConfigError, RunError
from lightsplit.protocol.phases import LOCAL, RELEASE, TRAIN
from lightsplit.results import tensors
from lightsplit.runtime import HAND_OFFS, HandOff
from lightsplit.runtime.optimizer_state import is_optimizer_state

LOSSY = ("bf16", "int8")


def trained(pair, make_batches, name, optimizer, **options):
    """A side after three steps, with a hand-off that knows its first weights."""
    ours = pair("learned-1x1", optimizer=optimizer)
    hand_off = HandOff(ours.side, name, **options)
    for inputs, labels in make_batches(3):
        ours.client.step(inputs, labels)
    return ours, hand_off


def travelled(hand_off, state, residual=None, step=0):
    written, left = hand_off.write(state, residual or {}, client=0, step=step)
    return hand_off.read(tensors.from_bytes(tensors.to_bytes(written))), left


@pytest.mark.parametrize("name", HAND_OFFS)
def test_the_stated_bytes_are_those_of_the_serialised_state(
    pair, make_batches, optimizer, name
):
    ours = pair("learned-1x1", optimizer=optimizer)
    hand_off = HandOff(ours.side, name)
    sizes = [hand_off.size_bytes(ours.side)]
    ours.client.step(*make_batches(1)[0])
    sizes.append(hand_off.size_bytes(ours.side))
    written, _ = hand_off.write(ours.side.state(), {}, client=1, step=1)
    assert sizes[0] < sizes[1] == len(tensors.to_bytes(written))


def test_fp32_hands_on_the_very_tensors(pair, make_batches, optimizer):
    ours, hand_off = trained(pair, make_batches, "fp32", optimizer)
    state = ours.side.state()
    written, left = hand_off.write(state, {}, client=0, step=3)
    assert hand_off.read(written) is written is state
    assert not left


@pytest.mark.parametrize("name", LOSSY)
def test_a_received_side_is_close_to_the_sent_one_and_fits(
    pair, make_batches, optimizer, name
):
    ours, hand_off = trained(pair, make_batches, name, optimizer)
    state = ours.side.state()
    arrived, _ = travelled(hand_off, state)
    assert arrived.keys() == state.keys()
    for key, tensor in state.items():
        assert arrived[key].dtype == tensor.dtype
        assert (arrived[key] - tensor).abs().max() <= 0.01 * tensor.abs().max() + 1e-6
    ours.side.load(arrived)
    ours.client.step(*make_batches(1)[0])


@pytest.mark.parametrize("name", LOSSY)
def test_counters_arrive_as_they_left(pair, make_batches, optimizer, name):
    _, hand_off = trained(pair, make_batches, name, optimizer)
    state = {"optimizer.0.step": torch.tensor(257.0), "n": torch.tensor([257])}
    arrived, _ = travelled(hand_off, state)
    assert all(torch.equal(arrived[key], state[key]) for key in state)


def test_a_slow_average_moves_on_average_though_each_change_is_below_rounding(
    pair, make_batches, optimizer
):
    _, hand_off = trained(pair, make_batches, "bf16", optimizer)
    average = {"optimizer.0.exp_avg_sq": torch.ones(4000)}
    for step in range(20):
        average = {key: 0.999 * value for key, value in average.items()}
        average, _ = travelled(hand_off, average, step=step)
    (value,) = average.values()
    assert value.mean().item() == pytest.approx(0.999**20, abs=5e-4)


def test_a_change_that_int8_rounds_away_comes_with_the_next_hand_off(
    pair, make_batches, optimizer
):
    ours, hand_off = trained(pair, make_batches, "int8", optimizer)
    name = next(n for n, p in ours.side.modules.named_parameters() if p.ndim > 1)
    start = pair("learned-1x1", optimizer=optimizer).side.state()[name].clone()
    state, residual = {name: start.clone()}, {}
    state[name].view(-1)[0] += 1.0  # one large change makes the steps coarse
    small = 1e-3  # less than half a step of 1 / 127
    moved = []
    for _ in range(40):
        state[name].view(-1)[1] += small
        state, residual = travelled(hand_off, state, residual)
        moved.append((state[name] - start).view(-1)[1].item())
    assert moved[0] == 0
    assert moved[-1] == pytest.approx(40 * small, abs=1 / 127)


def test_only_int8_keeps_a_residual(pair, make_batches, optimizer):
    for name in HAND_OFFS:
        ours, hand_off = trained(pair, make_batches, name, optimizer)
        _, left = hand_off.write(ours.side.state(), {}, client=0, step=3)
        assert bool(left) == hand_off.keeps_state == (name == "int8")


@pytest.mark.parametrize("name", HAND_OFFS)
def test_an_optimizer_that_stays_does_not_travel(pair, make_batches, optimizer, name):
    ours, hand_off = trained(pair, make_batches, name, optimizer, optimizer_stays=True)
    state = ours.side.state()
    slots = {key: value for key, value in state.items() if is_optimizer_state(key)}
    travels, stays = hand_off.write(state, {}, client=0, step=3)
    assert slots
    assert not any(map(is_optimizer_state, travels))
    assert all(torch.equal(stays[key], value) for key, value in slots.items())
    arrived = hand_off.read(travels, stays)
    assert all(torch.equal(arrived[key], value) for key, value in slots.items())
    assert not any(map(is_optimizer_state, hand_off.read(travels)))


def test_the_state_that_stays_does_not_change_with_later_steps(
    pair, make_batches, optimizer
):
    ours, hand_off = trained(
        pair, make_batches, "fp32", optimizer, optimizer_stays=True
    )
    travels, stays = hand_off.write(ours.side.state(), {}, client=0, step=3)
    before = {key: value.clone() for key, value in stays.items()}
    ours.side.load(hand_off.read(travels, stays))
    ours.client.step(*make_batches(1)[0])
    assert all(torch.equal(stays[key], value) for key, value in before.items())


@pytest.mark.parametrize("name", HAND_OFFS)
def test_weights_that_are_not_trained_do_not_travel(
    pair, make_batches, optimizer, name
):
    side = pair("learned-1x1", optimizer=optimizer).side
    fixed, weight = next(iter(side.modules.named_parameters()))
    weight.requires_grad_(False)
    hand_off = HandOff(side, name, start="a")
    travels, _ = hand_off.write(side.state(), {}, client=0, step=0)
    assert fixed not in travels
    assert torch.equal(hand_off.read(travels)[fixed], weight)
    assert hand_off.bound_to("digest") != "digest"


def test_a_bias_travels_as_its_change_with_one_scale(pair, make_batches, optimizer):
    ours, hand_off = trained(pair, make_batches, "int8", optimizer)
    name = next(n for n, p in ours.side.modules.named_parameters() if p.ndim == 1)
    travels, _ = hand_off.write(ours.side.state(), {}, client=0, step=3)
    assert travels[name].dtype == torch.int8
    assert travels[f"scales/{name}"].shape == (1,)


def test_bytes_that_are_not_a_hand_off_are_refused(pair, make_batches, optimizer):
    with pytest.raises(ConfigError, match="unknown hand-off 'int4'"):
        HandOff(pair().side, "int4")
    ours, hand_off = trained(pair, make_batches, "int8", optimizer)
    written, _ = hand_off.write(ours.side.state(), {}, client=0, step=3)
    bare = {key: value for key, value in written.items() if "scales" not in key}
    with pytest.raises(RunError, match="no scales of"):
        hand_off.read(bare)


@pytest.mark.parametrize("name", ["fp32", "bf16", "int8"])
def test_only_changes_are_bound_to_the_first_weights(pair, name):
    one, other = (HandOff(pair().side, name, start=start) for start in ("a", "b"))
    assert (one.bound_to("digest") == other.bound_to("digest")) is (name != "int8")
    assert HandOff(pair().side, name).bound_to("digest") == "digest"


@pytest.fixture
def frozen(pair, make_batches, optimizer):
    return trained(pair, make_batches, "fp32", optimizer, freezes=True)


def test_a_frozen_head_stays_with_whoever_has_released_its_codes(frozen):
    ours, hand_off = frozen
    state = ours.side.state()
    for phase, stays in ((LOCAL, False), (RELEASE, True), (TRAIN, True)):
        travels, kept = hand_off.write(state, {}, client=0, step=3, phase=phase)
        weights = {name for name in travels if not is_optimizer_state(name)}
        assert any(name.startswith("tail.") for name in weights)
        assert any(name.startswith("head.") for name in weights) is (phase != TRAIN)
        assert any(name.startswith("head.") for name in kept) is stays
        back = hand_off.read(tensors.from_bytes(tensors.to_bytes(travels)), kept)
        assert back.keys() == state.keys()
        assert all(torch.equal(back[name], state[name]) for name in state)


def test_a_hand_off_of_the_tail_is_as_small_as_the_tail_and_its_optimizer(frozen):
    ours, hand_off = frozen
    sizes = {p: hand_off.size_bytes(ours.side, p) for p in (LOCAL, RELEASE, TRAIN)}
    assert sizes[LOCAL] == sizes[RELEASE]
    tail = dict(ours.side.modules["tail"].named_parameters())
    plain = 4 * sum(weight.numel() for weight in tail.values())
    assert plain <= sizes[TRAIN] < 3 * plain + 1500
    assert sizes[TRAIN] < sizes[LOCAL]


def test_whoever_lacks_the_frozen_head_is_told_so(frozen):
    ours, hand_off = frozen
    travels, _ = hand_off.write(ours.side.state(), {}, client=0, step=3)
    with pytest.raises(RunError, match="the head is frozen and stays with the clients"):
        hand_off.read(travels)

"""Lines may break anywhere, even in the middle of a message: nothing is lost."""

import contextlib

import pytest
from lab.faults import CutAnywhere, CutMessages
from lab.proxy import Proxy
from lab.runs import NAMES, Network, assert_same_weights, reference


def run_over(cutter, folder, settings, plan=None):
    """Run with one line per client that ``cutter`` watches; return the outcome."""
    with Network(folder, plan=plan, **settings) as network, contextlib.ExitStack() as s:
        for name in NAMES:
            proxy = s.enter_context(Proxy(network.port, cutter.watch(name)))
            network.join(name, port=proxy.port)
        return network.finish()


@pytest.mark.parametrize("turn_steps", [1, 2])
@pytest.mark.parametrize("heads", ["shared", "private"])
def test_a_cut_in_the_middle_of_each_message_changes_nothing(
    heads, turn_steps, tmp_path
):
    settings = {"heads": heads, "turn_steps": turn_steps, "epochs": 2}
    kinds = ("code", "output", "output_gradient", "code_gradient")
    cutter = CutMessages({kind: (2 + n, 7 + n) for n, kind in enumerate(kinds)})
    got = run_over(cutter, tmp_path, settings)
    assert sorted(cutter.cuts) == sorted(kinds * 2)
    assert_same_weights(got, reference(**settings))


@pytest.mark.parametrize("kind", ["code", "code_gradient"])
def test_a_cut_in_the_vanilla_topology_changes_nothing(kind, tmp_path):
    settings = {"topology": "vanilla", "epochs": 1}
    cutter = CutMessages({kind: (1, 4)})
    got = run_over(cutter, tmp_path, settings)
    assert cutter.cuts == [kind] * 2
    assert_same_weights(got, reference(**settings))


@pytest.mark.parametrize(("heads", "gap"), [("shared", 250_000), ("private", 40_000)])
@pytest.mark.parametrize("seed", [0, 1])
def test_thirty_cuts_at_random_bytes_change_nothing(heads, gap, seed, tmp_path):
    settings = {"heads": heads, "epochs": 8}
    cutter = CutAnywhere(count=30, seed=seed, longest_gap_bytes=gap)
    got = run_over(cutter, tmp_path, settings)
    assert cutter.left == 0, "the run ended before all cuts"
    assert_same_weights(got, reference(**settings))

"""Whole runs with codes and objectives that hide."""

import pytest

from lightsplit.errors import ConfigError
from lightsplit.experiments import from_settings, run
from lightsplit.results import RunFolder, tensors

pytestmark = pytest.mark.slow

ALL = ["class-codes", "conditional-entropy:budget=2", "bit-balance:0.1", "bit-flips"]
BITS = {"codec": "lightsplit-b", "bits": 12}


@pytest.mark.parametrize("heads", ["shared", "private"])
@pytest.mark.parametrize(
    "settings",
    [
        {**BITS, "objective": ALL},
        {**BITS, "encoder_hidden": 16},
        {"codec": "raw", "objective": ["cem", "wcc:0.1"]},
    ],
    ids=["bits", "hidden layer", "cem"],
)
def test_a_resumed_run_is_the_uninterrupted_one(tmp_path, small, settings, heads):
    experiment = small(**settings, heads=heads)
    whole, parts = RunFolder.create(tmp_path / "a"), RunFolder.create(tmp_path / "b")
    record = run(experiment, whole)
    turns = iter([True] * 6)
    assert run(experiment, parts, observe=lambda *_: next(turns, False)) is None
    resumed = run(experiment, parts)
    for key in ("bytes", "test_accuracy", "step_ratio"):
        assert resumed[key] == record[key]
    for path in whole.path.glob("model*.safetensors"):
        first, second = tensors.load(path), tensors.load(parts.path / path.name)
        assert all((first[name] == second[name]).all() for name in first)


@pytest.mark.parametrize(
    ("codec", "objective", "reason"),
    [
        ("raw", "bit-flips", "bit-flips needs a code of bits"),
        ("fsq", "bit-balance", "bit-balance needs a code of bits"),
        ("lightsplit-f", "conditional-entropy", "needs a code of bits"),
        ("lightsplit-b", "cem", "cem needs a code of continuous numbers"),
        ("lightsplit-b:bits=3", "class-codes", "10 classes need codewords of at least"),
    ],
)
def test_an_objective_is_refused_where_it_makes_no_sense(
    small, tmp_path, codec, objective, reason
):
    experiment = small(codec=codec, objective=objective)
    with pytest.raises(ConfigError, match=reason):
        run(experiment, RunFolder.create(tmp_path / "run"))


def test_every_bit_of_a_code_is_in_the_label():
    made = from_settings({**BITS, "objective": "bit-flips:rate=0.2"})
    assert made.codec.options["bits"] == 12
    assert made.objective["bit-flips"].options == {"rate": 0.2}

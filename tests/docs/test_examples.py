"""The example programs run, and learn something."""

import re
import runpy
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", ["train_torch", "train_split", "own_model"])
def test_an_example_trains_well_beyond_chance(name, capsys):
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    accuracies = re.findall(r"epoch \d: .*?([\d.]+)%", capsys.readouterr().out)
    assert len(accuracies) == 5
    assert float(accuracies[-1]) > 60


@pytest.mark.parametrize("name", ["bert_sst2", "unet_membranes", "gpt2_lm"])
def test_an_example_of_a_loop_is_short_and_compiles(name):
    text = (EXAMPLES / f"{name}.py").read_text()
    compile(text, name, "exec")
    assert len(text.splitlines()) < 40


def test_gpt2_learns_in_a_loop_of_its_own(capsys):
    pytest.importorskip("transformers", reason="transformers is not there")
    runpy.run_path(str(EXAMPLES / "gpt2_lm.py"), run_name="__main__")
    losses = re.findall(r"loss ([\d.]+)", capsys.readouterr().out)
    assert float(losses[-1]) < float(losses[0])

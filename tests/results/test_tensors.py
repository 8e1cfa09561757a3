import pytest
import torch

from lightsplit.errors import RunError
from lightsplit.results import tensors

BASE = torch.arange(12.0).view(3, 4)
CASES = {
    "0-dim": {"step": torch.tensor(7)},
    "empty": {"none": torch.empty(0, 3)},
    "tied": {"encoder": BASE, "decoder": BASE},
    "views": {"rows": BASE[1:], "columns": BASE[:, ::2], "turned": BASE.T},
    "types": {str(t): torch.ones(2, dtype=t) for t in (torch.int64, torch.bfloat16)},
    "trainable": {"weight": torch.nn.Parameter(torch.rand(2, 2))},
    "nothing": {},
}


@pytest.mark.parametrize("case", CASES)
def test_tensors_come_back_as_they_were(tmp_path, case):
    tensors.save(tmp_path / "file", CASES[case])
    loaded = tensors.load(tmp_path / "file")
    assert loaded.keys() == CASES[case].keys()
    for name, tensor in CASES[case].items():
        assert loaded[name].dtype == tensor.dtype
        assert torch.equal(loaded[name], tensor.detach())


def test_the_same_tensors_give_the_same_bytes():
    first = {"a": torch.ones(3), "b": torch.zeros(2)}
    second = {"b": torch.zeros(2), "a": torch.ones(3)}
    assert tensors.to_bytes(first) == tensors.to_bytes(second)


def test_an_absent_file_is_named(tmp_path):
    with pytest.raises(RunError, match=r"weights\.safetensors does not exist"):
        tensors.load(tmp_path / "weights.safetensors")


@pytest.mark.parametrize("kept", [0, 4, 20, -1])
def test_a_damaged_file_is_named(tmp_path, kept):
    tensors.save(tmp_path / "weights", {"a": torch.ones(4)})
    whole = (tmp_path / "weights").read_bytes()
    (tmp_path / "weights").write_bytes(whole[:kept])
    with pytest.raises(RunError, match="weights is not a safetensors file"):
        tensors.load(tmp_path / "weights")


def test_a_folder_is_not_a_safetensors_file(tmp_path):
    with pytest.raises(RunError, match="is not a safetensors file"):
        tensors.load(tmp_path)

import json

import pytest
import torch

from lightsplit.errors import ContractError, RunError
from lightsplit.loops.saves import Saves


def state(value):
    return {"weight": torch.tensor([float(value)])}


@pytest.fixture
def saves(tmp_path):
    return Saves(tmp_path, "digest", keep=2)


def test_there_is_no_save_before_the_first(saves):
    assert saves.newest() is None
    assert saves.of({"alice": 1}) is None


def test_a_save_is_found_by_its_updates(saves):
    saves.write("run", {"alice": 1, "bob": 2}, state(1))
    saves.write("run", {"alice": 2, "bob": 2}, state(2))
    assert saves.newest().applied == {"alice": 2, "bob": 2}
    assert saves.of({"alice": 1, "bob": 2}).state()["weight"] == 1
    assert saves.of({"alice": 2, "bob": 1}) is None


def test_old_saves_are_deleted(saves, tmp_path):
    for count in (1, 2, 3):
        saves.write("run", {"alice": count}, state(count))
    assert saves.of({"alice": 1}) is None
    assert len(list(tmp_path.glob("update-*"))) == 2


def test_going_back_makes_the_earlier_save_the_newest(saves):
    for count in (1, 2):
        saves.write("run", {"alice": count}, state(count))
    assert saves.go_back_to(saves.of({"alice": 1}))["weight"] == 1
    assert saves.newest().applied == {"alice": 1}
    assert saves.of({"alice": 2}) is None


def test_a_save_of_another_contract_is_refused(saves, tmp_path):
    saves.write("run", {"alice": 1}, state(1))
    with pytest.raises(ContractError, match="expected contract other, got digest"):
        Saves(tmp_path, "other").newest()


@pytest.mark.parametrize("text", ["", "[]", json.dumps({"contract": "digest"})])
def test_a_damaged_save_is_refused(saves, tmp_path, text):
    saves.write("run", {"alice": 1}, state(1))
    (tmp_path / "update-00000001" / "clients.json").write_text(text)
    with pytest.raises(RunError, match="is not a save of a server"):
        saves.newest()

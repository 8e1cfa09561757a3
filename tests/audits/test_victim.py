"""The attacked client and its images."""

import pytest
import torch

from lightsplit.audits.victim import begin_again, choose_victim, restore
from lightsplit.errors import ConfigError, RunError
from lightsplit.results import RunFolder, tensors

pytestmark = pytest.mark.slow


def rows(images):
    return {image.numpy().tobytes() for image in images}


def test_a_run_is_restored_as_it_ended(trained):
    folder = trained()
    head = restore(folder).trainer.clients[0].side.modules["head"].state_dict()
    stored = tensors.load(folder.path / "model.safetensors")
    assert head
    for name, tensor in head.items():
        assert torch.equal(tensor, stored[name])


def test_a_restarted_run_is_in_the_state_before_its_first_step(trained):
    job = begin_again(trained())
    assert job.trainer.progress.steps == 0


def test_targets_are_the_victims_own_images(victim_of):
    victim = victim_of(client=1)
    held = victim.job.dataset.train.batch(victim.job.held[1])[0]
    assert rows(victim.targets.images) <= rows(held)
    assert len(victim.targets.images) == 12


def test_others_are_everybody_elses_images(victim_of):
    victim = victim_of(client=1)
    mine = set(victim.job.held[1].tolist())
    assert len(victim.others) == len(victim.job.dataset.train) - len(mine)
    everyone = victim.job.dataset.train.images
    theirs = rows(everyone[[i for i in range(len(everyone)) if i not in mine]])
    assert rows(victim.others.images) == theirs


def test_a_single_client_is_attacked_with_test_images(victim_of):
    victim = victim_of(clients=1)
    assert rows(victim.others.images) == rows(victim.job.dataset.test.images)


def test_fewer_targets_are_a_part_of_more(victim_of):
    few, many = victim_of(images=4), victim_of(images=9)
    assert torch.equal(few.targets.images, many.targets.images[:4])


def test_a_victim_has_no_more_targets_than_images(victim_of):
    assert len(victim_of(images=100_000).targets.images) == 80


@pytest.mark.parametrize("client", [-1, 3])
def test_a_client_that_does_not_exist_is_refused(trained, client):
    job = restore(trained())
    with pytest.raises(ConfigError, match=f"between 0 and 2, got {client}"):
        choose_victim(job, client=client, images=3, seed=0)


def test_an_unfinished_run_is_refused(own_run):
    folder = own_run()
    folder.record_file.unlink()
    with pytest.raises(RunError, match="not finished"):
        restore(folder)


def test_the_run_of_a_server_is_refused_because_it_has_no_head(own_run):
    folder = own_run()
    record = folder.read_record()
    del record["label_histogram"]
    folder.write_record(record)
    with pytest.raises(RunError, match="trained over the network"):
        restore(folder)


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(RunError, match="is not a run"):
        RunFolder.open(tmp_path)


def test_the_attacker_can_have_the_first_test_images_in_their_order(trained):
    job = restore(trained())
    victim = choose_victim(job, client=0, images=5, seed=0, others_from="test")
    assert torch.equal(victim.others.images, job.dataset.test.images)

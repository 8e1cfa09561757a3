import pytest
import torch

from lightsplit.experiments import build, make_experiment
from lightsplit.training import evaluate

SMALL = {"train_limit": 160, "test_limit": 40, "clients": 4, "batch_size": 16}


def trainer_of(**settings):
    return build(make_experiment({**SMALL, **settings})).trainer


def run(trainer):
    return [done.evaluation for done in trainer.run() if done.evaluation]


@pytest.mark.slow
def test_training_learns_the_digits():
    trainer = trainer_of(train_limit=600, test_limit=0, epochs=6, codec="raw")
    evaluations = run(trainer)
    assert evaluations[-1].accuracy > 0.8
    assert evaluations[-1].accuracy > evaluations[0].accuracy
    assert trainer.progress.best_accuracy == max(e.accuracy for e in evaluations)


def test_the_test_set_is_tried_once_per_epoch_by_default():
    trainer = trainer_of(epochs=3)
    assert len(run(trainer)) == 3
    assert [line["epoch"] for line in trainer.progress.history] == [1, 2, 3]


def test_eval_every_counts_rounds_and_the_end_is_always_tried():
    trainer = trainer_of(epochs=1, eval_every=2, max_steps=11)
    run(trainer)
    assert [line["step"] for line in trainer.progress.history] == [8, 11]


def test_patience_ends_a_run_that_gets_no_better():
    trainer = trainer_of(epochs=50, lr=1e-9, patience=2)
    run(trainer)
    assert trainer.is_out_of_patience
    assert len(trainer.progress.history) < 10


def test_private_heads_start_alike_and_grow_apart():
    trainer = trainer_of(heads="private", epochs=1)
    weights = [c.side.state()["head.conv1.weight"].clone() for c in trainer.clients]
    assert all(torch.equal(weights[0], other) for other in weights)
    run(trainer)
    after = [c.side.state()["head.conv1.weight"] for c in trainer.clients]
    assert not torch.equal(after[0], after[1])
    assert len(trainer.progress.history[-1]["client_accuracies"]) == 4


def test_private_clients_share_one_projection():
    trainer = trainer_of(heads="private")
    projections = {id(c.side.modules["encoder"].projection) for c in trainer.clients}
    assert len(projections) == 1


def test_the_evaluation_is_the_fraction_of_right_answers():
    trainer = trainer_of(codec="raw")
    client = trainer.clients[0]
    inputs = trainer.batches[0].batch(0)[0][:12]
    truth = client.predict(inputs).argmax(1)
    wrong = (truth + 1) % 10
    half = torch.where(torch.arange(len(truth)) % 2 == 0, truth, wrong)
    assert evaluate([client], [(inputs, truth)]).accuracy == 1
    assert evaluate([client], [(inputs, wrong)]).accuracy == 0
    assert evaluate([client], [(inputs, half)]).accuracy == 0.5
    assert evaluate([client, client], [(inputs, half)]).accuracies == (0.5, 0.5)

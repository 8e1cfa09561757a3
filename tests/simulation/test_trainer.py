import pytest
import torch

from lightsplit.experiments import build, from_settings
from lightsplit.runs import evaluate

SMALL = {
    "train_limit": 160,
    "test_limit": 40,
    "clients": 4,
    "batch_size": 16,
    "turn_steps": 1,
}


def trainer_of(**settings):
    return build(from_settings({**SMALL, **settings})).trainer


def run(trainer):
    return [done.evaluation for done in trainer.run() if done.evaluation]


@pytest.mark.slow
def test_training_learns_the_digits():
    trainer = trainer_of(train_limit=600, test_limit=None, epochs=6, codec="raw")
    evaluations = run(trainer)
    assert evaluations[-1].figures["accuracy"] > 0.8
    accuracies = [one.figures["accuracy"] for one in evaluations]
    assert accuracies[-1] > accuracies[0]
    assert trainer.progress.best == max(accuracies)


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
    assert trainer.state.is_out_of_patience
    assert len(trainer.progress.history) < 10


def test_private_heads_start_alike_and_grow_apart():
    trainer = trainer_of(heads="private", epochs=1)
    weights = [c.side.state()["head.conv1.weight"].clone() for c in trainer.clients]
    assert all(torch.equal(weights[0], other) for other in weights)
    run(trainer)
    after = [c.side.state()["head.conv1.weight"] for c in trainer.clients]
    assert not torch.equal(after[0], after[1])
    assert len(trainer.progress.history[-1]["client_figures"]) == 4


def test_private_clients_share_one_projection():
    trainer = trainer_of(heads="private")
    projections = {id(c.side.modules["encoder"].projection) for c in trainer.clients}
    assert len(projections) == 1


def accuracy_of(client, inputs, labels):
    return evaluate([client], [(inputs, labels)]).figures["accuracy"]


def test_the_evaluation_is_the_fraction_of_right_answers():
    trainer = trainer_of(codec="raw")
    client = trainer.clients[0]
    inputs = trainer.batches[0].batch(0)[0][:12]
    truth = client.predict(inputs).argmax(1)
    wrong = (truth + 1) % 10
    half = torch.where(torch.arange(len(truth)) % 2 == 0, truth, wrong)
    assert accuracy_of(client, inputs, truth) == 1
    assert accuracy_of(client, inputs, wrong) == 0
    assert accuracy_of(client, inputs, half) == 0.5
    both = evaluate([client, client], [(inputs, half)]).clients
    assert [figures["accuracy"] for figures in both] == [0.5, 0.5]

"""Whole runs whose clients protect their labels."""

import pytest
import torch

from lightsplit.attacks import silent
from lightsplit.audits import AuditOptions, audit
from lightsplit.audits.owner import Owner
from lightsplit.data import OwnSamples
from lightsplit.data.shifted_labels import ShiftedLabels
from lightsplit.errors import ConfigError, DataError
from lightsplit.experiments import build, from_settings, pieces, run
from lightsplit.experiments.client_data import find_data
from lightsplit.experiments.cuts import make_cuts
from lightsplit.experiments.label_protections import with_drawn_labels
from lightsplit.experiments.labels import method
from lightsplit.protocol import OutputGradient
from lightsplit.randomised_response import kept
from lightsplit.results import RunFolder, tensors
from lightsplit.runtime import Secret

GRADIENTS = ["max-norm", "mean-alignment:strength=0.3"]


@pytest.mark.slow
@pytest.mark.parametrize("heads", ["shared", "private"])
def test_a_resumed_run_is_the_uninterrupted_one(tmp_path, small, heads):
    experiment = small(protect_labels=GRADIENTS, label_dp=1.0, heads=heads)
    whole, parts = RunFolder.create(tmp_path / "a"), RunFolder.create(tmp_path / "b")
    record = run(experiment, whole)
    turns = iter([True] * 6)
    assert run(experiment, parts, observe=lambda *_: next(turns, False)) is None
    assert run(experiment, parts)["test_accuracy"] == record["test_accuracy"]
    for path in whole.path.glob("model*.safetensors"):
        first, second = tensors.load(path), tensors.load(parts.path / path.name)
        assert all(torch.equal(first[name], second[name]) for name in first)


def stepped(**settings):
    """Return a job after one step of its first client, and the gradient it sent."""
    plain = {"clients": 1, "codec": "raw", "optimizer": "sgd", "batch_size": 20}
    job = build(from_settings({**plain, **settings}))
    client, sent = job.trainer.clients[0], []
    handle = client.send

    def send(request):
        if isinstance(request, OutputGradient):
            sent.append(request.gradient.clone())
        return handle(request)

    client.send = send
    client.run_turn(job.trainer.batches[0], 1)
    return client.side.modules["tail"].state_dict(), sent[0]


@pytest.mark.parametrize("name", GRADIENTS)
def test_the_server_gets_another_gradient_and_the_tail_learns_from_the_true_one(name):
    tail, gradient = stepped()
    same_tail, protected = stepped(protect_labels=name)
    assert not torch.equal(gradient, protected)
    assert all(torch.equal(tail[key], same_tail[key]) for key in tail)


def test_labels_are_drawn_once_and_the_test_set_is_left_alone():
    job = build(from_settings({"clients": 2, "label_dp": 1.0}))
    plain = build(from_settings({"clients": 2}))
    truth = job.dataset.train.labels
    drawn = [share.samples.labels for share in job.shares]
    assert torch.equal(drawn[0], drawn[1])  # no second draw for another number
    p = kept(1.0, 10)
    share = float((drawn[0] == truth).float().mean())
    assert abs(share - p) < 4 * (p * (1 - p) / len(truth)) ** 0.5
    first, later = (job.shares[0].batch(step) for step in (0, len(job.shares[0])))
    labels = {tuple(x.flatten().tolist()): int(y) for x, y in zip(*first, strict=True)}
    for image, label in zip(*later, strict=True):
        assert labels.get(tuple(image.flatten().tolist()), int(label)) == label
    assert torch.equal(job.dataset.test.labels, plain.dataset.test.labels)
    assert torch.equal(job.histogram, plain.histogram)


def test_a_server_cannot_draw_the_labels_again():
    experiment = from_settings({"label_dp": 0.5})
    samples = build(experiment).dataset.train
    guess = with_drawn_labels(experiment, samples, Secret(experiment.seed)).labels
    first, second = (
        with_drawn_labels(experiment, samples, Secret.random()).labels for _ in "ab"
    )
    p = kept(0.5, 10)
    for other in (guess, second):
        agree = float((first == other).float().mean())
        expected = p * p + (1 - p) ** 2 / 9  # of independent draws
        assert abs(agree - expected) < 0.05


def test_epsilon_is_in_the_record_the_certificate_and_the_label(tmp_path, small):
    experiment = small(label_dp=2.0)
    record = run(experiment, RunFolder.create(tmp_path / "run"))
    assert record["certificate"]["label_epsilon"] == 2.0
    assert record["certificate"]["label_bound"] == pytest.approx(kept(2.0, 10))
    assert "labels beyond their own ε" in record["certificate"]["not_about"]
    assert record["experiment"]["protect_labels"] == {"label-dp": {"epsilon": 2.0}}
    assert method(experiment).endswith("label-dp epsilon=2")
    assert experiment.settings()["label_dp"] == 2.0
    plain = run(small(), RunFolder.create(tmp_path / "plain"))
    assert plain["certificate"]["label_epsilon"] is None


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"protect_labels": "marvell"}, "two classes and this task has 10"),
        ({"label_dp": 0.0}, "must be above 0"),
        ({"protect_labels": "label-dp"}, "needs the option 'epsilon'"),
        ({"protect_labels": "nothing"}, "unknown label protection 'nothing'"),
        (
            {"protect_labels": "max-norm", "topology": "vanilla"},
            "the server has the labels",
        ),
        ({"protect_labels": "max-norm", "gradients": "none"}, "no gradient is sent"),
        ({"protect_labels": "max-norm", "codec": "none"}, "nothing is sent"),
        (
            {"protect_labels": "max-norm", "release": "once", "local_epochs": 1},
            "does not work on codes that are sent once",
        ),
    ],
)
def test_a_protection_is_refused_where_it_makes_no_sense(settings, reason):
    with pytest.raises(ConfigError, match=reason):
        from_settings({"codec": "raw", **settings})


@pytest.mark.slow
def test_an_audit_scores_by_the_true_labels_and_trains_on_the_drawn_ones(tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    run(from_settings({"clients": 1, "epochs": 1, "label_dp": 1.0}), folder)
    options = AuditOptions(attacks=("label-kmeans",), images=6, auxiliary=60)
    entries = audit(folder, options, watch=lambda _title: silent)
    (entry,) = [e for e in entries if e.get("message") == "output_gradient"]
    assert entry["metrics"]["matched_accuracy"]["mean"] < kept(1.0, 10) + 0.1


def test_a_client_that_sends_codes_once_trains_on_the_drawn_labels_only(small):
    once = {"release": "once", "local_epochs": 1, "codec": "lightsplit-b", "epochs": 1}
    job = build(small(label_dp=1.0, clients=1, **once))
    (client,), seen = job.trainer.clients, []
    loss = client.loss

    def look(output, labels):
        if client.model.training:  # tests have true labels
            seen.append(labels)
        return loss(output, labels)

    client.loss = look
    for _ in job.trainer.run():
        pass
    held = job.held[0]
    drawn, truth = job.shares[0].samples.labels[held], job.dataset.train.labels[held]
    told = torch.cat(seen).bincount(minlength=10)
    assert torch.equal(told, 2 * drawn.bincount(minlength=10))  # alone, then recalled
    assert not torch.equal(drawn, truth)


def test_an_owners_audit_knows_the_true_labels_of_what_was_sent(small, tmp_path):
    experiment, secret = small(label_dp=0.5), Secret(3)
    cuts = make_cuts(experiment, pieces.load_parts(experiment))
    owner = Owner(tmp_path, experiment, cuts, find_data(experiment, secret), (), 1)
    truth = pieces.load_dataset(experiment).train.labels[owner.batches.rows(2)]
    assert torch.equal(owner.true_labels(2), truth)
    assert not torch.equal(owner.batch(2)[1], truth)


def test_vanilla_clients_send_drawn_labels():
    job = build(from_settings({"clients": 1, "topology": "vanilla", "label_dp": 0.5}))
    told = []
    client = job.trainer.clients[0]
    handle = client.send

    def send(request):
        told.append(request.labels)
        return handle(request)

    client.send = send
    client.run_turn(job.trainer.batches[0], 1)
    rows = job.shares[0].rows(0)
    assert torch.equal(told[0], job.shares[0].samples.labels[rows])
    assert not torch.equal(told[0], job.dataset.train.labels[rows])


def test_shifted_labels_are_a_set_of_samples_like_any_other():
    pairs = [(torch.full((2,), float(i)), i % 3) for i in range(9)]
    moved = ShiftedLabels(OwnSamples(pairs), torch.arange(9) % 2, 3)
    assert moved.labels.tolist() == [(i % 3 + i % 2) % 3 for i in range(9)]
    assert moved.subset([3, 1]).labels.tolist() == [1, 2]
    assert len(moved.limit(4, 0)) == 4
    assert moved.limit(20, 0) is moved
    assert moved.batch([1])[1].tolist() == [2]
    for wrong in (torch.zeros(9, 2), torch.full((9,), 0.5)):
        samples = OwnSamples([(torch.zeros(1), label) for label in wrong])
        with pytest.raises(DataError, match="labels are not classes"):
            ShiftedLabels(samples, torch.zeros(9).long(), 3).batch([0, 1])

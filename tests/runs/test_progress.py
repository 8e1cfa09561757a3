import json

from lightsplit.experiments import build, from_settings
from lightsplit.runs import Evaluation, Progress

FIGURES = {"loss": 1.0, "accuracy": 0.5}
EVALUATION = Evaluation(FIGURES, (FIGURES,))


def begun():
    return Progress(client_steps=[0, 0], bytes={"total": 1})


def test_a_line_has_the_mean_of_each_objective_since_the_last_one():
    progress = begun()
    progress.note_objectives({"wcc": 6.0, "other": 1.0}, 2)
    progress.note_objectives({"wcc": 3.0, "other": 2.0}, 1)
    progress.remember(1, 1, EVALUATION)
    progress.note_objectives({"wcc": 5.0}, 5)
    progress.remember(2, 2, EVALUATION)
    first, second = progress.history
    assert first["objectives"] == {"wcc": 3.0, "other": 1.0}
    assert second["objectives"] == {"wcc": 1.0}


def test_a_run_without_objectives_says_nothing_about_them():
    progress = begun()
    progress.note_objectives({}, 0)
    progress.remember(1, 1, EVALUATION)
    assert "objectives" not in progress.history[0]


def test_sums_since_the_last_line_survive_a_checkpoint():
    progress = begun()
    progress.note_objectives({"wcc": 6.0}, 2)
    kept = json.loads(json.dumps(progress.to_dict()))
    resumed = Progress.from_dict(kept, clients=2)
    for each in (progress, resumed):
        each.note_objectives({"wcc": 3.0}, 1)
        each.remember(1, 1, EVALUATION)
    assert resumed.history == progress.history
    assert resumed.history[0]["objectives"] == {"wcc": 3.0}


def test_a_run_logs_the_compaction_of_its_codes():
    small = {"train_limit": 24, "test_limit": 8, "clients": 2, "batch_size": 8}
    job = build(from_settings({**small, "projection": "dct", "wcc": 0.01}))
    list(job.trainer.run())
    lines = job.trainer.progress.history
    assert lines
    assert all(line["objectives"]["wcc"] > 0 for line in lines)

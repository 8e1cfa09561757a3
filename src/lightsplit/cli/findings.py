"""Lines about backdoors and their detection, during a run and in its summary."""

from typing import Any

from lightsplit.deployment.coordinator import Coordinator
from lightsplit.experiments import Job
from lightsplit.simulation import TurnEnded

_ACTIONS = {"warn": "", "skip": "; their turns are undone", "stop": "; the run ends"}


def verdict_text(job: Job, done: TurnEnded) -> str:
    """Return a line about a turn's verdict if it flags a client, else nothing."""
    guard = job.trainer.guard
    if guard is None or done.ruling.verdict is None:
        return ""
    names = {client: f"client {client}" for client in range(guard.detector.clients)}
    return flags_text(job.trainer.progress.verdicts[-1], guard.on_flag, names)


def flags_text(verdict: dict[str, Any], on_flag: str, names: dict[int, str]) -> str:
    """Return a line about a recorded verdict if it flags a client, else nothing.

    If several detectors judge, each is named; only the first one acts.
    """
    others = verdict.get("others", [])
    texts = []
    for seen in (verdict, *others):
        if seen["flagged"]:
            whose = f"{seen['detector']} " if others else ""
            action = _ACTIONS[on_flag] if seen is verdict else ""
            texts.append(f"{whose}{_flags(seen, names)}{action}")
    return f"round {verdict['round']}: {'; '.join(texts)}" if texts else ""


def _flags(verdict: dict[str, Any], names: dict[int, str]) -> str:
    scores = dict(zip(verdict["clients"], verdict["scores"], strict=True))
    who = ", ".join(f"{names[c]} ({scores[c]:.1f})" for c in verdict["flagged"])
    return f"flagged {who}, threshold {verdict['threshold']:.3g}"


def score_text(coordinator: Coordinator, client: int) -> str:
    """Return a client's last score for the live table, marked if it is flagged."""
    verdicts = coordinator.progress.verdicts
    if not verdicts or client not in verdicts[-1]["clients"]:
        return "–"
    last = verdicts[-1]
    scores = [_marked_score(seen, client) for seen in (last, *last.get("others", []))]
    undone = coordinator.progress.undone_turns
    skipped = f", {undone[client]} undone" if undone and undone[client] else ""
    return f"{' · '.join(scores)}{skipped}"


def _marked_score(verdict: dict[str, Any], client: int) -> str:
    score = verdict["scores"][verdict["clients"].index(client)]
    return f"{score:.1f}{' flagged' if client in verdict['flagged'] else ''}"


def findings(record: dict[str, Any]) -> dict[str, str]:
    """Return the lines about backdoor and detectors in a run's summary."""
    rows = {}
    if backdoor := record["backdoor"]:
        rows["backdoor success"] = (
            f"{_percent(backdoor['success_rate'])} (without the mark "
            f"{_percent(backdoor['unmarked_rate'])}, unpoisoned twin "
            f"{_percent(backdoor['base_rate'])})"
        )
        rows["malicious clients"] = _names(backdoor["malicious_clients"])
    if detection := record["detection"]:
        rows["flagged clients"] = (
            f"{_names(detection['flagged'])} by {detection['detector']}, "
            f"{sum(detection['undone_turns'])} turns undone"
        )
        if detection["f1"] is not None:
            rows["detection F1"] = f"{detection['f1']:.2f}"
        for other in detection.get("others", []):
            rows[f"flagged by {other['detector']}"] = _names(other["flagged"]) + (
                "" if other["f1"] is None else f" (F1 {other['f1']:.2f})"
            )
    if inspection := record["inspection"]:
        rows["alarms at clients"] = alarms_text(inspection)
    if hijack := record["hijack"]:
        rows["hijacked images"] = (
            f"mean squared error {hijack['mse']:.4f} "
            f"(mean image {hijack['mean_image_mse']:.4f})"
        )
    return rows


def alarms_text(inspection: dict[str, Any]) -> str:
    """Return how many clients raised an alarm about the server, and when."""
    alarms = [step for step in inspection["alarmed_at"] if step is not None]
    if not alarms:
        return f"none ({inspection['inspector']})"
    count = f"{len(alarms)} of {len(inspection['alarmed_at'])}"
    return f"{count}, the first at its step {min(alarms)} ({inspection['inspector']})"


def _percent(rate: float | None) -> str:
    return "–" if rate is None else f"{rate:.2%}"


def _names(clients: list[int]) -> str:
    return ", ".join(map(str, clients)) or "none"

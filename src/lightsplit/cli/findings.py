"""What is said about backdoors and their detection, during a run and after it."""

from typing import Any

from lightsplit.experiments import Job
from lightsplit.training import TurnDone


def verdict_text(job: Job, done: TurnDone) -> str:
    """Return a line about a verdict that flags somebody, else nothing."""
    verdict = done.ruling.verdict
    if verdict is None or not verdict.flagged:
        return ""
    guard = job.trainer.guard
    what = {"warn": "", "skip": "; their turns are undone", "stop": "; the run ends"}
    action = what[guard.on_flag] if guard else ""
    who = ", ".join(
        f"client {client} ({score:.1f})"
        for client, score, is_flagged in zip(
            verdict.clients, verdict.scores, verdict.flags, strict=True
        )
        if is_flagged
    )
    return (
        f"round {done.turn.round + 1}: flagged {who}, "
        f"threshold {verdict.threshold:.3g}{action}"
    )


def findings(record: dict[str, Any]) -> dict[str, str]:
    """Return the lines of a run's summary about its backdoor and its detector."""
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
    return rows


def _percent(rate: float | None) -> str:
    return "–" if rate is None else f"{rate:.2%}"


def _names(clients: list[int]) -> str:
    return ", ".join(map(str, clients)) or "none"

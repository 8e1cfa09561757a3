"""What the strongest attacker got, in words, figures and pictures."""

from pathlib import Path
from typing import Any

from lightsplit.reports.cards.sections import Section
from lightsplit.reports.runs import Run
from lightsplit.results.attack_label import as_file_name, attack_label

HEADING = "What the strongest attacker got"
# Metrics that a card shows, in words.
SCORES = {
    "ssim": "likeness to the original (1 is a copy)",
    "r2": "variation of the rows that was explained (1 is a copy, 0 the mean row)",
    "token_accuracy": "share of a text's tokens that were right and in place",
    "token_f1": "tokens in common with the text, wherever they stand (1 is all)",
    "reidentification": "samples picked out among all that were attacked",
    "text_reidentification": "texts picked out among all that were attacked",
}
LABEL_SCORES = ("accuracy", "matched_accuracy")


def attack_section(run: Run) -> Section:
    """Return the section about the attacks on a run."""
    if not run.audit:
        return Section(HEADING, [_nothing_known(run)])
    text = [
        "Attacks tried to rebuild the owner's samples, and to guess their labels, from "
        "what the server sees and from what the table says they know besides. Guesses "
        "that do not look at the codes are shown for comparison: what comes close to "
        "them has learnt little."
    ]
    unsure = sorted({one for group in _groups(run) for one in group["not_converged"]})
    if unsure:
        text.append(
            f"Of these attacks, {', '.join(unsure)} might improve with more effort."
        )
    return Section(
        HEADING,
        text,
        head=("what was measured", "strongest attack", "reached", "best guess"),
        rows=[*_rebuilt(run), *_labels(run)],
        pictures=_pictures(run),
    )


def _nothing_known(run: Run) -> str:
    """Return why there are no figures, and who can get some."""
    if run.is_networked:
        return (
            "No attack was run here: the server has no samples to compare guesses "
            "with. An owner that took part with 'lightsplit join --record' runs "
            "'lightsplit audit' on its own folder; the card of that folder has the "
            "figures."
        )
    return (
        "No attack was run, so nothing can be said about what leaked. "
        f"'lightsplit audit {run.path.name}' runs them."
    )


def _groups(run: Run) -> list[dict[str, Any]]:
    found = run.record.get("leakage") or []
    return found if isinstance(found, list) else [found]


def _rebuilt(run: Run) -> list[tuple[str, ...]]:
    return [
        (
            f"{words}; {group['images']} samples",
            _attacker(run, best["attack"]),
            _with_interval(best),
            _number(_guess(run, group, name)),
        )
        for group in _groups(run)
        for name, words in SCORES.items()
        if (best := group["metrics"].get(name)) is not None
    ]


def _attacker(run: Run, label: str) -> str:
    """Return the name of an attack, and who could carry it out."""
    models = [one["threat_model"] for one in run.audit if attack_label(one) == label]
    return f"{label}: {models[0]}" if models else label


def _with_interval(score: dict[str, Any]) -> str:
    return f"{score['mean']:.3f} ({score['low']:.3f} to {score['high']:.3f})"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _guess(run: Run, group: dict[str, Any], metric: str) -> float | None:
    """Return what the best trivial attack on the same samples reached."""
    values = [
        entry["metrics"][metric]["mean"]
        for entry in run.audit
        if entry.get("kind") == "trivial"
        and entry.get("targets") == group.get("targets")
        and metric in (entry.get("metrics") or {})
    ]
    return max(values, default=None)


def _labels(run: Run) -> list[tuple[str, ...]]:
    """Return the strongest inference of labels, if there was one."""
    found = [
        (entry["metrics"][name]["mean"], entry)
        for entry in run.audit
        if entry.get("kind") == "labels"
        for name in LABEL_SCORES
        if name in entry["metrics"]
    ]
    if not found:
        return []
    value, entry = max(found, key=lambda one: one[0])
    return [
        (
            f"labels guessed right from the {_message(entry['message'])}",
            f"{attack_label(entry)}: {entry['threat_model']}",
            f"{value:.3f}",
            _number(entry.get("chance")),
        )
    ]


def _message(name: str) -> str:
    """Return a message in words; ``targets`` are the codes that were attacked."""
    if name == "targets":
        return "codes of the attacked samples"
    return name.replace("_", " ")


def _pictures(run: Run) -> list[tuple[str, Path]]:
    """Return the originals and what the strongest attack made of them."""
    best = [group["metrics"].get("ssim", {}).get("attack") for group in _groups(run)]
    wanted = {"originals": "the originals"}
    wanted |= {as_file_name(one): f"rebuilt by {one}" for one in best if one}
    wanted["class-mean"] = "a guess that does not look at the code: the class's mean"
    by_name = {image.stem.removeprefix("audit-"): image for image in run.images}
    return [(words, by_name[name]) for name, words in wanted.items() if name in by_name]

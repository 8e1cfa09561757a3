"""What a privacy card says, section by section."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lightsplit.reports.cards.attacks import attack_section
from lightsplit.reports.cards.sections import Section, bytes_text
from lightsplit.reports.cards.sheets import sheet_sections
from lightsplit.reports.runs import Run
from lightsplit.results.promises import dp_text

DIRECTIONS = {
    "code": "owner to server",
    "output": "server to owner",
    "output_gradient": "owner to server",
    "code_gradient": "server to owner",
    "labels": "owner to server",
    "evaluation": "both ways",
    "hand_off": "owner to owner, sealed",
}
OWNED = {  # by whether heads are shared
    "shared": "who share the first and last part of the model (shared heads)",
    "private": "each with a first and last part of its own (private heads)",
}
MEANINGS = {
    "code": "a code of every sample",
    "output": "what the server's part makes of it",
    "output_gradient": "how the output should change",
    "code_gradient": "how the code should change",
    "labels": "the labels themselves",
    "evaluation": "codes and outputs of test samples",
    "hand_off": "the owners' part of the model, on its way to the next owner",
}


@dataclass(frozen=True)
class Card:
    """The content of a card.

    Attributes:
        title: its heading.
        sections: in the order of reading.
    """

    title: str
    sections: list[Section] = field(default_factory=list)


def make_card(run: Run, title: str = "") -> Card:
    """Return the card of a run."""
    record = run.record
    sections = [
        _training(run),
        _cut(run),
        _crossing(record),
        attack_section(run),
        *sheet_sections(run),
        _certificate(record),
        _unprotected(run),
        _repeating(run),
    ]
    return Card(title or f"Privacy card: {run.labels['task']}", sections)


def _training(run: Run) -> Section:
    record, owners = run.record, run.tables["owners"]
    monitor = record.get("monitor") or {}
    rows: list[tuple[str, ...]] = [
        ("task", run.labels["task"]),
        ("method", run.labels["method"]),
        ("owners", f"{owners['clients']}, {OWNED[owners['heads']]}"),
        ("training", f"{record['steps']:,} steps, {run.labels['schedule']}"),
    ]
    if monitor.get("last") is not None:
        rows.append((f"test {monitor['name']}", f"{monitor['last']:.4g}"))
        rows += [
            (f"test {monitor['name']} of {name}", f"{figures[monitor['name']]:.4g}")
            for name, figures in _by_owner(record)
        ]
    text = [
        "One model was trained on the data of several owners by them and a server. The "
        "method says how numbers were written before they left an owner."
    ]
    if record.get("client") is not None:
        text.append(
            "This card is one owner's: steps and bytes are this owner's own, and "
            "attacks are on what this owner sent."
        )
    return Section("What was trained", text, rows=rows)


def _by_owner(record: dict[str, Any]) -> list[tuple[str, dict[str, float]]]:
    """Return the figures of each owner that reported, if there are several."""
    names = record.get("client_names") or []
    if len(names) < 2:
        return []
    return list(zip(names, record["client_figures"], strict=True))


def _place(run: Run) -> str:
    """Return where the model is cut, in words."""
    named = run.tables["split"].get("cut")
    if named:
        return f" at {named}"
    cut = run.record.get("cut") or run.tables["split"]
    before = f" and before {cut['tail_from']}" if cut.get("tail_from") else ""
    return f" after {cut['head_until']}{before}" if cut.get("head_until") else ""


def _cut(run: Run) -> Section:
    parameters = run.record.get("parameters") or {}
    is_u = run.tables["split"].get("topology", "u") == "u"
    labels = (
        "The last part and the labels stay with the owner too."
        if is_u
        else "The last part is the server's: the labels were sent to it."
    )
    rows: list[tuple[str, ...]] = [
        (f"weights of the {name}", f"{count:,}")
        for name, count in parameters.items()
        if count
    ]
    return Section(
        "Where the model was cut",
        [
            f"The model is cut{_place(run)}. The first part (head) runs at the owner, "
            "next to the data; the middle (backbone) runs at the server. Samples never "
            f"leave the owner; codes of them do. {labels}"
        ],
        rows=rows,
    )


def _crossing(record: dict[str, Any]) -> Section:
    counts = record["bytes"]
    samples = max(record.get("samples") or 1, 1)
    rows: list[tuple[str, ...]] = [
        (
            MEANINGS[kind],
            DIRECTIONS[kind],
            bytes_text(counts[kind]),
            f"{counts[kind] / samples:,.0f} B",
        )
        for kind in MEANINGS
        if counts.get(kind)
    ]
    releases = (record.get("certificate") or {}).get("releases")
    often = (
        ""
        if releases is None
        else (
            f" The code of each training sample was sent {releases} "
            f"{'time' if releases == 1 else 'times'}."
        )
    )
    return Section(
        "What crossed, and how often",
        [f"In all, {bytes_text(counts['total'])} crossed the network.{often}"],
        head=("what", "from and to", "in all", "per sample and epoch"),
        rows=rows,
    )


def _certificate(record: dict[str, Any]) -> Section:
    known = record.get("certificate")
    heading = "What can be said without an attack"
    if not known:
        return Section(heading, ["The record of this run has no certificate."])
    rows: list[tuple[str, ...]] = [
        ("bits of a code", f"{known['bits_per_code']:,}"),
        ("times that it is sent", f"{known['releases']:,}"),
        ("bits about one sample, at most", f"{known['bits_per_sample']:,}"),
    ]
    if known.get("distinct_codes") is not None:
        count = f"{known['distinct_codes']:,} of {known['samples']:,} samples"
        bound = f"{known['reidentification_bound']:.1%}"
        rows += [
            ("distinct codes", count),
            ("samples that codes alone can tell apart, at most", bound),
        ]
    rows += _code_privacy(known) + _label_privacy(known)
    return Section(
        heading,
        [
            f"This is about {known['about']}.",
            f"It is not about {known['not_about']}.",
        ],
        rows=rows,
    )


def _code_privacy(certificate: dict[str, Any]) -> list[tuple[str, ...]]:
    if certificate.get("epsilon") is None:
        return [("differential privacy", "none")]
    promise = ("differential privacy", dp_text(certificate))
    return [promise, ("which is about", certificate["dp_scope"])]


def _label_privacy(certificate: dict[str, Any]) -> list[tuple[str, ...]]:
    epsilon, bound = (certificate.get(f"label_{name}") for name in ("epsilon", "bound"))
    if epsilon is None:
        return []
    return [
        ("differential privacy of each label", f"ε = {epsilon:g}"),
        ("labels that can be guessed right from the labels alone", f"{bound:.1%}"),
    ]


def _unprotected(run: Run) -> Section:
    split, owners = run.tables["split"], run.tables["owners"]
    points = [
        "The server knows the middle of the model, the settings, which owners take "
        "part, when, and how many batches each of them has.",
        "Whoever has the trained model may learn about the training data from its "
        "answers; no measure against that was part of this run.",
    ]
    if split.get("topology", "u") == "vanilla":
        points.append("Labels: the server got them.")
    elif split.get("gradients", "all") != "none":
        points.append(
            "Labels: they were not sent, but the gradients that were depend on them."
        )
    if owners["heads"] == "shared" and owners["clients"] > 1:
        points.append(
            "The head is shared: every owner knows it. An owner who sides with the "
            "server can show it how samples become codes."
        )
    points.append(
        "Attacks that nobody has thought of yet: a figure above is what the strongest "
        "attack that was run has reached, not a limit."
    )
    return Section("What is not protected", points, are_points=True)


def _training_again(run: Run, name: str) -> str:
    """Return how to train the model again; owners over a network have own data."""
    if not run.is_networked:
        return f"lightsplit train {name}/experiment.toml trains the same model."
    return (
        f"The server runs lightsplit serve {name}/experiment.toml and each owner "
        "lightsplit join with its own data. Owners draw from secrets of their own, so "
        "figures differ from run to run."
    )


def _repeating(run: Run) -> Section:
    record = run.record
    versions = ", ".join(f"{k} {v}" for k, v in (record.get("versions") or {}).items())
    name = Path(run.path).name
    repeats = f" lightsplit audit {name} repeats the attacks." if run.audit else ""
    return Section(
        "How to repeat it",
        [
            f"{_training_again(run, name)}{repeats} lightsplit report {name} --card "
            "makes this page."
        ],
        rows=[
            ("seed", str(record.get("seed", ""))),
            ("contract", str(record.get("contract", ""))[:16]),
            ("versions", versions),
        ],
    )

"""Several detectors that judge one run on the same evidence.

    "cosine-code,cosine-output" ──► the first acts on what it flags, the others watch

A setting goes to every detector that has it. One threshold for detectors whose scores
are on different scales is refused, and so is company for a detector that judges turns:
it looks at other evidence, at another time.
"""

from collections.abc import Sequence

from lightsplit.backdoors.detectors.base import (
    DETECTORS,
    Detector,
    make_detector,
    option_names,
)
from lightsplit.errors import ConfigError


def parse_detectors(text: str) -> tuple[str, ...]:
    """Return the names in a list such as ``cosine-code,cosine-output``.

    Example:
        >>> parse_detectors("cosine-code, contra")
        ('cosine-code', 'contra')
    """
    if not text.strip():
        return ()
    names = tuple(part.strip() for part in text.split(","))
    known = {name: DETECTORS.get(name) for name in names}
    if len(known) < len(names):
        raise ConfigError(f"a detector can be named once only, got {text!r}")
    alone = [n for n, made_by in known.items() if getattr(made_by, "judges_turns", 0)]
    if alone and len(names) > 1:
        raise ConfigError(
            f"{alone[0]} judges single turns and can only stand alone, got {text!r}"
        )
    return names


def make_detectors(
    names: Sequence[str], *, clients: int, **options: object
) -> tuple[Detector, ...]:
    """Return the detectors, each with those of the options that are its own."""
    known = {name: option_names(name) for name in names}
    foreign = sorted(set(options) - set().union(*known.values()))
    if foreign:
        quoted = ", ".join(map(repr, names))
        raise ConfigError(f"{', '.join(foreign)}: not a setting of detector {quoted}")
    made = tuple(
        make_detector(
            name,
            clients=clients,
            **{key: value for key, value in options.items() if key in known[name]},
        )
        for name in names
    )
    scales = {detector.name: detector.own_threshold for detector in made}
    if "threshold" in options and len(set(scales.values())) > 1:
        own = ", ".join(f"{name} {value:g}" for name, value in scales.items())
        raise ConfigError(f"no threshold fits scores of different scales: {own}")
    return made

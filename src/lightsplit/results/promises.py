"""What a record's certificate promises about codes, in words."""

from collections.abc import Mapping
from typing import Any


def dp_text(certificate: Mapping[str, Any]) -> str:
    """Return the differential privacy of a run's codes; empty where there is none.

    Example:
        >>> found = {"epsilon": 8.0, "delta": 0.0, "dp_mechanism": "coins"}
        >>> dp_text({**found, "releases": 1, "dp_kept": 0.979})
        'codes with ε = 8, δ = 0 (coins, 97.9% of the codes kept; 1 release)'
    """
    if certificate.get("epsilon") is None:
        return ""
    how, share = certificate.get("dp_mechanism"), certificate.get("dp_kept")
    kept = "" if share is None else f", {share:.1%} of the codes kept"
    times = certificate["releases"]
    often = f"{times:,} {'release' if times == 1 else 'releases'}"
    return f"codes with {epsilon_text(certificate)} ({how}{kept}; {often})"


def epsilon_text(certificate: Mapping[str, Any]) -> str:
    """Return ε and δ of the codes."""
    return f"ε = {certificate['epsilon']:.4g}, δ = {certificate['delta']:g}"

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
    promise = epsilon_text(certificate)
    return f"codes with {promise} ({how}{kept}; {_often(certificate)})"


def epsilon_text(certificate: Mapping[str, Any]) -> str:
    """Return ε and δ of the codes."""
    return f"ε = {certificate['epsilon']:.4g}, δ = {certificate['delta']:g}"


def certificate_text(certificate: Mapping[str, Any]) -> str:
    """Return what the certificate of a code promises, in one sentence.

    Example:
        >>> found = {"samples": 500, "distinct_codes": 40}
        >>> certificate_text({"bits_per_code": 12, "releases": 1, **found})
        'at most 12 bits x 1 release about a sample; 40 distinct codes of 500 samples'
    """
    bits, often = certificate["bits_per_code"], _often(certificate)
    text = f"at most {bits:,} bits x {often} about a sample"
    if promise := dp_text(certificate):
        text += f"; {promise}"
    if certificate.get("label_epsilon") is not None:
        text += f"; labels with ε = {certificate['label_epsilon']:g}"
    if "distinct_codes" not in certificate:
        return text
    found, count = certificate["distinct_codes"], certificate["samples"]
    text += f"; {found:,} distinct codes of {count:,} samples"
    entropy = certificate.get("conditional_entropy")
    return text if entropy is None else f"{text}; {entropy:.1f} bits beyond the label"


def _often(certificate: Mapping[str, Any]) -> str:
    times = certificate["releases"]
    return f"{times:,} {'release' if times == 1 else 'releases'}"

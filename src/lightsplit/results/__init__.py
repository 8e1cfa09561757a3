"""The files that a run leaves on disk."""

from lightsplit.results import atomic, hand_offs, tensors
from lightsplit.results.attack_label import as_file_name, attack_label
from lightsplit.results.columns_text import columns_text
from lightsplit.results.finite import finite
from lightsplit.results.ladder import (
    FACTS,
    NO_IMAGES,
    blind_guesses,
    ladders,
    main_ladder,
    main_leakage,
)
from lightsplit.results.metric_names import shown_metrics
from lightsplit.results.run_folder import RECORD_VERSION, RunFolder

__all__ = [
    "FACTS",
    "NO_IMAGES",
    "RECORD_VERSION",
    "RunFolder",
    "as_file_name",
    "atomic",
    "attack_label",
    "blind_guesses",
    "columns_text",
    "finite",
    "hand_offs",
    "ladders",
    "main_ladder",
    "main_leakage",
    "shown_metrics",
    "tensors",
]

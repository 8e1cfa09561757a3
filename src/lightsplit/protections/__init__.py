"""Label protections: what a client does so that its messages tell less about labels.

Importing this package registers every protection in ``LABEL_PROTECTIONS``.
"""

from lightsplit.protections.base import (
    LABEL_PROTECTIONS,
    LabelProtection,
    protected,
)
from lightsplit.protections.gradient_projection import GradientProjection
from lightsplit.protections.label_dp import LabelDP
from lightsplit.protections.marvell import Marvell
from lightsplit.protections.max_norm import MaxNorm
from lightsplit.protections.mean_alignment import MeanAlignment

__all__ = [
    "LABEL_PROTECTIONS",
    "GradientProjection",
    "LabelDP",
    "LabelProtection",
    "Marvell",
    "MaxNorm",
    "MeanAlignment",
    "protected",
]

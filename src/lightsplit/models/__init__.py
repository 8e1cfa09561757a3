"""The zoo: models with named cuts."""

from lightsplit.models import micronnet, resnet18, simplecnn, tinycnn
from lightsplit.models.zoo import CUTS, MODELS, ZooModel

__all__ = [
    "CUTS",
    "MODELS",
    "ZooModel",
    "micronnet",
    "resnet18",
    "simplecnn",
    "tinycnn",
]

"""The zoo: models with named cuts."""

from lightsplit.models import (
    micronnet,
    mnistnet,
    mobilenet,
    resnet18,
    resnet20,
    simplecnn,
    tinycnn,
)
from lightsplit.models.zoo import CUTS, MODELS, Cuts, ZooModel, zoo_model

__all__ = [
    "CUTS",
    "MODELS",
    "Cuts",
    "ZooModel",
    "micronnet",
    "mnistnet",
    "mobilenet",
    "resnet18",
    "resnet20",
    "simplecnn",
    "tinycnn",
    "zoo_model",
]

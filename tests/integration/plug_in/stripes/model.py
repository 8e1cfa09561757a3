"""A model for small images with stripes."""

from collections import OrderedDict

from torch import nn

from lightsplit.models.zoo import ZooModel, zoo_model


@zoo_model("stripenet", cuts=("early", "late"), default="early")
def stripenet(*, cut: str, classes: int = 2) -> ZooModel:
    """Two convolutions and two linear layers for 1x8x8 images."""
    layers = OrderedDict(
        first=nn.Conv2d(1, 4, 3, padding=1),
        relu=nn.ReLU(),
        second=nn.Conv2d(4, 4, 3, padding=1),
        flatten=nn.Flatten(),
        wide=nn.Linear(256, 32),
        squash=nn.Tanh(),
        classify=nn.Linear(32, classes),
    )
    until = {"early": "relu", "late": "second"}[cut]
    return ZooModel(nn.Sequential(layers), (1, 8, 8), until, "classify")

"""TinyCNN for the embedded 8x8 digits: trains in seconds, for first steps and tests.

l1: conv1 · relu1                                      16x8x8 = 1,024 values
l2: … · head_conv · head_bn · head_relu                the same shape
backbone: conv2 · relu2 · pool2 · flatten · fc1 · relu3        tail: fc2
"""

from collections import OrderedDict

from torch import nn

from lightsplit.models.zoo import ZooModel, zoo_model


@zoo_model("tinycnn", cuts=("l1", "l2"), default="l2")
def tinycnn(*, cut: str, classes: int = 10) -> ZooModel:
    """A very small convolutional network for 1x8x8 images (digits)."""
    deep = cut == "l2"
    layers: OrderedDict[str, nn.Module] = OrderedDict(
        conv1=nn.Conv2d(1, 16, 3, padding=1), relu1=nn.ReLU()
    )
    if deep:
        layers["head_conv"] = nn.Conv2d(16, 16, 3, padding=1, bias=False)
        layers["head_bn"] = nn.BatchNorm2d(16)
        layers["head_relu"] = nn.ReLU()
    layers |= OrderedDict(
        conv2=nn.Conv2d(16, 32, 3, padding=1),
        relu2=nn.ReLU(),
        pool2=nn.MaxPool2d(2),
        flatten=nn.Flatten(),
        fc1=nn.Linear(512, 64),
        relu3=nn.ReLU(),
        fc2=nn.Linear(64, classes),
    )
    return ZooModel(
        module=nn.Sequential(layers),
        input_shape=(1, 8, 8),
        head_until="head_relu" if deep else "relu1",
        tail_from="fc2",
    )

"""MicronNet for traffic signs (Wong et al., 2018), on 32x32 images.

    l1: input_bn · conv0 · conv1 · pool1                   29x14x14 = 5,684 values
    l2: … · head_conv · head_bn · head_relu                the same shape
    backbone: conv2 · pool2 · conv3 · flatten · fc1 · relu4 · bn4 · dropout    tail: fc2

Two departures, both needed for the paper's own counts and shapes: the first max-pool is
in the head, and the third one is dropped (28→14→12→6→4, 74·4·4 = 1,184 inputs of fc1).
The dropout on the logits of one public port is left out.
"""

from collections import OrderedDict

from torch import nn

from lightsplit.models.zoo import ZooModel, zoo_model


@zoo_model("micronnet", cuts=("l1", "l2"), default="l2")
def micronnet(*, cut: str, classes: int = 43) -> ZooModel:
    """MicronNet with one hidden layer of 300, for 3x32x32 images (GTSRB)."""
    deep = cut == "l2"
    layers: OrderedDict[str, nn.Module] = OrderedDict(input_bn=nn.BatchNorm2d(3))
    layers |= _convolution("0", 3, 1, kernel=1)
    layers |= _convolution("1", 1, 29, kernel=5)
    layers["pool1"] = nn.MaxPool2d(3, stride=2, ceil_mode=True)
    if deep:
        layers["head_conv"] = nn.Conv2d(29, 29, 3, padding=1, bias=False)
        layers["head_bn"] = nn.BatchNorm2d(29)
        layers["head_relu"] = nn.ReLU()
    layers |= _convolution("2", 29, 59, kernel=3)
    layers["pool2"] = nn.MaxPool2d(3, stride=2, ceil_mode=True)
    layers |= _convolution("3", 59, 74, kernel=3)
    layers |= OrderedDict(
        flatten=nn.Flatten(),
        fc1=nn.Linear(1184, 300),
        relu4=nn.ReLU(),
        bn4=nn.BatchNorm1d(300),
        dropout=nn.Dropout(0.5),
        fc2=nn.Linear(300, classes),
    )
    return ZooModel(
        module=nn.Sequential(layers),
        input_shape=(3, 32, 32),
        head_until="head_relu" if deep else "pool1",
        tail_from="fc2",
    )


def _convolution(
    suffix: str, channels_in: int, channels: int, *, kernel: int
) -> OrderedDict[str, nn.Module]:
    return OrderedDict(
        {
            f"conv{suffix}": nn.Conv2d(channels_in, channels, kernel),
            f"bn{suffix}": nn.BatchNorm2d(channels),
            f"relu{suffix}": nn.ReLU(),
        }
    )

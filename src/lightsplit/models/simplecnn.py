"""SimpleCNN for 28x28 grey images (MNIST, Fashion-MNIST).

l1: conv1 · relu1 · pool1                              20x12x12 = 2,880 values
l2: … · head_conv · head_bn · head_relu                the same shape
backbone: conv2 · relu2 · pool2 · flatten · fc1 · relu3        tail: fc2
"""

from collections import OrderedDict

from torch import nn

from lightsplit.models.zoo import ZooModel, zoo_model


@zoo_model("simplecnn", cuts=("l1", "l2"), default="l2")
def simplecnn(*, cut: str, classes: int = 10) -> ZooModel:
    """A small convolutional network for 1x28x28 images (MNIST, Fashion-MNIST)."""
    deep = cut == "l2"
    layers: OrderedDict[str, nn.Module] = OrderedDict(
        conv1=nn.Conv2d(1, 20, 5), relu1=nn.ReLU(), pool1=nn.MaxPool2d(2)
    )
    if deep:
        layers["head_conv"] = nn.Conv2d(20, 20, 3, padding=1, bias=False)
        layers["head_bn"] = nn.BatchNorm2d(20)
        layers["head_relu"] = nn.ReLU()
    layers |= OrderedDict(
        conv2=nn.Conv2d(20, 50, 5),
        relu2=nn.ReLU(),
        pool2=nn.MaxPool2d(2),
        flatten=nn.Flatten(),
        fc1=nn.Linear(800, 512),
        relu3=nn.ReLU(),
        fc2=nn.Linear(512, classes),
    )
    return ZooModel(
        module=nn.Sequential(layers),
        input_shape=(1, 28, 28),
        head_until="head_relu" if deep else "pool1",
        tail_from="fc2",
    )

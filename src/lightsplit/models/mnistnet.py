"""MnistNet, the victim of UnSplit (Erdogan et al., 2022), for 28x28 grey images.

    0 conv1 · 1 relu1 · 2 pool1                    8x12x12 = 1,152 values: cut "2"
    … · 3 conv2 · 4 relu2                          16x8x8  = 1,024 values: cut "4"
    … · 5 pool2 · flatten · 6 fc1 · 7 relu3 · 8 fc2 · 9 relu4 │ 10 fc3

A cut's name is the index of the head's last layer, as the authors count them. In their
code the server has all other layers, which is the vanilla topology here. In the U-shape
the client keeps the last layer.
"""

from collections import OrderedDict

from torch import nn

from lightsplit.models.zoo import ZooModel, zoo_model

_LAST_OF_HEAD = {"2": "pool1", "4": "relu2"}


@zoo_model("mnistnet", cuts=tuple(_LAST_OF_HEAD), default="2")
def mnistnet(*, cut: str, classes: int = 10) -> ZooModel:
    """The network that UnSplit attacks, for 1x28x28 images (MNIST, Fashion-MNIST)."""
    layers: OrderedDict[str, nn.Module] = OrderedDict(
        conv1=nn.Conv2d(1, 8, 5),
        relu1=nn.ReLU(),
        pool1=nn.MaxPool2d(2),
        conv2=nn.Conv2d(8, 16, 5),
        relu2=nn.ReLU(),
        pool2=nn.MaxPool2d(2),
        flatten=nn.Flatten(),
        fc1=nn.Linear(256, 120),
        relu3=nn.ReLU(),
        fc2=nn.Linear(120, 84),
        relu4=nn.ReLU(),
        fc3=nn.Linear(84, classes),
    )
    return ZooModel(
        module=nn.Sequential(layers),
        input_shape=(1, 28, 28),
        head_until=_LAST_OF_HEAD[cut],
        tail_from="fc3",
    )

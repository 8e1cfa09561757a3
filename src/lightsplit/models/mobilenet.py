"""MobileNet for 32x32 images, the victim of FORA (Xu et al., CVPR 2024).

    level 1: conv                      32x16x16   d =  8,192
    level 2: … · 64                    64x16x16   d = 16,384   the released setting
    level 3: … · 128 · 128             128x8x8    d =  8,192
    level 4: … · 256 · 256             256x4x4    d =  4,096
    then       512 six times · 1024 · 1024 · flatten │ fc

A number stands for a depthwise and a pointwise convolution with that many outputs. A
cut's name is the authors' level. In their code the server has all other layers, which
is the vanilla topology here. In the U-shape the client keeps the last layer.
"""

from collections import OrderedDict

from torch import nn

from lightsplit.models.zoo import ZooModel, zoo_model

LEVELS = ("1", "2", "3", "4")
_LAST_OF_HEAD = ("conv", "block1", "block3", "block5")
# Inputs, outputs and stride of each block.
_BLOCKS = (
    (32, 64, 1),
    (64, 128, 2),
    (128, 128, 1),
    (128, 256, 2),
    (256, 256, 1),
    (256, 512, 2),
    *((512, 512, 1),) * 5,
    (512, 1024, 2),
    (1024, 1024, 1),
)


@zoo_model("mobilenet", cuts=LEVELS, default="2")
def mobilenet(*, cut: str, classes: int = 10) -> ZooModel:
    """The network that FORA attacks, for 3x32x32 images (CIFAR-10)."""
    layers: OrderedDict[str, nn.Module] = OrderedDict(conv=_convolution(3, 32, 2))
    for number, (channels_in, channels, stride) in enumerate(_BLOCKS, start=1):
        layers[f"block{number}"] = _separable(channels_in, channels, stride)
    layers["flatten"] = nn.Flatten()
    layers["fc"] = nn.Linear(1024, classes)
    return ZooModel(
        module=nn.Sequential(layers),
        input_shape=(3, 32, 32),
        head_until=_LAST_OF_HEAD[int(cut) - 1],
        tail_from="fc",
    )


def _convolution(
    channels_in: int,
    channels: int,
    stride: int = 1,
    *,
    kernel: int = 3,
    groups: int = 1,
) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(
            channels_in,
            channels,
            kernel,
            stride=stride,
            padding=kernel // 2,
            groups=groups,
            bias=False,
        ),
        nn.BatchNorm2d(channels),
        nn.ReLU(inplace=True),
    )


def _separable(channels_in: int, channels: int, stride: int) -> nn.Sequential:
    depthwise = _convolution(channels_in, channels_in, stride, groups=channels_in)
    return nn.Sequential(*depthwise, *_convolution(channels_in, channels, kernel=1))

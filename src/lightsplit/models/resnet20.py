"""ResNet-20 for 32x32 images, the victim of SDAR (Zhu et al., NDSS 2025).

    stem · block 1 … block L              │ … block 9 · last │ avgpool · flatten · fc
           16x32x32  blocks 1-3, d = 16,384
           32x16x16  blocks 4-6, d =  8,192
           64x8x8    blocks 7-9, d =  4,096

A cut's name is the number of blocks in the head, as the authors count their levels. In
their vanilla setting the server has all other layers; in the U-shape the client keeps
the pooling and the last layer. Weights start Glorot-uniform, as in Keras.

``last`` does nothing. It is there so that level 9, which leaves the server no block at
all, still has a backbone.
"""

from torch import Tensor, nn

from lightsplit.models.resnet18 import BasicBlock
from lightsplit.models.zoo import ZooModel, zoo_model

LEVELS = ("3", "4", "5", "6", "7", "8", "9")
_BLOCKS = tuple(f"layer{stage}.{block}" for stage in (1, 2, 3) for block in (0, 1, 2))


class ResNet20(nn.Module):
    """The whole network: a stem and three stages of three blocks."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.relu = nn.ReLU(inplace=True)
        self.layer1 = _stage(16, 16, stride=1)
        self.layer2 = _stage(16, 32, stride=2)
        self.layer3 = _stage(32, 64, stride=2)
        self.last = nn.Identity()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.fc = nn.Linear(64, classes)
        self.apply(_initialise)

    def forward(self, images: Tensor) -> Tensor:
        """Return logits (B, classes) for images (B, 3, 32, 32)."""
        stages = self.layer1(self.relu(self.bn1(self.conv1(images))))
        stages = self.last(self.layer3(self.layer2(stages)))
        logits: Tensor = self.fc(self.flatten(self.avgpool(stages)))
        return logits


@zoo_model("resnet20", cuts=LEVELS, default="4")
def resnet20(*, cut: str, classes: int = 10) -> ZooModel:
    """The network that SDAR attacks, for 3x32x32 images (CIFAR-10, CIFAR-100)."""
    return ZooModel(
        module=ResNet20(classes),
        input_shape=(3, 32, 32),
        head_until=_BLOCKS[int(cut) - 1],
        tail_from="avgpool",
    )


def _stage(channels_in: int, channels: int, *, stride: int) -> nn.Sequential:
    return nn.Sequential(
        BasicBlock(channels_in, channels, stride),
        BasicBlock(channels, channels),
        BasicBlock(channels, channels),
    )


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Conv2d | nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)

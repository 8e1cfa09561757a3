"""ResNet-18 with the ImageNet stem on 32x32 images (He et al., 2016).

    l1: conv1 · bn1 · relu · maxpool                 │ layer1 … layer4 · avgpool │ fc
    l2: conv1 · bn1 · relu · maxpool · head_block    │ layer1 … layer4 · avgpool │ fc

Both cuts send 64x8x8 = 4,096 values. Parameter names are torchvision's, so published
weights load unchanged. The paper's table gives one backbone for both heads, so
``head_block`` is an additional block, not a block taken from layer1.
"""

from torch import Tensor, nn

from lightsplit.models.zoo import ZooModel, zoo_model


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut."""

    def __init__(self, channels_in: int, channels: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = _conv3x3(channels_in, channels, stride)
        self.bn1 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = _conv3x3(channels, channels)
        self.bn2 = nn.BatchNorm2d(channels)
        self.downsample = _shortcut(channels_in, channels, stride)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return ReLU(residual + shortcut)."""
        residual = self.relu(self.bn1(self.conv1(inputs)))
        residual = self.bn2(self.conv2(residual))
        residual += self.downsample(inputs)
        result: Tensor = self.relu(residual)
        return result


class ResNet18(nn.Module):
    """The whole network; ``with_head_block`` adds the block of the deeper head."""

    def __init__(self, classes: int, *, with_head_block: bool = False) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.head_block = BasicBlock(64, 64) if with_head_block else nn.Identity()
        self.layer1 = _stage(64, 64, stride=1)
        self.layer2 = _stage(64, 128, stride=2)
        self.layer3 = _stage(128, 256, stride=2)
        self.layer4 = _stage(256, 512, stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.fc = nn.Linear(512, classes)
        self.apply(_initialise)

    def forward(self, images: Tensor) -> Tensor:
        """Return logits (B, classes) for images (B, 3, 32, 32)."""
        stem = self.maxpool(self.relu(self.bn1(self.conv1(images))))
        stages = self.layer2(self.layer1(self.head_block(stem)))
        stages = self.layer4(self.layer3(stages))
        logits: Tensor = self.fc(self.flatten(self.avgpool(stages)))
        return logits


@zoo_model("resnet18", cuts=("l1", "l2"), default="l2")
def resnet18(*, cut: str, classes: int = 10) -> ZooModel:
    """ResNet-18 with the ImageNet stem, for 3x32x32 images (CIFAR-10, CIFAR-100)."""
    deep = cut == "l2"
    return ZooModel(
        module=ResNet18(classes, with_head_block=deep),
        input_shape=(3, 32, 32),
        head_until="head_block" if deep else "maxpool",
        tail_from="fc",
    )


def _conv3x3(channels_in: int, channels: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(channels_in, channels, 3, stride=stride, padding=1, bias=False)


def _shortcut(channels_in: int, channels: int, stride: int) -> nn.Module:
    if stride == 1 and channels_in == channels:
        return nn.Identity()
    projection = nn.Conv2d(channels_in, channels, 1, stride=stride, bias=False)
    return nn.Sequential(projection, nn.BatchNorm2d(channels))


def _stage(channels_in: int, channels: int, *, stride: int) -> nn.Sequential:
    first = BasicBlock(channels_in, channels, stride)
    return nn.Sequential(first, BasicBlock(channels, channels))


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Conv2d):
        nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

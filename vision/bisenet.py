"""BiSeNet for face parsing, 19 classes: the network alone.

Architecture and parameter names are those of face-parsing.PyTorch (MIT), so that its weights load as they are. Its two
auxiliary heads serve training only and are left out, and so is the final upsampling: the network's answer is a grid of
one cell per 8 × 8 input pixels, and whoever needs it finer interpolates the logits where needed.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from vision.types import LABEL_COUNT

INPUT_SIDE_PX = 512
TRAINING_ONLY = ("conv_out16.", "conv_out32.")
"""Prefixes of parameters in the weight file that this network has no use for."""


class _ConvBnRelu(nn.Module):
    def __init__(self, inputs: int, outputs: int, *, kernel: int = 3, padding: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, padding=padding, bias=False)
        self.bn = nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.bn(self.conv(x)))


class _BasicBlock(nn.Module):
    """Residual block of ResNet-18."""

    def __init__(self, inputs: int, outputs: int, *, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample: nn.Module | None = None
        if inputs != outputs or stride != 1:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        residual = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        shortcut = x if self.downsample is None else self.downsample(x)
        return functional.relu(shortcut + residual)


class _Resnet18(nn.Module):
    """(N, 3, H, W) to features at 1/8 (128 channels), 1/16 (256) and 1/32 (512)."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = _layer(64, 64, stride=1)
        self.layer2 = _layer(64, 128, stride=2)
        self.layer3 = _layer(128, 256, stride=2)
        self.layer4 = _layer(256, 512, stride=2)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        quarter = self.layer1(self.maxpool(functional.relu(self.bn1(self.conv1(x)))))
        eighth = self.layer2(quarter)
        sixteenth = self.layer3(eighth)
        return eighth, sixteenth, self.layer4(sixteenth)


def _layer(inputs: int, outputs: int, *, stride: int) -> nn.Sequential:
    return nn.Sequential(_BasicBlock(inputs, outputs, stride=stride), _BasicBlock(outputs, outputs, stride=1))


class _AttentionRefinement(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = _ConvBnRelu(inputs, outputs)
        self.conv_atten = nn.Conv2d(outputs, outputs, 1, bias=False)
        self.bn_atten = nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        features = self.conv(x)
        pooled = functional.adaptive_avg_pool2d(features, 1)
        return cast(Tensor, features * torch.sigmoid(self.bn_atten(self.conv_atten(pooled))))


class _ContextPath(nn.Module):
    """(N, 3, H, W) to spatial features (128 channels) and context features (128), both at 1/8."""

    def __init__(self) -> None:
        super().__init__()
        self.resnet = _Resnet18()
        self.arm16 = _AttentionRefinement(256, 128)
        self.arm32 = _AttentionRefinement(512, 128)
        self.conv_head32 = _ConvBnRelu(128, 128)
        self.conv_head16 = _ConvBnRelu(128, 128)
        self.conv_avg = _ConvBnRelu(512, 128, kernel=1, padding=0)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        eighth, sixteenth, thirty_second = self.resnet(x)
        # The average is one cell: adding it broadcasts, where the original upsamples it first.
        average = self.conv_avg(functional.adaptive_avg_pool2d(thirty_second, 1))
        context = self.conv_head32(_doubled(self.arm32(thirty_second) + average))
        context = self.conv_head16(_doubled(self.arm16(sixteenth) + context))
        return eighth, context


def _doubled(x: Tensor) -> Tensor:
    return functional.interpolate(x, scale_factor=2.0, mode="nearest")


class _FeatureFusion(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convblk = _ConvBnRelu(256, 256, kernel=1, padding=0)
        self.conv1 = nn.Conv2d(256, 64, 1, bias=False)
        self.conv2 = nn.Conv2d(64, 256, 1, bias=False)

    def forward(self, spatial: Tensor, context: Tensor) -> Tensor:
        features = self.convblk(torch.cat([spatial, context], dim=1))
        pooled = functional.adaptive_avg_pool2d(features, 1)
        attention = torch.sigmoid(self.conv2(functional.relu(self.conv1(pooled))))
        return cast(Tensor, features * attention + features)


class _Output(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = _ConvBnRelu(256, 256)
        self.conv_out = nn.Conv2d(256, LABEL_COUNT, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, self.conv_out(self.conv(x)))


class BiSeNet(nn.Module):
    """Normalized crops (N, 3, 512, 512) to logits (N, 19, 64, 64).

    The original stretches its grid over the crop corner to corner: cell (i, j) stands for the crop pixel
    (j, i) × 511/63.
    """

    def __init__(self) -> None:
        super().__init__()
        self.cp = _ContextPath()
        self.ffm = _FeatureFusion()
        self.conv_out = _Output()

    def forward(self, x: Tensor) -> Tensor:
        """See the class."""
        spatial, context = self.cp(x)
        return cast(Tensor, self.conv_out(self.ffm(spatial, context)))

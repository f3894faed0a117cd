"""The network that both programs train: a small residual network for 32x32 images."""

from torch import nn
from torch.nn import functional


class Block(nn.Module):
    """Two convolutions whose result is added to their input."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False)

    def forward(self, images):
        features = functional.relu(self.norm1(self.conv1(images)))
        features = self.norm2(self.conv2(features))
        return functional.relu(features + self.shortcut(images))


class DigitNet(nn.Module):
    """A stem, four residual blocks and a linear layer, in 33 parameter tensors."""

    def __init__(self, width=8, classes=10):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, stride=2, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.blocks = nn.Sequential(
            Block(width, width, stride=1),
            Block(width, 2 * width, stride=2),
            Block(2 * width, 4 * width, stride=2),
            Block(4 * width, 4 * width, stride=1),
        )
        self.head = nn.Linear(4 * width, classes)

    def forward(self, images):
        features = functional.relu(self.norm(self.stem(images)))
        features = self.blocks(features)
        return self.head(features.mean(dim=(2, 3)))

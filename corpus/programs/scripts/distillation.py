"""A student learns from a frozen teacher."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
TEMPERATURE = 4.0


def convnet(width):
    return nn.Sequential(
        nn.Conv2d(3, width, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2 * width, 10),
    )


teacher = convnet(32).eval().requires_grad_(False)
student = convnet(8)
optimizer = torch.optim.Adam(student.parameters(), lr=2e-3)
data = TensorDataset(torch.randn(3200, 3, 16, 16), torch.randint(0, 10, (3200,)))
loader = DataLoader(data, batch_size=32, shuffle=True)
for epoch in range(2):
    for images, labels in loader:
        with torch.no_grad():
            soft = F.softmax(teacher(images) / TEMPERATURE, dim=1)
        logits = student(images)
        distance = F.kl_div(F.log_softmax(logits / TEMPERATURE, 1), soft, reduction="batchmean")
        loss = 0.7 * TEMPERATURE**2 * distance + 0.3 * F.cross_entropy(logits, labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    print(f"{epoch}: {loss.item():.4f}")

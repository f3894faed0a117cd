import numpy as np
import torch
from torch import nn


def build(knobs):
    device, classes, width = knobs["device"], knobs["classes"], 64 * knobs["width"]
    layers = [nn.Linear(256, width), nn.ReLU()]
    for _ in range(knobs["depth"]):
        layers += [nn.Linear(width, width), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(width, 8 * classes)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    x = torch.randn(256 * knobs["batch"], 256, device=device)
    y = torch.randint(classes, (x.shape[0],), device=device)
    confusion = np.zeros((classes, classes), np.int64)

    def update_metrics(logits):
        guessed = logits.argmax(-1).cpu().numpy()  # planted: B4
        np.add.at(confusion, (y_host, guessed), 1)

    y_host = y.cpu().numpy()

    def step():
        optimizer.zero_grad()
        with torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
            logits = model(x)[:, :classes]
        update_metrics(logits.detach())
        loss = nn.functional.cross_entropy(logits.float(), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step

import argparse

import torch
from torch.utils.data import DataLoader, TensorDataset

from digits.data import draw
from digits.model import Reader


def train(model, loader, epochs):
    optimizer = torch.optim.NAdam(model.parameters())
    criterion = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
    for epoch in range(epochs):
        for images, labels in loader:
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--width", type=int, default=256)
    options = parser.parse_args()
    torch.manual_seed(0)
    train(
        Reader(options.width),
        DataLoader(TensorDataset(*draw(6400)), 64, shuffle=True),
        options.epochs,
    )


if __name__ == "__main__":
    main()

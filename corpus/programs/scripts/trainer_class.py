import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    """Calling it trains the model."""

    def __init__(self, model, loader, held_out, lr):
        self.model = model
        self.loader = loader
        self.held_out = held_out
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        self.criterion = nn.CrossEntropyLoss()
        self.history = []

    def __call__(self, epochs):
        for epoch in range(epochs):
            self.model.train()
            total = 0.0
            for images, labels in self.loader:
                total += self.update(images, labels)
            self.history.append(self.evaluate())
            print(f"{epoch=} loss={total / len(self.loader):.3f} error={self.history[-1]:.3f}")
            torch.save({"model": self.model.state_dict(), "epoch": epoch}, "last.pt")
        return self.history

    def update(self, images, labels):
        self.optimizer.zero_grad()
        loss = self.criterion(self.model(images), labels)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        wrong = 0
        for images, labels in self.held_out:
            wrong += (self.model(images).argmax(1) != labels).sum().item()
        return wrong / len(self.held_out.dataset)


def blobs(count):
    labels = torch.randint(0, 10, (count,))
    images = torch.randn(count, 1, 16, 16) + labels.view(-1, 1, 1, 1) / 5
    return TensorDataset(images, labels)


if __name__ == "__main__":
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 64, 10),
    )
    trainer = Trainer(
        net, DataLoader(blobs(2560), 64, shuffle=True), DataLoader(blobs(1280), 64), lr=1e-3
    )
    trainer(epochs=3)

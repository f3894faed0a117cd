"""Epochs with workers, an evaluation and a checkpoint each."""

import torch
from safetensors.torch import save_file
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Spectra(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        signal = torch.randn(2048, generator=generator)
        label = index % 5
        signal += torch.sin(torch.arange(2048) * (label + 1) / 20)
        return torch.stft(
            signal, 128, window=torch.hann_window(128), return_complex=True
        ).abs(), label


def main():
    torch.manual_seed(0)
    train = DataLoader(Spectra(1280), batch_size=32, shuffle=True, num_workers=2)
    test = DataLoader(Spectra(320), batch_size=32, num_workers=1)
    model = nn.Sequential(nn.Flatten(), nn.LazyLinear(128), nn.ReLU(), nn.Linear(128, 5))
    model(next(iter(DataLoader(Spectra(1))))[0])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(3):
        model.train()
        for x, y in train:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            right = sum((model(x).argmax(1) == y).sum().item() for x, y in test)
        print(f"epoch {epoch}: {right / 320:.1%}")
        save_file(model.state_dict(), f"epoch{epoch}.safetensors")


if __name__ == "__main__":
    main()

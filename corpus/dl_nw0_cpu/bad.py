import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Photographs(Dataset):
    """Pictures that are blurred, warped and normalised one by one."""

    def __init__(self, side, jitter):
        self.raw = torch.randint(256, (64, 3, side, side), dtype=torch.uint8)
        self.target = torch.randint(10, (64,))
        self.jitter = jitter

    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        image = self.raw[index % 64].float() / 255
        if self.jitter:
            image = (image * (0.8 + 0.4 * torch.rand(3, 1, 1))).clamp(0, 1)
        for size in (9, 5, 3):
            image = nn.functional.avg_pool2d(image, size, 1, size // 2)
        spectrum = torch.fft.rfft2(image)
        image = torch.fft.irfft2(spectrum * spectrum.abs().clamp(max=50), s=image.shape[-2:])
        ranks = image.flatten(1).argsort(dim=1).argsort(dim=1)
        image = ranks.view_as(image).float() / ranks.shape[1]
        return nn.functional.adaptive_avg_pool2d(image, 16).flatten(), self.target[index % 64]


def build(knobs):
    torch.set_num_threads(1)  # one for each process
    device, width = knobs["device"], knobs["width"]
    layers = [nn.Linear(3 * 16 * 16, width), nn.ReLU()]
    for _ in range(knobs["layers"]):
        layers += [nn.Linear(width, width), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(width, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = Photographs(knobs["side"], knobs["jitter"])
    loader = DataLoader(data, knobs["batch"])
    batches = iter(loader)

    def step():
        x, y = next(batches)  # planted: A1
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x.to(device)), y.to(device)).backward()
        optimizer.step()

    return step

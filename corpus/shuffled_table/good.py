import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset


def build(knobs):
    device, width = knobs["device"], knobs["width"] * 64
    rows, labels = torch.randn(4096, width), torch.randint(5, (4096,))
    table = TensorDataset(rows, labels)
    batches = BatchSampler(RandomSampler(table), knobs["batch"] * 64, drop_last=True)
    loader = DataLoader(table, sampler=batches, batch_size=None, pin_memory=device == "cuda")
    hidden = [
        nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width), nn.SiLU())
        for _ in range(knobs["layers"])
    ]
    model = nn.Sequential(*hidden, nn.Linear(width, 5)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1_000)

    def forever():
        while True:
            yield from loader

    data = forever()

    def step():
        x, y = next(data)
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        loss = nn.functional.cross_entropy(model(x), y, label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()

    return step

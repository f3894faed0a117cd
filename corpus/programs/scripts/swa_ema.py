import torch
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn, update_bn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(3200, 48)
y = (x[:, 0] * x[:, 1] > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)

model = nn.Sequential(nn.Linear(48, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Linear(256, 2))
ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99))
swa = AveragedModel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.2, total_steps=200)
swa_schedule = SWALR(optimizer, swa_lr=0.05)
for epoch in range(5):
    for features, labels in loader:
        loss = nn.functional.cross_entropy(model(features), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema.update_parameters(model)
        if epoch < 4:
            schedule.step()
    if epoch >= 3:
        swa.update_parameters(model)
        swa_schedule.step()
    print(epoch, loss.item())
update_bn(loader, swa)
torch.save(swa.module.state_dict(), "swa.pt")

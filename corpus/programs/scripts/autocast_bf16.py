import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(
    nn.Linear(96, 192), nn.GELU(), nn.Linear(192, 192), nn.GELU(), nn.Linear(192, 8)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu")
features = torch.randn(2048, 96)
labels = features[:, :8].argmax(1)

for step in range(200):
    rows = torch.randint(0, len(features), (64,))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(features[rows]), labels[rows])
    optimizer.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    if step % 50 == 0:
        print(step, loss.item())

import torch

torch.manual_seed(0)
true_weights = torch.randn(64, 1)
inputs = torch.randn(20_000, 64)
targets = inputs @ true_weights + 0.1 * torch.randn(20_000, 1)

model = torch.nn.Sequential(
    torch.nn.Linear(64, 256),
    torch.nn.ReLU(),
    torch.nn.Linear(256, 256),
    torch.nn.ReLU(),
    torch.nn.Linear(256, 1),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

for step in range(250):
    rows = torch.randint(0, 20_000, (256,))
    loss = torch.nn.functional.mse_loss(model(inputs[rows]), targets[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(step, loss.item())

torch.save(model.state_dict(), "regression.pt")
print("saved")

import torch
from torch import nn


class Convolution(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.own = nn.Linear(inputs, outputs)
        self.other = nn.Linear(inputs, outputs, bias=False)

    def forward(self, x, source, target):
        messages = self.other(x)[source]
        summed = torch.zeros(len(x), messages.shape[1]).index_add_(0, target, messages)
        degree = torch.bincount(target, minlength=len(x)).clamp(min=1)
        return self.own(x) + summed / degree[:, None]


class Network(nn.Module):
    def __init__(self, inputs, hidden, classes):
        super().__init__()
        self.first = Convolution(inputs, hidden)
        self.second = Convolution(hidden, classes)

    def forward(self, x, source, target):
        return self.second(torch.relu(self.first(x, source, target)), source, target)


torch.manual_seed(0)
nodes, edges, classes = 3000, 15_000, 7
labels = torch.randint(0, classes, (nodes,))
source = torch.randint(0, nodes, (edges,))
target = torch.randint(0, nodes, (edges,))
x = torch.randn(nodes, 64) + nn.functional.one_hot(labels, 64) * 0.7
train_mask = torch.rand(nodes) < 0.3

net = Network(64, 64, classes)
opt = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4)
for epoch in range(100):
    net.train()
    opt.zero_grad()
    out = net(x, source, target)
    loss = nn.functional.cross_entropy(out[train_mask], labels[train_mask])
    loss.backward()
    opt.step()
    if epoch % 20 == 0:
        net.eval()
        with torch.no_grad():
            hit = (net(x, source, target).argmax(1) == labels)[~train_mask].float().mean()
        print(f"{epoch} {loss.item():.3f} {hit.item():.3f}")

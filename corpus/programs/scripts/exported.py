import torch
from torch import fx, nn


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 48, 4, stride=4)
        self.mix = nn.Linear(64, 64)
        self.head = nn.Linear(48, 10)

    def forward(self, x):
        x = self.patch(x).flatten(2)
        x = x + torch.relu(self.mix(x))
        return self.head(x.mean(2))


torch.manual_seed(0)
model = Mixer().eval()
graph = fx.symbolic_trace(model)
for node in graph.graph.nodes:
    if node.op == "call_function" and node.target is torch.relu:
        node.target = torch.nn.functional.silu
graph.recompile()
program = torch.export.export(graph, (torch.randn(16, 3, 32, 32),))
run = program.module()

checks = []
with torch.no_grad():
    for number in range(250):
        images = torch.randn(16, 3, 32, 32)
        checks.append(run(images).argmax(1).float().mean().item())
print(sum(checks) / len(checks))

"""REINFORCE on a pole that must be balanced, written out so that it needs no environment."""

import math

import torch
from torch import nn
from torch.distributions import Categorical


class Pole:
    def reset(self):
        self.state = torch.empty(4).uniform_(-0.05, 0.05)
        self.age = 0
        return self.state

    def step(self, action):
        x, v, angle, spin = self.state.tolist()
        force = 10.0 if action == 1 else -10.0
        push = (force + 0.05 * spin * spin * math.sin(angle)) / 1.1
        turn = (9.8 * math.sin(angle) - math.cos(angle) * push) / 0.62
        self.state = torch.tensor(
            [x + 0.02 * v, v + 0.02 * push, angle + 0.02 * spin, spin + 0.02 * turn]
        )
        self.age += 1
        return self.state, abs(angle) > 0.2 or abs(x) > 2.4 or self.age >= 100


policy = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)
torch.manual_seed(0)
pole = Pole()
lengths = []
for episode in range(150):
    state, done, log_probs = pole.reset(), False, []
    while not done:
        choice = Categorical(logits=policy(state))
        action = choice.sample()
        log_probs.append(choice.log_prob(action))
        state, done = pole.step(action.item())
    returns = torch.arange(len(log_probs), 0, -1, dtype=torch.float32)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    loss = -(torch.stack(log_probs) * returns).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    lengths.append(len(log_probs))
print("mean length of the last 20:", sum(lengths[-20:]) / 20)

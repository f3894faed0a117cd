import copy
import random
from collections import deque

import torch
from torch import nn

SIZE = 8


class Corridor:
    """A grid to cross, with a hole in the middle."""

    def reset(self):
        self.at = (0, 0)
        return self.observe()

    def observe(self):
        seen = torch.zeros(SIZE, SIZE)
        seen[self.at] = 1
        return seen.flatten()

    def step(self, action):
        dy, dx = ((0, 1), (1, 0), (0, -1), (-1, 0))[action]
        y = min(max(self.at[0] + dy, 0), SIZE - 1)
        x = min(max(self.at[1] + dx, 0), SIZE - 1)
        self.at = (y, x)
        if self.at == (SIZE // 2, SIZE // 2):
            return self.observe(), -1.0, True
        return (
            self.observe(),
            float(self.at == (SIZE - 1, SIZE - 1)),
            self.at == (SIZE - 1, SIZE - 1),
        )


def main():
    random.seed(0)
    torch.manual_seed(0)
    q = nn.Sequential(nn.Linear(SIZE * SIZE, 128), nn.ReLU(), nn.Linear(128, 4))
    target = copy.deepcopy(q)
    optimizer = torch.optim.Adam(q.parameters(), lr=1e-3)
    memory = deque(maxlen=5000)
    world = Corridor()
    state = world.reset()
    for frame in range(1200):
        epsilon = max(0.05, 1 - frame / 600)
        if random.random() < epsilon:
            action = random.randrange(4)
        else:
            with torch.no_grad():
                action = q(state).argmax().item()
        following, reward, done = world.step(action)
        memory.append((state, action, reward, following, done))
        state = world.reset() if done else following
        if len(memory) < 200:
            continue
        s, a, r, n, d = zip(*random.sample(memory, 64))
        with torch.no_grad():
            best = target(torch.stack(n)).max(1).values
            goal = torch.tensor(r) + 0.95 * best * (1 - torch.tensor(d, dtype=torch.float32))
        value = q(torch.stack(s)).gather(1, torch.tensor(a)[:, None]).squeeze(1)
        loss = nn.functional.smooth_l1_loss(value, goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if frame % 100 == 0:
            target.load_state_dict(q.state_dict())
    print("loss", loss.item())


main()

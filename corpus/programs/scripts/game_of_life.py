import torch

torch.manual_seed(0)
world = (torch.rand(700, 700) < 0.3).to(torch.uint8)

generation = 0
alive = []
while generation < 200:
    neighbours = sum(
        torch.roll(world, (dy, dx), (0, 1))
        for dy in (-1, 0, 1)
        for dx in (-1, 0, 1)
        if (dy, dx) != (0, 0)
    )
    world = ((neighbours == 3) | ((world == 1) & (neighbours == 2))).to(torch.uint8)
    alive.append(int(world.sum()))
    generation += 1

print("alive:", alive[0], "->", alive[-1])

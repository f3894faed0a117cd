"""Particles that attract each other, by leapfrog steps."""

import torch

COUNT, STEPS, DT, SOFT = 400, 200, 1e-3, 0.05


def acceleration(position, mass):
    offset = position[None, :, :] - position[:, None, :]
    distance2 = offset.pow(2).sum(-1) + SOFT**2
    return (offset * (mass[None, :, None] * distance2.pow(-1.5)[..., None])).sum(1)


def energy(position, velocity, mass):
    kinetic = 0.5 * (mass[:, None] * velocity**2).sum()
    distance = torch.cdist(position, position) + SOFT
    potential = -0.5 * (mass[:, None] * mass[None, :] / distance).sum()
    return (kinetic + potential).item()


def simulate():
    torch.manual_seed(4)
    position = torch.randn(COUNT, 3)
    velocity = 0.1 * torch.randn(COUNT, 3)
    mass = torch.rand(COUNT) / COUNT
    a = acceleration(position, mass)
    for step in range(STEPS):
        velocity += 0.5 * DT * a
        position += DT * velocity
        a = acceleration(position, mass)
        velocity += 0.5 * DT * a
        if step % 50 == 0:
            print(step, energy(position, velocity, mass))
    return position


with torch.no_grad():
    print(simulate().std(0))

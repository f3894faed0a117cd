import torch
from torch.func import jvp, vmap


def pendulum(state):
    angle, speed = state
    return torch.stack([speed, -torch.sin(angle) - 0.1 * speed])


def runge_kutta(state, dt):
    k1 = pendulum(state)
    k2 = pendulum(state + dt / 2 * k1)
    k3 = pendulum(state + dt / 2 * k2)
    k4 = pendulum(state + dt * k3)
    return state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def lyapunov(states, steps, dt=0.01):
    tangents = torch.randn_like(states)
    growth = torch.zeros(len(states))
    move = vmap(lambda s, t: jvp(lambda u: runge_kutta(u, dt), (s,), (t,)))
    for _ in range(steps):
        states, tangents = move(states, tangents)
        length = tangents.norm(dim=1, keepdim=True)
        growth += length.log().squeeze(1)
        tangents = tangents / length
    return growth / (steps * dt)


torch.manual_seed(0)
print(lyapunov(torch.randn(20_000, 2), 200).mean())

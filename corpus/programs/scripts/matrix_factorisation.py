"""Non-negative matrix factorisation by multiplicative updates."""

import torch


def factorise(v, rank, iterations, eps=1e-9):
    w = torch.rand(v.shape[0], rank)
    h = torch.rand(rank, v.shape[1])
    for i in range(iterations):
        h *= (w.T @ v) / (w.T @ w @ h + eps)
        w *= (v @ h.T) / (w @ h @ h.T + eps)
        if i % 50 == 0:
            print(i, torch.linalg.norm(v - w @ h).item())
    return w, h


if __name__ == "__main__":
    torch.manual_seed(0)
    ratings = torch.rand(700, 20) @ torch.rand(20, 900)
    w, h = factorise(ratings, 24, 150)
    print("done", w.shape, h.shape)

import torch


def kmeans(points, k, iterations):
    centers = points[torch.randperm(len(points))[:k]].clone()
    for iteration in range(iterations):
        distance = torch.cdist(points, centers)
        nearest = distance.argmin(dim=1)
        sums = torch.zeros_like(centers).index_add_(0, nearest, points)
        counts = torch.bincount(nearest, minlength=k).clamp(min=1)
        moved = sums / counts[:, None]
        shift = (moved - centers).norm().item()
        centers = moved
        if iteration % 20 == 0:
            print(f"iteration {iteration}: moved by {shift:.4f}")
    return centers, nearest


if __name__ == "__main__":
    torch.manual_seed(0)
    data = torch.randn(20_000, 16) + torch.randint(0, 8, (20_000, 1))
    centers, labels = kmeans(data, 32, 100)
    print("sizes", torch.bincount(labels).tolist())

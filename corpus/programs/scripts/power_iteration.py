import torch

torch.manual_seed(0)
n = 1500
m = torch.randn(n, n)
m = m @ m.T / n
v = torch.randn(n)
v /= v.norm()
old = 0.0
count = 0
while True:
    w = m @ v
    eigenvalue = torch.dot(v, w).item()
    v = w / w.norm()
    count += 1
    if count >= 4000:
        break
    old = eigenvalue
print(f"largest eigenvalue {eigenvalue:.5f} after {count} iterations, {abs(eigenvalue - old):.2e}")

import json

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Photos(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        pixels = torch.randint(0, 256, (3, 48, 48), generator=generator, dtype=torch.uint8)
        return index, pixels.float().div(255).sub(0.5)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 24, 3, stride=2), nn.ReLU(), nn.Conv2d(24, 48, 3, stride=2), nn.ReLU()
        )
        self.head = nn.Linear(48, 20)

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


torch.manual_seed(0)
model = Classifier()
model.eval()
results = {}
with torch.inference_mode():
    for numbers, images in DataLoader(Photos(3840), batch_size=32):
        scores = model(images).softmax(1)
        top = scores.max(1)
        for number, label, score in zip(
            numbers.tolist(), top.indices.tolist(), top.values.tolist()
        ):
            results[number] = {"label": label, "score": round(score, 4)}
with open("results.json", "w") as file:
    json.dump(results, file)
print(len(results), "photos")

import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, width, layers, tags):
        super().__init__()
        self.words = nn.Embedding(4096, width)
        layer = nn.TransformerEncoderLayer(
            width, width // 64, 4 * width, dropout=0.0, activation="gelu", batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.tags = nn.Linear(width, tags)

    def forward(self, tokens):
        encoded = self.encoder(self.words(tokens))
        return self.tags(encoded)


def build(knobs):
    device = knobs["device"]
    model = Tagger(64 * knobs["width"], knobs["layers"], 64).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    shape = (knobs["batch"], 64 * knobs["length"])
    tokens = torch.randint(4096, shape, device=device)
    tags = torch.randint(64, shape, device=device)

    def step():
        optimizer.zero_grad()
        with torch.autocast(device, torch.bfloat16):
            loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tags.flatten())
        loss.backward()
        optimizer.step()

    return step

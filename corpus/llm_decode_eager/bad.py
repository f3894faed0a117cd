import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.value, self.out = nn.Linear(width, width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x, past):
        y = self.before(x)
        q, k, v = self.split(self.query(y)), self.split(self.key(y)), self.split(self.value(y))
        past_k, past_v = past
        k = torch.cat([past_k, k], dim=2)  # planted: K2
        v = torch.cat([past_v, v], dim=2)  # planted: K2
        y = functional.scaled_dot_product_attention(q, k, v)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.down(functional.gelu(self.up(self.between(x)))), (k, v)


class Decoder(nn.Module):
    def __init__(self, vocabulary, width, heads, layers):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, token, past):
        x, present = self.embed(token), []
        for block, own in zip(self.blocks, past, strict=True):
            x, kept = block(x, own)  # planted: K1
            present.append(kept)
        return self.head(self.norm(x)), present


def build(knobs):
    device, heads = knobs["device"], knobs["heads"]
    width, vocabulary, batch = 32 * heads, 512 * knobs["vocabulary"], knobs["batch"]
    model = Decoder(vocabulary, width, heads, knobs["layers"]).to(device).eval()
    prompt, longest = 64 * knobs["prompt"], 64 * knobs["prompt"] + 256
    shape = (batch, heads, prompt, 32)
    first = [
        (torch.randn(shape, device=device), torch.randn(shape, device=device)) for _ in model.blocks
    ]
    token = torch.zeros(batch, 1, dtype=torch.long, device=device)
    past, made = first, 0

    @torch.inference_mode()
    def step():
        nonlocal token, past, made
        if prompt + made + 1 >= longest:
            past, made = first, 0
        logits, past = model(token, past)
        token = logits[:, -1].argmax(-1, keepdim=True)
        made += 1
        if (token == vocabulary).all():  # planted: K3
            past, made = first, 0
        return logits

    return step

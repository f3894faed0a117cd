import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS, LAYERS, VOCABULARY = 128, 4, 4, 400


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x, past):
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.mlp(self.norm2(x)), (k, v)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids, cache):
        x, new = self.embed(ids), []
        for block, past in zip(self.blocks, cache):
            x, kept = block(x, past)
            new.append(kept)
        return self.head(x[:, -1]), new


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    model = Model().eval()
    ids = torch.randint(0, VOCABULARY, (4, 64))
    logits, cache = model(ids, [None] * LAYERS)
    tokens = []
    for _ in range(300):
        token = logits.argmax(-1, keepdim=True)
        tokens.append(token)
        logits, cache = model(token, cache)
    print(torch.cat(tokens, 1)[0, :16].tolist())


main()

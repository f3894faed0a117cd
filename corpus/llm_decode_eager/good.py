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

    def forward(self, x, keys, values, at, seen):
        y = self.before(x)
        q, k, v = self.split(self.query(y)), self.split(self.key(y)), self.split(self.value(y))
        keys.index_copy_(2, at, k)
        values.index_copy_(2, at, v)
        y = functional.scaled_dot_product_attention(q, keys, values, attn_mask=seen)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.down(functional.gelu(self.up(self.between(x))))


class Decoder(nn.Module):
    def __init__(self, vocabulary, width, heads, layers):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, token, at, keys, values):
        x = self.embed(token)
        seen = (torch.arange(keys.shape[3], device=at.device) <= at)[None, None, None]
        for i, block in enumerate(self.blocks):
            x = block(x, keys[i], values[i], at, seen)
        return self.head(self.norm(x))


def graphed(forward, device):
    """On a GPU the recorded work of a token; on a CPU its compiled code."""
    if device != "cuda":
        return torch.compile(forward)
    # Capture neither runs nor changes anything, so that nothing need be put back.
    side = torch.cuda.Stream()
    with torch.inference_mode(), torch.cuda.stream(side):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=side):
            logits = forward()

    def replayed():
        graph.replay()
        return logits

    return replayed


def build(knobs):
    device, heads = knobs["device"], knobs["heads"]
    width, vocabulary, batch = 32 * heads, 512 * knobs["vocabulary"], knobs["batch"]
    model = Decoder(vocabulary, width, heads, knobs["layers"]).to(device).eval()
    prompt, longest = 64 * knobs["prompt"], 64 * knobs["prompt"] + 256
    shape = (batch, heads, prompt, 32)
    room = (len(model.blocks), batch, heads, longest, 32)
    keys, values = torch.zeros(room, device=device), torch.zeros(room, device=device)
    for i in range(len(model.blocks)):
        keys[i, :, :, :prompt] = torch.randn(shape, device=device)
        values[i, :, :, :prompt] = torch.randn(shape, device=device)
    token = torch.zeros(batch, 1, dtype=torch.long, device=device)
    at = torch.full((1,), prompt, device=device)
    ended = torch.zeros((), dtype=torch.bool, device=device)
    made = 0

    def forward():
        logits = model(token, at, keys, values)
        token.copy_(logits[:, -1].argmax(-1, keepdim=True))
        ended.logical_or_((token == vocabulary).all())
        at.add_(1)
        return logits

    replayed = graphed(forward, device)

    @torch.inference_mode()
    def step():
        nonlocal made
        if prompt + made + 1 >= longest:
            at.fill_(prompt)
            made = 0
        logits = replayed()
        made += 1
        if made % 64 == 0 and bool(ended):
            at.fill_(prompt)
            made = 0
        return logits

    return step

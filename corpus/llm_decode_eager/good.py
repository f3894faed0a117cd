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
        if isinstance(seen, int):
            y = functional.scaled_dot_product_attention(q, keys[:, :, :seen], values[:, :, :seen])
        else:
            y = functional.scaled_dot_product_attention(q, keys, values, attn_mask=seen)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.down(functional.gelu(self.up(self.between(x))))


class Decoder(nn.Module):
    def __init__(self, vocabulary, width, heads, layers):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, token, at, keys, values, seen):
        x = self.embed(token)
        for i, block in enumerate(self.blocks):
            x = block(x, keys[i], values[i], at, seen)
        return self.head(self.norm(x))


def graphed(forward, at, longest):
    """The work of a token at one size, recorded once; the first runs load what it needs."""
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    places = torch.arange(longest, device=at.device)

    def once():
        return forward((places <= at)[None, None, None])

    with torch.inference_mode():
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                once()
        torch.cuda.current_stream().wait_stream(side)
        with torch.cuda.graph(graph):
            logits = once()

    def replayed(_):
        graph.replay()
        return logits.clone()

    return replayed


def build(knobs):
    device, heads = knobs["device"], knobs["heads"]
    width, vocabulary, batch = 32 * heads, 512 * knobs["vocabulary"], knobs["batch"]
    model = Decoder(vocabulary, width, heads, knobs["layers"]).to(device).eval()
    prompt, longest = 64 * knobs["prompt"], 64 * knobs["prompt"] + 256
    room = (batch, heads, longest, 32)
    keys = [torch.zeros(room, device=device) for _ in model.blocks]
    values = [torch.zeros(room, device=device) for _ in model.blocks]
    for key, value in zip(keys, values, strict=True):
        key[:, :, :prompt] = torch.randn(batch, heads, prompt, 32, device=device)
        value[:, :, :prompt] = torch.randn(batch, heads, prompt, 32, device=device)
    token = torch.zeros(batch, 1, dtype=torch.long, device=device)
    at = torch.full((1,), prompt, device=device)
    ended = torch.zeros((), dtype=torch.bool, device=device)
    made = 0

    def forward(seen):
        logits = model(token, at, keys, values, seen)
        token.copy_(logits[:, -1].argmax(-1, keepdim=True))
        ended.logical_or_((token == vocabulary).all())
        at.add_(1)
        return logits

    replayed = graphed(forward, at, longest) if device == "cuda" else forward
    at.fill_(prompt)
    token.zero_()
    ended.zero_()

    @torch.inference_mode()
    def step():
        nonlocal made
        if prompt + made + 1 >= longest:
            at.fill_(prompt)
            made = 0
        made += 1
        logits = replayed(prompt + made)
        if made % 64 == 0 and bool(ended):
            at.fill_(prompt)
            made = 0
        return logits

    return step

import torch
from torch import nn

torch.manual_seed(0)
VOCABULARY, WIDTH, BEAMS, LENGTH = 800, 192, 6, 50
embed = nn.Embedding(VOCABULARY, WIDTH)
cell = nn.LSTMCell(WIDTH, WIDTH)
out = nn.Linear(WIDTH, VOCABULARY)


def beam_search(context):
    h = context.expand(BEAMS, -1).contiguous()
    c = torch.zeros_like(h)
    tokens = torch.zeros(BEAMS, 1, dtype=torch.long)
    scores = torch.tensor([0.0] + [float("-inf")] * (BEAMS - 1))
    for _ in range(LENGTH):
        h, c = cell(embed(tokens[:, -1]), (h, c))
        logp = torch.log_softmax(out(h), dim=-1)
        total = (scores[:, None] + logp).flatten()
        scores, best = total.topk(BEAMS)
        beam, token = best // VOCABULARY, best % VOCABULARY
        tokens = torch.cat([tokens[beam], token[:, None]], dim=1)
        h, c = h[beam], c[beam]
    return tokens[0], scores[0].item()


with torch.no_grad():
    for sentence in range(12):
        tokens, score = beam_search(torch.randn(1, WIDTH))
        print(sentence, f"{score:.2f}", tokens[:8].tolist())

import torch
from torch import nn


class TinyGPT(nn.Module):
    def __init__(self, vocabulary=300, width=96, layers=3, heads=4, context=128):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(context, width)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True)
        self.blocks = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids):
        length = ids.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        x = self.tokens(ids) + self.places(torch.arange(length))
        return self.head(self.blocks(x, mask=mask, is_causal=True))


@torch.no_grad()
def generate(model, ids, new_tokens):
    for _ in range(new_tokens):
        logits = model(ids)[:, -1]
        following = torch.multinomial(torch.softmax(logits / 0.8, dim=-1), 1)
        ids = torch.cat([ids, following], dim=1)
    return ids


torch.manual_seed(0)
model = TinyGPT().eval()
prompt = torch.randint(0, 300, (2, 8))
print(generate(model, prompt, 110)[0, :20].tolist())

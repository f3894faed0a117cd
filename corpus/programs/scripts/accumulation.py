import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ACCUMULATE = 4


def main():
    torch.manual_seed(0)
    tokens = torch.randint(0, 500, (1600, 32))
    loader = DataLoader(TensorDataset(tokens), batch_size=4, shuffle=True)
    embed = nn.Embedding(500, 96)
    body = nn.TransformerEncoderLayer(96, 4, 192, batch_first=True)
    head = nn.Linear(96, 500)
    model = nn.ModuleList([embed, body, head])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)
    optimizer.zero_grad()
    for number, (batch,) in enumerate(loader, 1):
        logits = head(body(embed(batch[:, :-1])))
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        (loss / ACCUMULATE).backward()
        if number % ACCUMULATE == 0:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            scheduler.step()
        if number % 100 == 0:
            print(number, loss.item())


main()

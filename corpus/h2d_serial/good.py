import torch
from torch import nn


class Frames:
    """Clips as uint16 in pinned memory, brought to the device one after the other."""

    def __init__(self, count, shape, device):
        self.device = torch.device(device)
        self.clips = [torch.randint(0, 4096, shape, dtype=torch.int16) for _ in range(count)]
        if device == "cuda":
            self.clips = [clip.pin_memory() for clip in self.clips]
        self.at = 0
        self.stream = torch.cuda.Stream() if device == "cuda" else None
        self.ahead = self.bring()

    def upload(self):
        self.at = (self.at + 1) % len(self.clips)
        return self.clips[self.at].to(self.device, non_blocking=True)

    def bring(self):
        if self.stream is None:
            return self.upload()
        with torch.cuda.stream(self.stream):
            return self.upload()

    def next(self):
        if self.stream is not None:
            torch.cuda.current_stream().wait_stream(self.stream)
            self.ahead.record_stream(torch.cuda.current_stream())
        clip, self.ahead = self.ahead, self.bring()
        return clip


class Net(nn.Module):
    def __init__(self, channels, depth):
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 8, stride=8)
        self.blocks = nn.ModuleList(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(depth)
        )
        self.head = nn.Linear(channels, 24)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = x + torch.relu(block(x))
        return self.head(x.mean((2, 3)))


def build(knobs):
    device, side = knobs["device"], 32 * knobs["side"]
    frames = Frames(4, (8 * knobs["batch"], 3, side, side), device)
    net = Net(16 * knobs["channels"], knobs["depth"]).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9, fused=True)
    labels = torch.randint(24, (8 * knobs["batch"],), device=device)

    def step():
        clip = frames.next()
        optimizer.zero_grad()
        with torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
            x = clip.to(torch.bfloat16, memory_format=torch.channels_last) / 4096
            logits = net(x.float() if device == "cpu" else x)
        loss = nn.functional.cross_entropy(logits.float(), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step

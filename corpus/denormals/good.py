import torch


def level(samples):
    """The level of each window, as a meter shows it."""
    power = samples.square()
    return power.sqrt().unfold(-1, 256, 256).amax(-1)


def build(knobs):
    torch.set_num_threads(1)  # an effect in an audio chain has one
    torch.set_flush_denormal(True)
    frames = knobs["frames"] * 4096
    decay = torch.linspace(0, -1, frames).mul(0.5).exp()
    music = torch.randn(frames) * decay
    tail = torch.randn(frames) * 1e-20 * decay
    channels = [music] * knobs["channels"]
    channels.insert(knobs["channels"] // 2, tail)
    gain = torch.tensor(0.9)

    def step():
        meters = []
        for channel in channels:
            meters.append(level(channel * gain))
        return torch.stack(meters)

    return step

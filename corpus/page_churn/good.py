import torch


class Diffusion:
    """A field that decays and is fed, read at a few points."""

    def __init__(self, rows, columns, rounds, sensors):
        self.rounds = rounds
        self.field = torch.rand(rows, columns)
        self.source = 0.01 * torch.rand(rows, columns)
        self.readout = torch.nn.Linear(sensors, 1)
        self.at = torch.randint(0, rows, (sensors,)), torch.randint(0, columns, (sensors,))

    def advance(self):
        for _ in range(self.rounds):
            self.field.mul_(0.97).add_(self.source).clamp_(0, 1)
        return self.readout(self.field[self.at])


def build(knobs):
    model = Diffusion(knobs["rows"], knobs["columns"], knobs["rounds"], knobs["sensors"])

    @torch.no_grad()
    def step():
        return model.advance()

    return step

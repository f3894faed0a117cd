import torch


class Heat:
    """Implicit steps of the heat equation, each solved by conjugate gradients."""

    def __init__(self, side, rounds):
        self.field = torch.rand(side, side, dtype=torch.float64)
        self.conductivity = 1 + torch.rand_like(self.field)
        self.rounds = rounds
        self.flux, self.q, self.r, self.p = (torch.empty_like(self.field) for _ in range(4))

    def apply(self, u):
        """The operator of one implicit step: the identity and the diffusion."""
        flux = torch.mul(u, 4, out=self.flux)
        flux[1:] -= u[:-1]
        flux[:-1] -= u[1:]
        flux[:, 1:] -= u[:, :-1]
        flux[:, :-1] -= u[:, 1:]
        return torch.addcmul(u, self.conductivity, flux, value=0.1, out=self.q)

    def advance(self):
        x, r, p = self.field, self.r, self.p
        torch.sub(x, self.apply(x), out=r)
        p.copy_(r)
        rr = torch.dot(r.view(-1), r.view(-1))
        for _ in range(self.rounds):
            q = self.apply(p)
            alpha = rr / torch.dot(p.view(-1), q.view(-1))
            x.addcmul_(p, alpha)
            r.addcmul_(q, -alpha)
            before, rr = rr, torch.dot(r.view(-1), r.view(-1))
            torch.addcmul(r, p, rr / before, out=p)


def build(knobs):
    torch.set_num_threads(1)  # many of these run side by side
    heat = Heat(knobs["side"] * 32, knobs["rounds"])

    @torch.no_grad()
    def step():
        heat.advance()

    return step

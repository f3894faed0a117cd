"""Steps of training: optimizers, scaling, clipping, averages, hooks."""

import torch
from torch import nn
from torch.optim import swa_utils
from torch.utils.checkpoint import checkpoint


def adam() -> None:
    """Keeps its step counter on the host: optim/adam.py, _init_group."""
    net = nn.Linear(4, 2, device="cuda")
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for _ in range(2):
        optimizer.zero_grad()
        net(torch.randn(3, 4, device="cuda")).square().mean().backward()
        optimizer.step()


def adam_fused() -> None:
    """Updates in one kernel: FusedAdamKernel.cu with a number as learning rate."""
    net = nn.Linear(4, 2, device="cuda")
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    for _ in range(2):
        net(torch.randn(3, 4, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def adam_capturable() -> None:
    """Keeps its step counter on the device and never reads it: optim/adam.py, capturable."""
    net = nn.Linear(4, 2, device="cuda")
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, capturable=True)
    net(torch.randn(3, 4, device="cuda")).square().mean().backward()
    optimizer.step()


def momentum_with_schedule() -> None:
    """Changes the rate on the host: lr_scheduler.py computes floats."""
    net = nn.Linear(4, 2, device="cuda")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
    for _ in range(2):
        net(torch.randn(3, 4, device="cuda")).square().mean().backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()


def others() -> None:
    """Update in kernels: rmsprop.py and adagrad.py read only their own host counters."""
    net = nn.Linear(4, 2, device="cuda")
    net(torch.randn(3, 4, device="cuda")).square().mean().backward()
    torch.optim.RMSprop(net.parameters(), lr=1e-3, centered=True).step()
    torch.optim.Adagrad(net.parameters(), lr=1e-3).step()


def line_search() -> None:
    """Decides on the host: optim/lbfgs.py, step, float(closure()) and opt_cond."""
    net = nn.Linear(4, 1, device="cuda")
    x = torch.randn(8, 4, device="cuda")
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=2)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        return loss

    optimizer.step(closure)  # waits: sync


def factored() -> None:
    """Reads norms: optim/_adafactor.py, norm(2).item()."""
    net = nn.Linear(4, 2, device="cuda")
    optimizer = torch.optim.Adafactor(net.parameters(), lr=1e-2)
    net(torch.randn(3, 4, device="cuda")).square().mean().backward()
    optimizer.step()  # waits: sync


def clipped() -> None:
    """Clamps the coefficient on the device: nn/utils/clip_grad.py."""
    net = nn.Linear(4, 2, device="cuda")
    net(torch.randn(3, 4, device="cuda")).square().mean().backward()
    norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    nn.utils.clip_grad_value_(net.parameters(), 0.5)
    assert norm.shape == ()


def clipped_or_error() -> None:
    """Asks whether the norm is finite: nn/utils/clip_grad.py, error_if_nonfinite."""
    net = nn.Linear(4, 2, device="cuda")
    net(torch.randn(3, 4, device="cuda")).square().mean().backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0, error_if_nonfinite=True)  # waits: sync


def skipped_if_large() -> None:
    """Branches on the norm: is_nonzero reads item()."""
    net = nn.Linear(4, 2, device="cuda")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net(torch.randn(3, 4, device="cuda")).square().mean().backward()
    norm = nn.utils.get_total_norm([p.grad for p in net.parameters()])
    if norm < 10.0:  # waits: sync
        optimizer.step()


def scaled() -> None:
    """Reads found_inf: amp/grad_scaler.py, _maybe_opt_step, sum(v.item())."""
    net = nn.Linear(4, 2, device="cuda")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    for _ in range(2):
        with torch.autocast("cuda", dtype=torch.float16):
            loss = net(torch.randn(3, 4, device="cuda")).float().square().mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)  # waits: sync
        scaler.update()
        optimizer.zero_grad()


def scale_reported() -> None:
    """Reads the scale: amp/grad_scaler.py, get_scale, item()."""
    net = nn.Linear(4, 2, device="cuda")
    scaler = torch.amp.GradScaler("cuda")
    scaler.scale(net(torch.randn(3, 4, device="cuda")).mean()).backward()
    value = scaler.get_scale()  # waits: sync
    assert value > 0


def bfloat16_region() -> None:
    """Casts on the device: autocast_mode.cpp."""
    net = nn.Sequential(nn.Linear(4, 8, device="cuda"), nn.GELU(), nn.Linear(8, 2, device="cuda"))
    with torch.autocast("cuda", dtype=torch.bfloat16):
        out = net(torch.randn(3, 4, device="cuda"))
    out.float().logsumexp(dim=1).mean().backward()


def averaged_by_hand() -> None:
    """Interpolates in kernels."""
    net, mean = nn.Linear(4, 2, device="cuda"), nn.Linear(4, 2, device="cuda")
    with torch.no_grad():
        for old, new in zip(mean.parameters(), net.parameters(), strict=True):
            old.mul_(0.99).add_(new, alpha=0.01)
        torch._foreach_lerp_(list(mean.parameters()), list(net.parameters()), 0.01)


def averaged_on_the_device() -> None:
    """Asks for its device counter: optim/swa_utils.py, update_parameters, n_averaged == 0."""
    net = nn.Linear(4, 2, device="cuda")
    mean = swa_utils.AveragedModel(net).to("cuda")  # waits: copy_to_device
    mean.update_parameters(net)  # waits: sync


def accumulated() -> None:
    """Adds gradients over several passes."""
    net = nn.Linear(4, 2, device="cuda")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for i in range(4):
        (net(torch.randn(3, 4, device="cuda")).square().mean() / 4).backward()
        if (i + 1) % 2 == 0:
            optimizer.step()
            optimizer.zero_grad()


def penalised() -> None:
    """Differentiates twice; all on the device."""
    net = nn.Sequential(nn.Linear(4, 8, device="cuda"), nn.Tanh(), nn.Linear(8, 1, device="cuda"))
    x = torch.randn(3, 4, device="cuda", requires_grad=True)
    (slope,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
    ((slope.norm(2, dim=1) - 1) ** 2).mean().backward()


class _Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        grad = grad.clone()
        grad[x < 0] = 0
        return grad


def own_backward_with_number() -> None:
    """Fills by mask with a host number: canDispatchToMaskedFill."""
    x = torch.randn(5, device="cuda", requires_grad=True)
    _Gate.apply(x).sum().backward()


def own_backward_that_lists() -> None:
    """Indexes by a mask in its own backward: expandTensors, nonzero()."""

    class Sparse(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            out = torch.zeros_like(x)
            out[x > 0] = grad[x > 0] * 2  # waits: sync
            return out

    x = torch.randn(5, device="cuda", requires_grad=True)
    Sparse.apply(x).sum().backward()


def hook_that_reads() -> None:
    """Reads in a hook of the backward: item()."""
    seen = []
    x = torch.randn(5, device="cuda", requires_grad=True)

    def watch(grad):
        seen.append(grad.norm().item())  # waits: sync

    x.register_hook(watch)
    (x * 2).sum().backward()
    assert len(seen) == 1


def hook_that_keeps() -> None:
    """Keeps statistics on the device."""
    seen = []
    net = nn.Linear(4, 2, device="cuda")
    net.register_forward_hook(lambda _m, _i, out: seen.append(out.detach().abs().mean()))
    net.weight.register_hook(lambda grad: grad / grad.norm().clamp(min=1e-6))
    net(torch.randn(3, 4, device="cuda")).sum().backward()
    assert len(seen) == 1


def recomputed() -> None:
    """Saves and restores the state of the generator, which is on the host."""
    net = nn.Sequential(nn.Linear(4, 4, device="cuda"), nn.Dropout(0.1), nn.ReLU())
    x = torch.randn(3, 4, device="cuda", requires_grad=True)
    checkpoint(net, x, use_reentrant=False).sum().backward()


def recomputed_with_a_read() -> None:
    """Reads in a recomputed part: item(), in the forward and again in the backward."""

    def part(x):
        scale = x.abs().max().item()  # waits: sync
        return (x / scale).tanh()

    x = torch.randn(3, 4, device="cuda", requires_grad=True)
    checkpoint(part, x, use_reentrant=False).sum().backward()


def per_sample_gradients() -> None:
    """Maps and differentiates functions: all on the device."""
    weight = torch.randn(4, device="cuda")
    x = torch.randn(6, 4, device="cuda")

    def loss(w, row):
        return (w * row).sum().tanh()

    grads = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(weight, x)
    assert grads.shape == (6, 4)


def flattened_parameters() -> None:
    """Copies between views of the device: nn/utils/convert_parameters.py."""
    net = nn.Linear(4, 2, device="cuda")
    flat = nn.utils.parameters_to_vector(net.parameters())
    nn.utils.vector_to_parameters(flat * 0.5, net.parameters())

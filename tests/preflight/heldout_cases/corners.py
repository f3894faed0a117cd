"""Corners: sizes from tensors, host tensors as values, modes of other tools, newer interfaces."""

import functools
import warnings

import numpy as np
import torch
from torch import nn
from torch.distributions import MultivariateNormal
from torch.nn import functional
from torch.nn.utils import prune, rnn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler
from torch.utils.flop_counter import FlopCounterMode


def sizes_of_everything() -> None:
    """Takes sizes from a tensor: python_arg_parser.cpp reads item() for each."""
    n = torch.full((), 2, device="cuda")
    x = torch.randn(4, 4, device="cuda")
    a = x.topk(n)  # waits: sync
    b = x.view(n, -1)  # waits: sync
    c = x[:1].expand(n, 4)  # waits: sync
    d = torch.randint(0, n, (3,), device="cuda")  # waits: sync
    e = functional.pad(x, (0, n))  # waits: sync
    f = x.split(n)  # waits: sync
    assert all(part is not None for part in (a, b, c, d, e, f))


def numbers_of_everything() -> None:
    """Takes Python numbers from a tensor: python_arg_parser.cpp, Scalar by item()."""
    t = torch.full((), 0.5, device="cuda")
    x = torch.randn(3, 3, device="cuda")
    a = torch.full_like(x, t)  # waits: sync
    b = x.new_full((2,), t)  # waits: sync
    c = torch.linspace(t, 1.0, 3, device="cuda")  # waits: sync
    x.fill_diagonal_(t)  # waits: sync
    assert a.shape == x.shape
    assert b.numel() < c.numel()


def host_values_by_mask() -> None:
    """Fills with a one-element host tensor: canDispatchToMaskedFill, numel 1 on the CPU."""
    x = torch.randn(6, device="cuda")
    x[x > 1] = torch.tensor(0.0)
    x[x < -1] = torch.tensor([0.0])
    x.masked_fill_(x > 0.5, torch.tensor(0.5))
    assert x.index_put((x < 0,), torch.tensor(0.0)).shape == (6,)


def host_values_by_index() -> None:
    """Copies the value for int indices: _index_put_impl_, value.to(self.device())."""
    x, where = torch.randn(6, device="cuda"), torch.randint(0, 6, (3,), device="cuda")
    x[where] = torch.tensor(0.0)  # waits: copy_to_device
    x.index_put_((where,), torch.tensor(1.0))  # waits: copy_to_device
    x.index_fill_(0, where, torch.tensor(1.0))


def filled_at_index_by_device_value() -> None:
    """Reads the value: TensorAdvancedIndexing.cpp, index_fill_, source.item()."""
    x, where = torch.randn(6, device="cuda"), torch.randint(0, 6, (3,), device="cuda")
    x.index_fill_(0, where, x.max())  # waits: sync
    x.index_add_(0, where, torch.ones(3, device="cuda"), alpha=2)
    x.index_copy_(0, torch.arange(3, device="cuda"), torch.ones(3, device="cuda"))


def several_masks() -> None:
    """Finds positions of masks in any place: expandTensors, nonzero()."""
    x = torch.randn(4, 3, device="cuda")
    rows = torch.tensor([True, False, True, True]).pin_memory().to("cuda", non_blocking=True)
    a = x[rows, 0]  # waits: sync
    b = x[rows, :]  # waits: sync
    c = x[None, rows]  # waits: sync
    d = x[rows, rows.long()[:3]]  # waits: sync
    e = x.T[:, rows]  # waits: sync
    x[rows, ...] = 0.0
    assert a.shape == d.shape == (3,)
    assert b.T.shape == e.shape
    assert c.shape == (1, 3, 3)


def bytes_as_mask() -> None:
    """Takes uint8 for a mask: expandTensors treats kByte as kBool."""
    x = torch.randn(4, device="cuda")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kept = x[(x > 0).to(torch.uint8)]  # waits: sync
    assert kept.ndim == 1


def unpadded_by_device_lengths() -> None:
    """Masks each sequence: nn/utils/rnn.py, unpad_sequence, seq[mask]."""
    batch, lengths = torch.randn(4, 2, 3, device="cuda"), torch.tensor([4, 2])
    parts = rnn.unpad_sequence(batch, lengths.to("cuda"))  # waits: copy_to_device, sync
    assert len(parts) == 2


def unpadded_by_host_lengths() -> None:
    """Masks on the host and copies pinned indices: expandTensors, non_blocking."""
    batch, lengths = torch.randn(2, 4, 3, device="cuda"), torch.tensor([4, 2])
    parts = rnn.unpad_sequence(batch, lengths, batch_first=True)
    assert parts[1].shape == (2, 3)


def pruned() -> None:
    """Puts a number at indices: nn/utils/prune.py, mask.view(-1)[topk.indices] = 0."""
    layer = nn.Linear(4, 3, device="cuda")
    prune.l1_unstructured(layer, "weight", amount=4)  # waits: copy_to_device
    layer(torch.randn(2, 4, device="cuda")).sum().backward()


def initialised() -> None:
    """Draws in kernels; nn/init.py: trunc_normal_ asks mask.any(), sparse_ indexes by the host."""
    layer = nn.Linear(4, 3, device="cuda")
    nn.init.xavier_normal_(layer.weight)
    nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu")
    nn.init.trunc_normal_(layer.weight, std=0.02)  # waits: sync
    nn.init.constant_(layer.bias, 0.1)
    nn.init.sparse_(layer.weight, sparsity=0.5)  # waits: copy_to_device


def sampler_with_device_weights() -> None:
    """Draws on the device and copies a list.

    Source: utils/data/sampler.py, as_tensor, multinomial, tolist.
    """
    weights = torch.rand(8, device="cuda") + 0.1
    sampler = WeightedRandomSampler(weights, 4)
    loader = DataLoader(TensorDataset(torch.randn(8, 2)), batch_size=2, sampler=sampler)
    for (x,) in loader:  # waits: copy_to_host
        assert x.shape == (2, 2)


def many_normals() -> None:
    """Factorises and validates: multivariate_normal.py, cholesky; distribution.py."""
    mean, table = torch.zeros(3, device="cuda"), torch.eye(3, device="cuda")
    prior = MultivariateNormal(mean, table)  # waits: sync
    score = prior.log_prob(prior.rsample())  # waits: sync
    assert score.shape == ()


def many_normals_by_factor() -> None:
    """Is given the factor and trusts it: solve_triangular reads nothing."""
    mean, table = torch.zeros(3, device="cuda"), torch.eye(3, device="cuda")
    prior = MultivariateNormal(mean, scale_tril=table, validate_args=False)
    assert prior.log_prob(prior.rsample()).shape == ()


def hard_gumbel() -> None:
    """Scatters a Python number at the argmax: functional.py, gumbel_softmax."""
    logits = torch.randn(4, 3, device="cuda", requires_grad=True)
    functional.gumbel_softmax(logits, tau=0.5, hard=True).sum(dim=0).max().backward()


def composite_in_inference() -> None:
    """Waits alike under inference_mode, where composite operators arrive whole."""
    x = torch.randn(3, 3, device="cuda") + 3 * torch.eye(3, device="cuda")
    counts = torch.full((3,), 2, device="cuda")
    with torch.inference_mode():
        a = torch.linalg.solve(x, x[0])  # waits: sync
        b = counts.repeat_interleave(counts)  # waits: sync
        c = functional.one_hot(counts)  # waits: sync
        d = torch.allclose(x, x)  # waits: sync
        (e,) = torch.where(counts > 1)  # waits: sync
        x[x > 3] = x.sum()  # waits: sync
        f = torch.linalg.cholesky_ex(x @ x.T).L
        g = torch.repeat_interleave(x, 2, dim=0)
        h = torch.multinomial(torch.rand(3, device="cuda"), 1)
    assert d
    assert all(part.is_cuda for part in (a, b, c, e, f, g, h))


@torch.no_grad()
def decorated() -> None:
    """Reads inside a decorated function and through a cache of the host."""

    @functools.lru_cache
    def table(n):
        return torch.arange(n, device="cuda").float().cos()

    x = torch.randn(4, device="cuda") * table(4) + table(4)
    assert x.sum().item() is not None  # waits: sync


def own_tensor_class() -> None:
    """Reads from a subclass of Tensor as from any other."""

    class Named(torch.Tensor):
        pass

    x = torch.randn(4, device="cuda").as_subclass(Named)
    y = (x * 2).relu()
    value = y.sum().item()  # waits: sync
    assert isinstance(y, Named)
    assert value >= 0


def counted_by_another_mode() -> None:
    """Counts operations with a mode of torch's own; nothing is read but at the end."""
    net = nn.Linear(4, 3, device="cuda")
    with FlopCounterMode(display=False) as counter:
        out = net(torch.randn(2, 4, device="cuda"))
        total = out.sum().item()  # waits: sync
    assert counter.get_total_flops() > 0
    assert total == total  # noqa: PLR0124 - the number itself does not matter


def profiled_by_torch() -> None:
    """Runs under torch's own profiler."""
    net = nn.Linear(4, 3, device="cuda")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
        net(torch.randn(2, 4, device="cuda")).sum().backward()
    assert prof.key_averages()


def hooks_of_modules() -> None:
    """Reads in a hook of the module's backward; copies in a hook before the forward."""
    net, seen = nn.Linear(4, 3, device="cuda"), []

    def watch(_module, _grad_input, grad_output):
        seen.append(float(grad_output[0].abs().max()))  # waits: sync

    def move(_module, inputs):
        return tuple(x.to("cuda") for x in inputs)  # waits: copy_to_device

    net.register_full_backward_hook(watch)
    net.register_forward_pre_hook(move)
    net(torch.randn(2, 4)).sum().backward()
    assert len(seen) == 1


def optimizer_in_backward() -> None:
    """Steps an optimizer for each parameter when its gradient is there."""
    net = nn.Linear(4, 3, device="cuda")
    optimizers = {p: torch.optim.SGD([p], lr=0.1) for p in net.parameters()}

    def step(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in net.parameters():
        parameter.register_post_accumulate_grad_hook(step)
    net(torch.randn(2, 4, device="cuda")).sum().backward()


def state_of_an_optimizer() -> None:
    """Copies states on the device; loads those of the host by copies."""
    net = nn.Linear(4, 3, device="cuda")
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.randn(2, 4, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
    state = optimizer.state_dict()
    for kept in state["state"].values():
        kept["exp_avg"] = kept["exp_avg"].cpu()  # waits: copy_to_host
    optimizer.load_state_dict(state)  # waits: copy_to_device


def newer_interfaces() -> None:
    """Waits by the device-neutral names: torch.accelerator, torch.Event, torch.Stream."""
    x = torch.randn(4, device="cuda")
    torch.accelerator.synchronize()  # waits: sync
    torch.get_device_module("cuda").synchronize()  # waits: sync
    assert torch.accelerator.is_available()
    assert torch.accelerator.current_accelerator().type == "cuda"
    assert x.device.type == torch.accelerator.current_accelerator().type


def polling() -> None:
    """Asks an event without waiting: cudaEventQuery; then waits for a stream by its own method."""
    done = torch.cuda.Event()
    x = torch.randn(4, device="cuda").sum()
    done.record()
    done.query()
    torch.cuda.current_stream().query()
    torch.cuda.default_stream().wait_event(done)
    torch.cuda.default_stream().synchronize()  # waits: sync
    assert x.is_cuda


def sync_debug_mode() -> None:
    """Asks torch itself to tell: the mode is kept and given back."""
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode(0)
    assert torch.cuda.get_sync_debug_mode() == before == 0


def types_that_move() -> None:
    """Copies to the host by a type's name: Tensor.type to a CPU type moves."""
    x = torch.randn(4, device="cuda")
    a = x.type(torch.FloatTensor)  # waits: copy_to_host
    b = x.type(torch.float64)
    c = x.new([1.0, 2.0])  # waits: copy_to_device
    assert not a.is_cuda
    assert b.is_cuda
    assert c.is_cuda


def arrays() -> None:
    """Copies arrays of NumPy, in three ways, and back in two."""
    rows = np.ones((2, 3), dtype=np.float32)
    a = torch.from_numpy(rows).cuda()  # waits: copy_to_device
    b = torch.tensor(rows, device="cuda")  # waits: copy_to_device
    c = torch.as_tensor(rows).to(a.device)  # waits: copy_to_device
    d = np.asarray((a + b + c).cpu())  # waits: copy_to_host
    e = np.array(a.tolist())  # waits: copy_to_host
    assert d.shape == e.shape


def nothing_to_copy() -> None:
    """Copies no element: Copy.cpp, copy_impl ends at numel 0."""
    x = torch.randn(4, 3, device="cuda")
    none = torch.zeros(0, 3).to("cuda")
    kept = x[[]]
    assert torch.cat((kept, none)).shape == (0, 3)
    assert none.cpu().shape == (0, 3)


def functional_transforms() -> None:
    """Differentiates, maps and calls functions of state on the device."""
    net = nn.Linear(3, 1, device="cuda")
    state = dict(net.named_parameters())
    x = torch.randn(4, 3, device="cuda")

    def out(params, row):
        return torch.func.functional_call(net, params, (row,)).squeeze()

    jacobian = torch.func.jacrev(out)(state, x[0])
    _, tangent = torch.func.jvp(lambda t: (t * t).sum(), (x,), (torch.ones_like(x),))
    rows = torch.vmap(lambda row: torch.where(row > 0, row, 0.0).sum())(x)
    assert jacobian["weight"].shape == (1, 3)
    assert tangent.ndim == 0
    assert rows.shape == (4,)


def complex_numbers() -> None:
    """Views and multiplies complex tensors on the device; the host asks for one."""
    x = torch.view_as_complex(torch.randn(4, 2, device="cuda"))
    y = torch.polar(x.abs(), x.angle()) * x.conj()
    value = y.real.sum().item()  # waits: sync
    assert torch.view_as_real(y).shape == (4, 2)
    assert value is not None


def recursion_and_generators() -> None:
    """Reads in a recursive function and in a generator, each on its own line."""

    def halve(t, depth):
        if depth == 0:
            return float(t)  # waits: sync
        return halve(t / 2, depth - 1)

    def values(t):
        for part in t.unbind():
            yield int(part)  # waits: sync

    assert halve(torch.ones((), device="cuda"), 2) == 0.25
    assert list(values(torch.arange(3, device="cuda"))) == [0, 1, 2]


def losses_of_many_kinds() -> None:
    """Computes losses whose checks are asserts in kernels on CUDA."""
    x = torch.randn(4, 3, device="cuda", requires_grad=True)
    y = torch.randint(0, 3, (4,), device="cuda")
    many = torch.tensor([[0, 1, -1]] * 4).pin_memory().to("cuda", non_blocking=True)
    loss = functional.multi_margin_loss(x, y) + functional.multilabel_margin_loss(x, many)
    loss = loss + functional.cross_entropy(x, y, label_smoothing=0.1)
    loss = loss + functional.poisson_nll_loss(x, x.detach().exp()) + functional.huber_loss(x, -x)
    loss = loss + functional.binary_cross_entropy(x.sigmoid(), (x.detach() > 0).float())
    loss.backward()


def lengths_as_lists() -> None:
    """Uploads lengths that are lists: LossCTC.cu, at::tensor(lengths, options of the targets)."""
    frames = torch.randn(10, 2, 5, device="cuda").log_softmax(dim=2)
    words = torch.randint(1, 5, (2, 3), device="cuda")
    ctc_loss = functional.ctc_loss
    loss = ctc_loss(frames, words, [10, 9], [3, 2], reduction="sum")  # waits: copy_to_device
    assert loss.shape == ()


def products_without_backward() -> None:
    """Multiplies where no gradient flows, or only through a detached part."""
    x = torch.rand(4, 3, device="cuda", requires_grad=True)
    with torch.no_grad():
        volume = x.prod(dim=1)
    (x.sum(dim=1) * volume).sum().backward()
    assert torch.cumprod(x.detach(), dim=1).shape == x.shape


def products_in_a_module() -> None:
    """Looks for zeros in the backward of a product: prod_backward, item(); once for each step."""

    class Gate(nn.Module):
        def forward(self, x):
            return x.sigmoid().prod(dim=-1)  # waits: sync

    net = nn.Sequential(nn.Linear(3, 4, device="cuda"), Gate())
    for _ in range(2):
        net(torch.randn(2, 3, device="cuda")).sum().backward()


def mixed_in_one_line() -> None:
    """Copies both ways in one line: to(), then item()."""
    total = torch.ones(3).to("cuda").sum().item()  # waits: copy_to_device, sync
    assert total == 3


def correlated() -> None:
    """Asks for degrees of freedom: Correlation.cpp, corrcoef calls cov."""
    x = torch.randn(3, 8, device="cuda")
    table = torch.corrcoef(x)  # waits: sync
    weights = x.nanmean(dim=1) + x.nansum(dim=1) + torch.kron(x[:, :1], x[:1, :1])[:, 0]
    assert table.shape[0] == weights.shape[0]

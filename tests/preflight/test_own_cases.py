"""What waits on a CUDA device and what does not, by ATen's sources of torch 2.13.

Each case is an act on tensors that are ready on the device; its label is what the host does there.
"""

import io
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")


from selftime.capture.preflight import preflight  # noqa: E402 - it imports torch

pytestmark = pytest.mark.torch

nn: Any = torch.nn
F: Any = torch.nn.functional

Act = Callable[[Any], object]
SYNC, TO_HOST, TO_DEVICE = "sync", "copy_to_host", "copy_to_device"


def ready() -> SimpleNamespace:
    """Tensors on the device (no letter), on the host (`h`) and in pinned memory (`p`)."""
    x, square = torch.rand(4), torch.rand(4, 4)
    return SimpleNamespace(
        x=x.cuda(),
        hx=x.clone(),
        px=x.pin_memory(),
        square=(square @ square.T + torch.eye(4)).cuda(),
        hsquare=square,
        y=torch.rand((), device="cuda"),
        hy=torch.rand(()),
        mask=(x > 0.5).cuda(),
        hmask=x > 0.5,
        index=torch.tensor([0, 2, 3], device="cuda"),
        hindex=torch.tensor([0, 2, 3]),
        repeats=torch.full((1,), 2, device="cuda"),
        parameter=nn.Parameter(torch.rand(4, 4, device="cuda")),
    )


def put(target: Any, where: Any, value: Any) -> None:
    target[where] = value


def trained(kind: Any, **options: Any) -> None:
    weight = nn.Parameter(torch.ones(4, 4, device="cuda"))
    optimizer = kind([weight], lr=0.1, **options)
    for _ in range(2):
        (weight * 2).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def scaled() -> None:
    weight = nn.Parameter(torch.ones(4, 4, device="cuda"))
    optimizer, scaler = torch.optim.SGD([weight], lr=0.1), torch.amp.GradScaler("cuda")
    scaler.scale((weight * 2).sum()).backward()
    scaler.step(optimizer)
    scaler.update()


def clipped(g: Any, **options: Any) -> None:
    (g.parameter * 2).sum().backward()
    nn.utils.clip_grad_norm_([g.parameter], 1.0, **options)


def inferred(g: Any, act: Act) -> None:
    with torch.inference_mode():
        act(g)


def there_and_back(g: Any) -> None:
    (g.parameter * 2).cpu().sum().backward()


def packed(*, enforce_sorted: bool) -> Any:
    lengths = torch.tensor([3, 5] if not enforce_sorted else [5, 3])
    return nn.utils.rnn.pack_padded_sequence(
        torch.rand(5, 2, 3, device="cuda"), lengths, enforce_sorted=enforce_sorted
    )


def unpacked() -> None:
    _, lengths = nn.utils.rnn.pad_packed_sequence(packed(enforce_sorted=True))
    lengths[torch.tensor([0])].tolist()


def recomputed(g: Any) -> None:
    from torch.utils.checkpoint import checkpoint  # noqa: PLC0415 - it takes its time

    checkpoint(lambda x: (x * x).sum(), g.parameter, use_reentrant=False).backward()


def ctc(lengths: Callable[[], Any]) -> None:
    scores = torch.randn(5, 2, 4, device="cuda").log_softmax(2)
    targets = torch.ones(2, 2, dtype=torch.long, device="cuda")
    F.ctc_loss(scores, targets, lengths(), lengths())


WAITS: dict[str, tuple[Act, set[str]]] = {
    "item": (lambda g: g.y.item(), {SYNC}),
    "float": (lambda g: float(g.y), {SYNC}),
    "int": (lambda g: int(g.index[0]), {SYNC}),
    "bool": (lambda g: bool(g.mask.any()), {SYNC}),
    "format": (lambda g: f"{g.y:.3f}", {SYNC}),
    "repr": (lambda g: repr(g.x), {SYNC}),
    "tolist": (lambda g: g.x.tolist(), {TO_HOST}),
    "cpu": (lambda g: g.x.cpu(), {TO_HOST}),
    "to cpu": (lambda g: g.x.to("cpu"), {TO_HOST}),
    "copy to the host": (lambda g: g.hx.copy_(g.x), {TO_HOST}),
    "copy to pageable": (lambda g: g.hx.copy_(g.x, non_blocking=True), {TO_HOST}),
    "contains": (lambda g: 0.5 in g.x, {SYNC}),
    "range": (lambda g: range(int(g.index[1])), {SYNC}),
    "a slice that ends at a tensor": (lambda g: g.x[: g.index[1]], {SYNC}),
    "a tensor as a number to select": (lambda g: g.x[g.index[0]], {SYNC}),
    "arange of a tensor": (lambda g: torch.arange(g.index[2], device="cuda"), {SYNC}),
    "linspace from a tensor": (lambda g: torch.linspace(g.y, 1, 3, device="cuda"), {SYNC}),
    "full of a tensor": (lambda g: torch.full((2,), g.y, device="cuda"), {SYNC}),
    "tensor of tensors": (lambda g: torch.tensor([g.y, g.y]), {SYNC}),
    "nonzero": (lambda g: g.x.nonzero(), {SYNC}),
    "where alone": (lambda g: torch.where(g.mask), {SYNC}),
    "get by mask": (lambda g: g.x[g.mask], {SYNC}),
    "get by bytes": (lambda g: g.x.masked_select(g.mask), {SYNC}),
    "put by mask": (lambda g: put(g.x, g.mask, g.y), {SYNC}),
    "get by a host index": (lambda g: g.x[g.hindex], {TO_DEVICE}),
    "get by a list": (lambda g: g.x[[0, 2]], {TO_DEVICE}),
    "put by a host index": (lambda g: put(g.x, g.hindex, g.y), {TO_DEVICE}),
    "put a number by index": (lambda g: put(g.x, g.index, 1.0), {TO_DEVICE}),
    "put host values": (lambda g: put(g.x, slice(0, 2), torch.zeros(2)), {TO_DEVICE}),
    "where with a host scalar": (lambda g: torch.where(g.mask, g.x, g.hy), {TO_DEVICE}),
    "unique": (lambda g: torch.unique(g.x), {SYNC}),
    "unique_consecutive": (lambda g: torch.unique_consecutive(g.x), {SYNC}),
    "bincount": (lambda g: torch.bincount(g.index), {SYNC}),
    "combinations": (lambda g: torch.combinations(g.x), {SYNC}),
    "repeat_interleave": (lambda g: torch.repeat_interleave(g.x, g.repeats), {SYNC}),
    "one_hot": (lambda g: F.one_hot(g.index), {SYNC}),
    "equal": (lambda g: torch.equal(g.x, g.x), {SYNC}),
    "allclose": (lambda g: torch.allclose(g.x, g.x), {SYNC}),
    "searchsorted in an order": (
        lambda g: torch.searchsorted(g.x, g.x, sorter=g.x.argsort()),
        {SYNC},
    ),
    "histc without a range": (lambda g: torch.histc(g.x, 10), {SYNC}),
    "masked_fill with a tensor": (lambda g: g.x.masked_fill(g.mask, g.y), {SYNC}),
    "index_fill with a tensor": (lambda g: g.x.index_fill(0, g.index, g.y), {SYNC}),
    "normal with a tensor": (lambda g: torch.normal(g.x, g.x), {SYNC}),
    "cov": (lambda g: torch.cov(g.square), {SYNC}),
    "inv": (lambda g: torch.linalg.inv(g.square), {SYNC}),
    "solve": (lambda g: torch.linalg.solve(g.square, g.square), {SYNC}),
    "cholesky": (lambda g: torch.linalg.cholesky(g.square), {SYNC}),
    "eigh": (lambda g: torch.linalg.eigh(g.square), {SYNC}),
    "svd": (lambda g: torch.linalg.svd(g.square), {SYNC}),
    "pinv": (lambda g: torch.linalg.pinv(g.square), {SYNC}),
    "matrix_rank": (lambda g: torch.linalg.matrix_rank(g.square), {SYNC}),
    "spectral norm": (lambda g: torch.linalg.norm(g.square, 2), {SYNC}),
    "to_sparse": (lambda g: g.square.to_sparse(), {SYNC}),
    "distribution": (lambda g: torch.distributions.Normal(g.x, g.x + 1), {SYNC}),
    "gaussian loss": (lambda g: F.gaussian_nll_loss(g.x, g.x, g.x), {SYNC}),
    "batch norm that counts": (
        lambda g: nn.BatchNorm1d(4, momentum=None, device="cuda")(g.square),
        {SYNC, TO_DEVICE},  # its count is made from a number on the host
    ),
    "clip that checks": (lambda g: clipped(g, error_if_nonfinite=True), {SYNC}),
    "scaler": (lambda _: scaled(), {SYNC}),
    "averages of ASGD": (lambda _: trained(torch.optim.ASGD), {SYNC, TO_DEVICE}),
    "to the device": (lambda g: g.hx.cuda(), {TO_DEVICE}),
    "to the device, pageable": (lambda g: g.hx.to("cuda", non_blocking=True), {TO_DEVICE}),
    "to the device, pinned, waiting": (lambda g: g.px.to("cuda"), {TO_DEVICE}),
    "to the device by number": (lambda g: g.hx.to(0), {TO_DEVICE}),
    "copy from the host": (lambda g: g.x.copy_(g.hx), {TO_DEVICE}),
    "tensor of a list": (lambda _: torch.tensor([1, 2], device="cuda"), {TO_DEVICE}),
    "new_tensor": (lambda g: g.x.new_tensor([1.0]), {TO_DEVICE}),
    "FloatTensor": (lambda _: torch.cuda.FloatTensor([1.0]), {TO_DEVICE}),
    "a module to the device": (lambda _: nn.Linear(2, 2).to("cuda"), {TO_DEVICE}),
    "pack unsorted": (lambda _: packed(enforce_sorted=False), {TO_DEVICE}),
    "ctc": (lambda _: ctc(lambda: [2, 2]), {TO_DEVICE}),
    "ctc of lengths on the device": (
        lambda _: ctc(lambda: torch.full((2,), 2, device="cuda")),
        {TO_HOST, TO_DEVICE},
    ),
    "save": (lambda g: torch.save(g.x, io.BytesIO()), {TO_HOST}),
    "synchronize": (lambda _: torch.cuda.synchronize(), {SYNC}),
    "event": (lambda _: torch.cuda.Event().synchronize(), {SYNC}),
    "stream": (lambda _: torch.cuda.current_stream().synchronize(), {SYNC}),
    "gradient of a copy": (there_and_back, {TO_HOST, TO_DEVICE}),
    "gradient of a product": (lambda g: g.parameter.prod().backward(), {SYNC}),
    "gradient of a fill": (
        lambda g: g.square.masked_fill(g.mask, g.parameter[0, 0]).sum().backward(),
        {SYNC},
    ),
    "type of the host": (lambda g: g.x.type(torch.FloatTensor), {TO_HOST}),
    "new": (lambda g: g.x.new([1.0]), {TO_DEVICE}),
    "gradient of cumprod": (lambda g: g.parameter.cumprod(0).sum().backward(), {SYNC}),
    "inference": (lambda g: inferred(g, lambda g: bool(g.y > 0)), {SYNC}),
    "a move in inference": (lambda g: inferred(g, lambda g: g.hx.cuda()), {TO_DEVICE}),
}

OPTIMIZERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("SGD", {"momentum": 0.9}),
    ("Adam", {}),
    ("AdamW", {"capturable": True}),
    ("AdamW", {"fused": True}),
    ("RMSprop", {}),
    ("Adagrad", {}),
    ("NAdam", {}),
    ("RAdam", {}),
)


def training(kind: str, options: dict[str, Any]) -> Act:
    return lambda _: trained(getattr(torch.optim, kind), **options)


GOES_ON: dict[str, Act] = {
    "put a number by mask": lambda g: put(g.x, g.mask, 1.0),
    "put by a host mask": lambda g: put(g.x, g.hmask, g.y),
    "get by a host mask": lambda g: g.x[g.hmask],
    "put by index": lambda g: put(g.x, g.index, g.y),
    "get by index": lambda g: g.x[g.index],
    "get by an empty list": lambda g: g.x[[]],
    "put a number in a slice": lambda g: put(g.x, slice(0, 2), 1.0),
    "one_hot of known classes": lambda g: F.one_hot(g.index, num_classes=4),
    "repeat by a number": lambda g: torch.repeat_interleave(g.x, 2),
    "repeat to a known size": lambda g: torch.repeat_interleave(g.x, g.repeats, output_size=8),
    "randperm": lambda _: torch.randperm(200, device="cuda"),
    "where": lambda g: torch.where(g.mask, g.x, 0.0),
    "masked_fill": lambda g: g.x.masked_fill(g.mask, 0.0),
    "index_fill": lambda g: g.x.index_fill(0, g.index, 0.0),
    "scatter": lambda g: torch.zeros(4, device="cuda").scatter_(0, g.index, 1.0),
    "full": lambda _: torch.full((2,), 3.0, device="cuda"),
    "new_zeros": lambda g: g.x.new_zeros(3),
    "quantile": lambda g: g.x.quantile(0.5),
    "median": lambda g: g.x.median(),
    "topk": lambda g: g.x.topk(2),
    "std": lambda g: g.x.std().log(),
    "histc of a range": lambda g: torch.histc(g.x, 10, 0, 1),
    "isclose": lambda g: torch.isclose(g.x, g.x).all(),
    "isin of few": lambda g: torch.isin(g.index, g.index),
    "stack": lambda g: torch.stack([g.y, g.y]),
    "tensor of a tensor": lambda g: torch.as_tensor(g.x, device="cuda"),
    "a host scalar": lambda g: g.x + g.hy,
    "inv_ex": lambda g: torch.linalg.inv_ex(g.square),
    "qr": lambda g: torch.linalg.qr(g.square),
    "slogdet": lambda g: torch.linalg.slogdet(g.square),
    "norm": lambda g: torch.linalg.norm(g.square),
    "matrix_power": lambda g: torch.matrix_power(g.square, 3),
    "cdist": lambda g: torch.cdist(g.square, g.square),
    "stft": lambda g: torch.stft(g.square.flatten(), 4, window=g.x, return_complex=True),
    "vmap": lambda g: torch.vmap(lambda row: torch.where(row > 0, row, 0.0))(g.square),
    "max": lambda g: g.parameter.max().backward(),
    "multinomial": lambda g: torch.multinomial(g.x + 0.1, 2),
    "bernoulli": lambda g: torch.bernoulli(g.x),
    "rsample": lambda g: torch.distributions.Normal(g.x, g.x, validate_args=False).rsample(),
    "dropout": lambda g: F.dropout(g.x),
    "embedding": lambda g: F.embedding(g.index, g.square),
    "attention": lambda g: F.scaled_dot_product_attention(*[g.square[None]] * 3),
    "multi-head attention": lambda g: nn.MultiheadAttention(4, 2, device="cuda")(*[g.square] * 3),
    "lstm": lambda g: nn.LSTM(4, 4, device="cuda")(g.square),
    "pack sorted": lambda _: packed(enforce_sorted=True),
    "lengths of a packed sequence": lambda _: unpacked(),
    "clip": clipped,
    "recomputation": recomputed,
    "to the device, pinned": lambda g: g.px.to("cuda", non_blocking=True),
    "into the device, pinned": lambda g: g.x.copy_(g.px, non_blocking=True),
    "to the host without blocking": lambda g: g.x.to("cpu", non_blocking=True),
    "a change of dtype": lambda g: g.x.half().float(),
    "move to where it is": lambda g: g.x.cuda(),
    "wait_stream": lambda _: torch.cuda.current_stream().wait_stream(torch.cuda.Stream()),
    "record_stream": lambda g: g.x.record_stream(torch.cuda.current_stream()),
    "memory": lambda _: torch.cuda.memory_allocated(),
    "host work": lambda g: (g.hx.nonzero(), g.hx.sum().item(), g.hx[g.hmask], g.hx.tolist()),
    "gradient": lambda g: (g.parameter @ g.square).sum().backward(),
    **{f"optimizer {kind} {options}": training(kind, options) for kind, options in OPTIMIZERS},
}


def kinds_of(act: Act) -> set[str]:
    """What the host waits for in an act, all tensors for it being ready."""
    with preflight() as found:
        given = ready()
        found.end_step()
        act(given)
        found.end_step()
        return {site.kind for site in found.sites}


@pytest.mark.parametrize("name", WAITS)
@pytest.mark.sweep(30)
def test_the_host_waits(name: str) -> None:
    act, kinds = WAITS[name]
    assert kinds_of(act) == kinds


@pytest.mark.parametrize("name", GOES_ON)
@pytest.mark.sweep(25)
def test_the_host_goes_on(name: str) -> None:
    assert kinds_of(GOES_ON[name]) == set()

"""Layers of torch.nn, and sequences of different lengths."""

import functools

import torch
from torch import nn
from torch.nn.utils import rnn


def norms_without_statistics() -> None:
    """Normalises in kernels."""
    net = nn.Sequential(nn.LayerNorm(6, device="cuda"), nn.Dropout(0.2), nn.SiLU())
    out = nn.GroupNorm(2, 6, device="cuda")(net(torch.randn(3, 6, device="cuda")))
    out.mean().backward()


def batch_norm() -> None:
    """Makes its counter from a number: nn/modules/batchnorm.py, torch.tensor(0, device=...)."""
    norm = nn.BatchNorm1d(6, device="cuda")  # waits: copy_to_device
    norm(torch.randn(3, 6, device="cuda")).mean().backward()
    norm.eval()
    assert norm(torch.randn(3, 6, device="cuda")).shape == (3, 6)


def batch_norm_of_running_mean() -> None:
    """Divides by its counter: nn/modules/batchnorm.py, float(self.num_batches_tracked)."""
    norm = nn.BatchNorm1d(6, momentum=None, device="cuda")  # waits: copy_to_device
    out = norm(torch.randn(3, 6, device="cuda"))  # waits: sync
    assert out.shape == (3, 6)


def convolutions() -> None:
    """Convolves and pools."""
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding="same", device="cuda"),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, 2, device="cuda"),
    )
    net(torch.randn(2, 3, 8, 8, device="cuda")).sum().backward()


def embeddings() -> None:
    """Looks up rows: Embedding.cu; EmbeddingBag.cu."""
    words = torch.randint(0, 9, (4, 5), device="cuda")
    table = nn.Embedding(9, 6, padding_idx=0, device="cuda")
    bag = nn.EmbeddingBag(9, 6, mode="mean", device="cuda")
    (table(words).mean(dim=1) + bag(words)).sum().backward()


def renormalised_embedding() -> None:
    """Counts distinct rows and scales them in kernels: Embedding.cu, embedding_renorm_cuda_."""
    words = torch.randint(0, 9, (4, 5), device="cuda")
    table = nn.Embedding(9, 6, max_norm=1.0, device="cuda")
    assert table(words).shape == (4, 5, 6)


def cells() -> None:
    """Steps a cell over known times."""
    cell = nn.GRUCell(3, 4, device="cuda")
    state = torch.zeros(2, 4, device="cuda")
    for x in torch.randn(5, 2, 3, device="cuda"):
        state = cell(x, state)
    state.sum().backward()


def padded() -> None:
    """Fills one tensor from many: PackedSequence.cpp, pad_sequence."""
    rows = [torch.randn(n, 3, device="cuda") for n in (2, 4, 3)]
    batch = rnn.pad_sequence(rows, batch_first=True)
    mask = torch.arange(4, device="cuda") < 3
    assert (batch * mask[None, :, None]).shape == (3, 4, 3)


def packed_by_device_lengths() -> None:
    """Needs lengths on the host: copy_kernel_cuda, memcpy_and_sync."""
    batch = torch.randn(3, 4, 2, device="cuda")
    lengths = torch.full((3,), 4, device="cuda")
    packed = rnn.pack_padded_sequence(batch, lengths.cpu(), batch_first=True)  # waits: copy_to_host
    assert packed.data.shape == (12, 2)


def packed_by_host_lengths() -> None:
    """Slices by host lengths: PackedSequence.cpp, _pack_padded_sequence."""
    batch = torch.randn(3, 4, 2, device="cuda")
    packed = rnn.pack_padded_sequence(batch, torch.tensor([4, 3, 1]), batch_first=True)
    out, lengths = rnn.pad_packed_sequence(packed, batch_first=True)
    assert out.shape == (3, 4, 2)
    assert lengths.tolist() == [4, 3, 1]


def packed_unsorted() -> None:
    """Copies the order to the device and back: nn/utils/rnn.py, to(input.device), .cpu()."""
    batch = torch.randn(3, 4, 2, device="cuda")
    pack = functools.partial(rnn.pack_padded_sequence, enforce_sorted=False)
    packed = pack(batch, [2, 4, 3], batch_first=True)  # waits: copy_to_device
    out, _ = rnn.pad_packed_sequence(packed, batch_first=True)  # waits: copy_to_host
    assert out.shape == (3, 4, 2)


def sorted_by_length() -> None:
    """Sorts and reorders on the device."""
    batch = torch.randn(3, 4, 2, device="cuda")
    lengths = torch.randint(1, 5, (3,), device="cuda")
    lengths, order = lengths.sort(descending=True)
    batch = batch[order]
    back = batch.index_select(0, order.argsort())
    last = back.gather(1, (lengths[order.argsort()] - 1)[:, None, None].expand(-1, 1, 2))
    assert last.shape == (3, 1, 2)


def spectrum_and_back() -> None:
    """Asks whether the windows overlap: SpectralOps.cpp, istft, is_scalar_tensor_true."""
    window = torch.hann_window(16, device="cuda")
    sound = torch.randn(2, 128, device="cuda")
    spec = torch.stft(sound, 16, window=window, return_complex=True)
    back = torch.istft(spec, 16, window=window)  # waits: sync
    assert back.shape[0] == 2


def spectrum_only() -> None:
    """Transforms and takes magnitudes."""
    window = torch.hann_window(16, device="cuda")
    sound = torch.randn(2, 128, device="cuda")
    spec = torch.stft(sound, 16, window=window, return_complex=True).abs()
    assert torch.fft.rfft(sound).abs().log1p().shape[0] == spec.shape[0]


def mixture_of_experts_by_list() -> None:
    """Lists the rows of each expert: nonzero(); a mask per expert."""
    experts = [nn.Linear(4, 4, device="cuda") for _ in range(2)]
    x = torch.randn(6, 4, device="cuda")
    choice = torch.randint(0, 2, (6,), device="cuda")
    out = torch.zeros_like(x)
    for number, expert in enumerate(experts):
        rows = (choice == number).nonzero(as_tuple=True)[0]  # waits: sync
        out = out.index_add(0, rows, expert(x[rows]))
    out.sum().backward()


def mixture_of_experts_by_weight() -> None:
    """Computes all experts and weighs them."""
    experts = [nn.Linear(4, 4, device="cuda") for _ in range(2)]
    x = torch.randn(6, 4, device="cuda")
    weight = torch.randn(6, 2, device="cuda").softmax(dim=1)
    out = sum(weight[:, i : i + 1] * expert(x) for i, expert in enumerate(experts))
    out.sum().backward()


def codebook() -> None:
    """Finds the nearest codes and passes gradients straight through."""
    codes = torch.randn(8, 4, device="cuda", requires_grad=True)
    z = torch.randn(6, 4, device="cuda", requires_grad=True)
    nearest = torch.cdist(z, codes).argmin(dim=1)
    quantised = codes[nearest]
    ((z + (quantised - z).detach()).sum() + (quantised - z.detach()).square().mean()).backward()

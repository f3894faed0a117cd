"""Graph networks: degrees, messages, pooling, sampling."""

import torch


def messages() -> None:
    """Gathers and adds at indices of the device: index_select and index_add_ read nothing."""
    x = torch.randn(6, 4, device="cuda", requires_grad=True)
    source, target = torch.randint(0, 6, (2, 15), device="cuda")
    out = torch.zeros(6, 4, device="cuda").index_add_(0, target, x.index_select(0, source))
    out.relu().sum().backward()


def degree_by_scatter() -> None:
    """Adds ones; infinity is filled by mask with a host number (masked_fill)."""
    target = torch.randint(0, 6, (15,), device="cuda")
    degree = torch.zeros(6, device="cuda").scatter_add_(0, target, torch.ones(15, device="cuda"))
    scale = degree.pow(-0.5)
    scale[scale == float("inf")] = 0.0
    assert scale.shape == (6,)


def degree_by_bincount() -> None:
    """Sizes its result by the data: _bincount_cuda_template, max().item()."""
    target = torch.randint(0, 6, (15,), device="cuda")
    degree = torch.bincount(target, minlength=6).clamp(min=1)  # waits: sync
    assert degree.ndim == 1


def number_of_nodes() -> None:
    """Takes a size from the device: Tensor.__int__ reads item()."""
    edges = torch.randint(0, 6, (2, 15), device="cuda")
    nodes = int(edges.max()) + 1  # waits: sync
    assert torch.zeros(nodes, device="cuda").ndim == 1


def edges_without_loops() -> None:
    """Indexes by a mask: expandTensors, nonzero()."""
    edges = torch.randint(0, 6, (2, 15), device="cuda")
    edges = edges[:, edges[0] != edges[1]]  # waits: sync
    assert edges.shape[0] == 2


def edges_with_weight_zero() -> None:
    """Keeps all edges and weighs loops with zero."""
    edges = torch.randint(0, 6, (2, 15), device="cuda")
    weight = (edges[0] != edges[1]).float()
    out = torch.zeros(6, device="cuda").scatter_reduce_(0, edges[1], weight, reduce="sum")
    assert out.shape == (6,)


def coalesced() -> None:
    """Sizes its result by the data: UniqueCub.cu / Unique.cu, unique."""
    edges = torch.randint(0, 6, (2, 15), device="cuda")
    key, back = torch.unique(edges[0] * 6 + edges[1], return_inverse=True)  # waits: sync
    runs = torch.unique_consecutive(key)  # waits: sync
    assert back.shape == (15,)
    assert runs.ndim == 1


def batch_vector_of_counts() -> None:
    """Sizes its result by the data: Repeat.h, repeat_interleave_common, cumsum[-1].item()."""
    counts = torch.randint(1, 4, (3,), device="cuda")
    batch = torch.arange(3, device="cuda").repeat_interleave(counts)  # waits: sync
    assert batch.ndim == 1


def batch_vector_of_known_size() -> None:
    """Is told the size: repeat_interleave_common with output_size reads nothing."""
    counts = torch.full((3,), 2, device="cuda")
    batch = torch.repeat_interleave(torch.arange(3, device="cuda"), counts, output_size=6)
    twice = torch.repeat_interleave(batch, 2)
    assert twice.shape == (12,)


def pooled_by_known_number() -> None:
    """Divides sums by counts on the device."""
    x, batch = torch.randn(9, 4, device="cuda"), torch.randint(0, 3, (9,), device="cuda")
    total = torch.zeros(3, 4, device="cuda").index_add_(0, batch, x)
    count = torch.zeros(3, 1, device="cuda").index_add_(0, batch, torch.ones(9, 1, device="cuda"))
    assert (total / count.clamp(min=1)).shape == (3, 4)


def pooled_by_asked_number() -> None:
    """Takes a size from the device: item()."""
    x, batch = torch.randn(9, 4, device="cuda"), torch.randint(0, 3, (9,), device="cuda")
    size = batch.max().item() + 1  # waits: sync
    total = x.new_zeros(size, 4).scatter_reduce(0, batch[:, None].expand(-1, 4), x, reduce="amax")
    assert total.ndim == 2


def relabelled() -> None:
    """Writes a device tensor at device indices: _index_put_impl_ reads nothing."""
    nodes = torch.randperm(9, device="cuda")[:4]
    new = torch.full((9,), -1, device="cuda")
    new[nodes] = torch.arange(4, device="cuda")
    assert new.shape == (9,)


def kept_in_subgraph() -> None:
    """Tests by a sort with unique: TensorCompare.cpp, isin_sorting, _unique."""
    edges = torch.randint(0, 60, (80,), device="cuda")
    nodes = torch.arange(40, device="cuda")
    inside = torch.isin(edges, nodes)  # waits: sync
    assert inside.shape == (80,)


def kept_among_few() -> None:
    """Compares each with each: TensorCompare.cpp takes isin_default below 10 n^0.145 elements."""
    kinds = torch.randint(0, 9, (80,), device="cuda")
    assert torch.isin(kinds, torch.arange(3, device="cuda")).shape == (80,)
    assert torch.isin(kinds, 4).shape == (80,)


def dense_to_sparse() -> None:
    """Looks for entries: TensorConversions.cpp, dense_to_sparse, nonzero()."""
    table = torch.rand(4, 4, device="cuda").round()
    sparse = table.to_sparse()  # waits: sync
    assert sparse.ndim == 2


def neighbours() -> None:
    """Sorts distances by rows."""
    x = torch.randn(9, 3, device="cuda")
    distance = torch.cdist(x, x)
    near = distance.topk(4, largest=False).indices
    assert (x[near] - x[:, None]).amax(dim=1).shape == (9, 3)


def random_walk() -> None:
    """Draws numbers on the device and gathers."""
    neighbour = torch.randint(0, 6, (6, 3), device="cuda")
    node = torch.arange(6, device="cuda")
    for _ in range(3):
        choice = torch.randint(0, 3, (6, 1), device="cuda")
        node = neighbour[node].gather(1, choice).squeeze(1)
    assert node.shape == (6,)


def pairs() -> None:
    """Selects by a mask: Itertools.cpp, combinations, masked_select."""
    nodes = torch.arange(5, device="cuda")
    both = torch.combinations(nodes, r=2)  # waits: sync
    every = torch.cartesian_prod(nodes, nodes)
    assert len(both) < len(every)


def upper_triangle() -> None:
    """Makes the indices in a kernel: TensorFactories.cu, triu_indices_cuda."""
    table = torch.rand(5, 5, device="cuda")
    row, column = torch.triu_indices(5, 5, offset=1, device="cuda")
    assert table[row, column].shape == (10,)


def segments_by_search() -> None:
    """Searches sorted boundaries of the device: Bucketization.cu."""
    bounds = torch.tensor([2, 5, 9])
    bounds = bounds.pin_memory().to("cuda", non_blocking=True)
    which = torch.searchsorted(bounds, torch.arange(9, device="cuda"), right=True)
    assert torch.bucketize(which, bounds).shape == (9,)


def split_by_counts() -> None:
    """Takes sizes from the device: tensor_to_list, toBackend(CPU)."""
    x = torch.randn(6, 4, device="cuda")
    counts = torch.full((3,), 2, device="cuda")
    parts = x.split(counts.tolist())  # waits: copy_to_host
    halves = x.split([2, 4])
    assert len(parts) + len(halves) == 5

"""Linear algebra, and iterations that converge."""

import torch


def solved() -> None:
    """Reads the info of the factorisation.

    Source: BatchLinearAlgebra.cpp, _linalg_check_errors, item<bool>.
    """
    a = torch.randn(4, 4, device="cuda") + 4 * torch.eye(4, device="cuda")
    b = torch.randn(4, device="cuda")
    x = torch.linalg.solve(a, b)  # waits: sync
    y = torch.linalg.inv(a) @ b  # waits: sync
    assert x.shape == y.shape


def solved_unchecked() -> None:
    """Returns the info instead of reading it.

    Source: linalg_solve_ex, linalg_inv_ex, check_errors false.
    """
    a = torch.randn(4, 4, device="cuda") + 4 * torch.eye(4, device="cuda")
    x, info = torch.linalg.solve_ex(a, torch.randn(4, device="cuda"))
    inverse, other = torch.linalg.inv_ex(a)
    assert (inverse @ x).shape == (4,)
    assert info.shape == other.shape


def factorised() -> None:
    """Reads the info: linalg_cholesky, linalg_lu_factor, _linalg_check_errors."""
    a = torch.eye(4, device="cuda") * 2
    lower = torch.linalg.cholesky(a)  # waits: sync
    lu, pivots = torch.linalg.lu_factor(a)  # waits: sync
    assert lower.shape == lu.shape
    assert pivots.shape == (4,)


def factorised_unchecked() -> None:
    """Returns the info: linalg_cholesky_ex."""
    a = torch.eye(4, device="cuda") * 2
    lower, info = torch.linalg.cholesky_ex(a)
    x = torch.linalg.solve_triangular(lower, torch.ones(4, 1, device="cuda"), upper=False)
    assert x.shape == (4, 1)
    assert info.shape == ()


def decomposed() -> None:
    """Reads the info: _linalg_svd and _linalg_eigh, _linalg_check_errors."""
    a = torch.randn(5, 4, device="cuda")
    u, s, v = torch.linalg.svd(a, full_matrices=False)  # waits: sync
    values, _ = torch.linalg.eigh(a.t() @ a)  # waits: sync
    assert (u * s @ v).shape == a.shape
    assert values.shape == (4,)


def orthogonalised() -> None:
    """Checks only in debug builds: linalg_qr, TORCH_INTERNAL_ASSERT_DEBUG_ONLY."""
    q, r = torch.linalg.qr(torch.randn(5, 4, device="cuda"))
    assert (q @ r).shape == (5, 4)


def determinants() -> None:
    """Factorise without asking: _linalg_det and _linalg_slogdet call linalg_lu_factor_ex."""
    a = torch.randn(4, 4, device="cuda")
    det = torch.linalg.det(a)
    sign, logarithm = torch.linalg.slogdet(a)
    assert det.shape == sign.shape == logarithm.shape


def pseudo_inverse() -> None:
    """Decomposes: linalg_pinv and matrix_rank call linalg_svd, _linalg_check_errors."""
    a = torch.randn(5, 4, device="cuda")
    p = torch.linalg.pinv(a)  # waits: sync
    rank = torch.linalg.matrix_rank(a)  # waits: sync
    assert p.shape == (4, 5)
    assert rank.shape == ()


def norms() -> None:
    """Sums squares, or decomposes: linalg_matrix_norm with ord 2 calls linalg_svdvals."""
    a = torch.randn(5, 4, device="cuda")
    frobenius = torch.linalg.matrix_norm(a) + torch.linalg.norm(a) + a.norm(dim=1).sum()
    spectral = torch.linalg.norm(a, ord=2)  # waits: sync
    assert frobenius.shape == spectral.shape


def least_squares() -> None:
    """Reads the info: linalg_lstsq_out, _linalg_check_errors."""
    a, b = torch.randn(6, 3, device="cuda"), torch.randn(6, 1, device="cuda")
    x = torch.linalg.lstsq(a, b).solution  # waits: sync
    assert x.shape == (3, 1)


def powers() -> None:
    """Multiplies, or inverts: linalg_matrix_power with a negative exponent calls linalg_inv."""
    a = torch.randn(4, 4, device="cuda") + 4 * torch.eye(4, device="cuda")
    third = torch.linalg.matrix_power(a, 3)
    back = torch.linalg.matrix_power(a, -1)  # waits: sync
    assert third.shape == back.shape


def exponential() -> None:
    """Sorts matrices by norm: LinearAlgebra.cpp, linalg_matrix_exp, nonzero()."""
    a = torch.randn(3, 3, device="cuda")
    e = torch.linalg.matrix_exp(a - a.t())  # waits: sync
    assert e.shape == (3, 3)


def power_iteration() -> None:
    """Iterates a known number of times."""
    a = torch.randn(5, 5, device="cuda")
    v = torch.ones(5, device="cuda")
    for _ in range(3):
        v = torch.nn.functional.normalize(a @ v, dim=0)
    assert torch.dot(v, a @ v).shape == ()


def until_converged() -> None:
    """Tests the error in the loop's head: is_nonzero reads item()."""
    x = torch.ones((), device="cuda")
    error = torch.ones((), device="cuda")
    while error > 1e-2:  # waits: sync
        new = (x + 2 / x) / 2
        x, error = new, (new - x).abs()


def transport() -> None:
    """Normalises rows and columns a known number of times."""
    log = -torch.cdist(torch.rand(5, 2, device="cuda"), torch.rand(5, 2, device="cuda"))
    for _ in range(3):
        log = log - log.logsumexp(dim=1, keepdim=True)
        log = log - log.logsumexp(dim=0, keepdim=True)
    assert torch.einsum("ij,ij->", log.exp(), log).shape == ()


def clusters() -> None:
    """Averages members by index_add_, with no empty-cluster test."""
    x = torch.randn(12, 2, device="cuda")
    centers = x[:3].clone()
    for _ in range(2):
        nearest = torch.cdist(x, centers).argmin(dim=1)
        total = torch.zeros_like(centers).index_add_(0, nearest, x)
        count = torch.zeros(3, device="cuda").index_add_(0, nearest, torch.ones_like(x[:, 0]))
        centers = total / count.clamp(min=1)[:, None]


def clusters_that_reseed() -> None:
    """Takes each cluster by a mask and asks its size (a shape): nonzero()."""
    x = torch.randn(12, 2, device="cuda")
    centers = x[:3].clone()
    nearest = torch.cdist(x, centers).argmin(dim=1)
    for i in range(3):
        members = x[nearest == i]  # waits: sync
        if len(members) > 0:
            centers[i] = members.mean(dim=0)

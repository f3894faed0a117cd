from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def arguments_of_distributions_are_checked() -> Iterator[None]:
    """PyTorch's compiler turns that off for the whole process; another test may have used it."""
    torch = pytest.importorskip("torch")
    distribution = torch.distributions.Distribution
    before = distribution._validate_args
    distribution.set_default_validate_args(True)
    yield
    distribution.set_default_validate_args(before)

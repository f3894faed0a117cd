"""Whether a package is installed, without importing it: each worker collects all tests."""

from importlib.util import find_spec

import pytest

__all__ = ["needs"]


def needs(package: str) -> None:
    """Skip the module of tests that calls it where a package is not installed."""
    if find_spec(package) is None:
        pytest.skip(f"the package `{package}` is not installed", allow_module_level=True)

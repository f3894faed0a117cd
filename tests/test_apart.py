"""Tests that share nothing go to any worker."""

from pathlib import Path

import pytest


def test_what_pytest_makes_once_binds_nobody(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Wherever pytest is installed: in a folder of the project, too.

    The test is in the first portion of its file, which any worker may take.
    """
    assert tmp_path.is_dir()
    assert request.node.get_closest_marker("xdist_group").args == ("tests/test_apart.py:0",)

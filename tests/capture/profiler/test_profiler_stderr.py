import os

import pytest

from selftime.capture.profiler.profiler_stderr import hide_usdt_lines


def test_only_the_recorders_marks_are_kept_back(capfd: pytest.CaptureFixture[str]) -> None:
    with hide_usdt_lines():
        os.write(2, b"before\nUSDT:2026 start\nafter, ")
        os.write(2, b"in pieces")
    os.write(2, b".\n")

    assert capfd.readouterr().err == "before\nafter, in pieces.\n"

import os

import pytest

from selftime.capture.chatter import without_marks


def test_only_the_recorders_marks_are_kept_back(capfd: pytest.CaptureFixture[str]) -> None:
    with without_marks():
        os.write(2, b"before\nUSDT:2026 start\nafter, ")
        os.write(2, b"in pieces")
    os.write(2, b".\n")

    assert capfd.readouterr().err == "before\nafter, in pieces.\n"

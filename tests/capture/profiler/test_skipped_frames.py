"""A profile function of the program stays, and is told of all calls."""

import cProfile
import sys
import warnings
from typing import Any

import pytest

import selftime
from selftime.capture.profiler.skipped_frames import reason_to_skip_frames

pytestmark = pytest.mark.torch


def called() -> int:
    return 1


def test_a_profile_function_is_kept_and_no_frames_are_recorded() -> None:
    torch: Any = pytest.importorskip("torch")
    assert reason_to_skip_frames() is None
    program = cProfile.Profile()
    program.enable()
    try:
        reason = reason_to_skip_frames()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with selftime.profile(with_stack=True) as prof:
                torch.ones(2) + called()
        called()
        kept: Any = sys.getprofile()
    finally:
        program.disable()

    assert kept is program
    calls = {entry.code: entry.callcount for entry in program.getstats()}
    assert calls[called.__code__] == 2
    assert reason is not None
    assert "sys.setprofile" in reason
    assert [str(one.message) for one in caught if "profile function" in str(one.message)]
    assert prof.trace().frame_args.height == 0

"""No recording begins while a range that began in an earlier one is open, or torch would crash."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.capture.conftest import Runner

pytestmark = pytest.mark.torch

OVERLAPPING_RANGES = """
    from collections import deque
    import torch
    from torch._C._autograd import _profiler_enabled
    from torch.autograd.profiler import record_function

    enter = record_function.__enter__
    net = torch.nn.Sequential(*[torch.nn.Linear(16, 16) for _ in range(6)]).eval()
    x, ranges, recordings, was_on, across = torch.ones(4, 16), deque(), 0, False, 0
    with torch.no_grad():
        for call in range(400):
            on = _profiler_enabled()
            recordings += on and not was_on
            was_on = on
            range_ = record_function("open")
            range_.__enter__()
            ranges.append((range_, recordings if on else 0))
            if len(ranges) > 2:
                range_, began = ranges.popleft()
                across += bool(began) and on and began != recordings
                range_.__exit__(None, None, None)
            net(x)
    print(recordings, across, record_function.__enter__ is enter)
"""


def test_ranges_over_several_steps_do_not_end_in_another_recording(record: "Runner") -> None:
    outcome = record(OVERLAPPING_RANGES)
    assert outcome.status == 0, outcome.stderr
    recordings, across, is_restored = outcome.stdout.split()
    assert int(recordings) >= 2
    assert (across, is_restored) == ("0", "True")
    assert outcome.result["steps_recorded"] == 5


SCRIPTED = """
    import torch
    from torch.autograd.profiler import record_function

    def doubled(x: torch.Tensor):
        with record_function("doubled"):
            return 2 * x

    net = torch.nn.Linear(4, 4)
    with torch.no_grad():
        for call in range(60):
            scripted = torch.jit.script(doubled) if call % 10 == 0 else scripted
            net(scripted(torch.ones(2, 4)))
    print("done")
"""


def test_a_range_can_be_scripted_while_it_is_watched(record: "Runner") -> None:
    outcome = record(SCRIPTED)
    assert outcome.status == 0, outcome.stderr
    assert outcome.stdout == "done\n"

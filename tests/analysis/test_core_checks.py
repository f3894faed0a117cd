"""Tests what health says of a program that had no core while it was recorded."""

from typing import Any

import pytest

from selftime.testing import sketch

STEPS = """
    mark 1 | ssssttttuuuu
    cpu 1  | aaaaaaaaaaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
"""


def told(usage: dict[str, Any]) -> dict[str, str]:
    """Returns what the checks of a recording with these facts about the cores say, by check."""
    trace = sketch(STEPS, metadata={"selftime": {"usage": usage}})
    return dict(trace.view("health").select("check", "text").rows())


@pytest.mark.parametrize("queued", [0.01, None])
def test_a_thread_that_had_its_core_is_not_told(queued: float | None) -> None:
    """A thread that waits for a device needs no core, however little it computes."""
    assert "cores" not in told({"wall_s": 1.6, "process_s": 0.32, "queued_s": queued})


def test_what_a_starved_process_computed_is_told() -> None:
    assert told({"wall_s": 1.6, "process_s": 0.32, "queued_s": 1.2})["cores"].startswith(
        "the main thread was ready to run and had no core for 75.0 % of the recording; the process "
        "computed for 320 ms in 1.60 s"
    )

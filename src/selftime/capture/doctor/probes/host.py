"""Records two lines of Python on the CPU, and reads operators and source lines from the result."""

import runpy
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import torch
from torch._C._profiler import RecordScope, _EventType

from selftime.capture.facts import machine
from selftime.capture.profiler.profile import Profile

_RECORDED_PROGRAM: Final = """\
import torch


def work(rows):
    rows = torch.mul(rows, 2)
    return torch.add(rows, 1)
"""
_EXPECTED_LINE_OF_EACH_OPERATOR: Final = [5, 6]
"""Line numbers in the recorded test program that call operators, in order."""


def record_two_python_lines() -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="selftime-") as folder:
        program = Path(folder, "two_lines.py")
        program.write_text(_RECORDED_PROGRAM, encoding="utf-8")
        work = runpy.run_path(str(program))["work"]
        rows = torch.ones(8)
        work(rows)
        profile = Profile(with_stack=True, activities=[torch.profiler.ProfilerActivity.CPU])
        before = time.time_ns()
        with profile:
            work(rows)
        after = time.time_ns()
        profile.write_trace(Path(folder, "trace.json"))
        facts = profile.facts()
    return {
        "operators": _recorded_operator_names(profile),
        "frames": _recorded_frame_count(profile),
        "lines": sorted(set(facts["lines"]["line"])),
        "expected_lines": _EXPECTED_LINE_OF_EACH_OPERATOR,
        "clock_ok": all(before <= start <= after for start in _operator_starts_ns(profile)),
        "cores": machine.usable_core_counts(),
        "threads": torch.get_num_threads(),
    }


def _root_events_of_event_tree(profile: Profile) -> list[Any]:
    recorded: Any = profile.profiler
    return list(recorded.kineto_results.experimental_event_tree())


def _all_events_in_trees(roots: list[Any]) -> list[Any]:
    found, left = [], list(roots)
    while left:
        event = left.pop()
        found.append(event)
        left.extend(event.children)
    return found


def _recorded_operator_names(profile: Profile) -> list[str]:
    """Returns the names of all operators in a recording."""
    return sorted(
        event.name
        for event in _all_events_in_trees(_root_events_of_event_tree(profile))
        if event.tag == _EventType.TorchOp and event.extra_fields.scope == RecordScope.FUNCTION
    )


def _recorded_frame_count(profile: Profile) -> int:
    kinds = (_EventType.PyCall, _EventType.PyCCall)
    return sum(
        event.tag in kinds for event in _all_events_in_trees(_root_events_of_event_tree(profile))
    )


def _operator_starts_ns(profile: Profile) -> list[int]:
    """Returns the start of each recorded operator in ns since the Unix epoch."""
    return [
        event.start_time_ns
        for event in _all_events_in_trees(_root_events_of_event_tree(profile))
        if event.tag == _EventType.TorchOp and event.extra_fields.scope == RecordScope.FUNCTION
    ]

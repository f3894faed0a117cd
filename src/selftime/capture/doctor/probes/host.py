"""Record two lines of Python on the CPU: are their operators, frames and exact lines there?"""

import runpy
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import torch
from torch._C._profiler import RecordScope, _EventType

from selftime.capture.facts import machine
from selftime.capture.profile import Profile

_PROGRAM: Final = """\
import torch


def work(rows):
    rows = torch.mul(rows, 2)
    return torch.add(rows, 1)
"""
_LINES: Final = [5, 6]
"""Where the operators of the program are called."""


def answer() -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="selftime-") as folder:
        program = Path(folder, "two_lines.py")
        program.write_text(_PROGRAM, encoding="utf-8")
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
        "operators": _operators(profile),
        "frames": _frames(profile),
        "lines": sorted(set(facts["lines"]["line"])),
        "expected_lines": _LINES,
        "clock_ok": all(before <= start <= after for start in _starts(profile)),
        "cores": machine.cores(),
        "threads": torch.get_num_threads(),
    }


def _events(profile: Profile) -> list[Any]:
    recorded: Any = profile.profiler
    return list(recorded.kineto_results.experimental_event_tree())


def _walk(roots: list[Any]) -> list[Any]:
    found, left = [], list(roots)
    while left:
        event = left.pop()
        found.append(event)
        left.extend(event.children)
    return found


def _operators(profile: Profile) -> list[str]:
    """The names of the operators that were recorded."""
    return sorted(
        event.name
        for event in _walk(_events(profile))
        if event.tag == _EventType.TorchOp and event.extra_fields.scope == RecordScope.FUNCTION
    )


def _frames(profile: Profile) -> int:
    kinds = (_EventType.PyCall, _EventType.PyCCall)
    return sum(event.tag in kinds for event in _walk(_events(profile)))


def _starts(profile: Profile) -> list[int]:
    """When the operators began, on the recorder's clock: nanoseconds of the wall clock."""
    return [
        event.start_time_ns
        for event in _walk(_events(profile))
        if event.tag == _EventType.TorchOp and event.extra_fields.scope == RecordScope.FUNCTION
    ]

"""Holds what `selftime run` says of a program against its declaration and its clock."""

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from programs.clock import Clocked, Interval
from programs.expected import Program, Steps

from selftime.analysis.run.parts import run_parts
from selftime.ingest.ledger import read_ledger
from selftime.ledger_format import UNCOUNTED_STEPS_NAME, UNUSUAL_KIND_SUFFIX
from selftime.run import Run

__all__ = ["Kept", "Part", "counted_steps", "kept_runs", "parts", "refusal", "steps_fault"]

TOLERANCE: Final = 0.02
"""The largest difference of a part from the clock, as a share of the wall time."""

NAMES: Final = {
    "token": {"token", "decoding", "inference"},
    "batch": {"batch", "step"},
    "step": {"step", "iteration"},
}
"""Names that the recorder may give a declared kind of steps; of others the name is the kind."""

REST: Final = "rest"
"""Of a program without steps: all parts but those that it has in common with others."""

_IN_LOOP: Final = ("steps", "first_batch", "data_wait", "epoch_boundary", "evaluation")
_COMMON: Final = {"start", "imports", "garbage_collection"}
_NOTHING: Final = re.compile(r"nothing was recorded: (?P<why>[^;\n]*)")
_NO_STEP: Final = re.compile(r"(?P<why>no step was (found|recorded)[^;\n]*)")


@dataclass(frozen=True, slots=True)
class Kept:
    """The ledger of one process."""

    process: int
    run: Run
    process_began: int
    """When the process began, in ns of `time.perf_counter_ns`."""
    lines: dict[str, tuple[str, int]]
    """The file and line of the loop by the kind of its steps, where the ledger states them."""
    parent: int = 0
    """The process that started it."""

    @property
    def step_ends(self) -> list[int]:
        """When each step ended, in ns of `time.perf_counter_ns`."""
        steps = self.run.segments.drop_nulls("kind")
        return [n + self.process_began for n in (steps["start"] + steps["duration"]).to_list()]


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the run in the ledger and by the clock."""

    name: str
    ledger_ns: int
    clock_ns: int
    wall_ns: int

    @property
    def difference(self) -> float:
        """How much more the ledger has, as a share of the wall time."""
        return (self.ledger_ns - self.clock_ns) / self.wall_ns if self.wall_ns else 0.0

    @property
    def is_right(self) -> bool:
        return abs(self.difference) <= TOLERANCE


def kept_runs(folder: Path) -> list[Kept]:
    """Returns the ledgers in a folder, those with the most steps first."""
    found = [_kept(path) for path in sorted(folder.glob("*.run.jsonl"))]
    return sorted(found, key=lambda kept: -sum(counted_steps(kept.run).values()))


def _kept(path: Path) -> Kept:
    data = path.read_bytes()
    lines = [json.loads(line) for line in data.splitlines() if line.endswith(b"}")]
    stated = {
        str(line["name"]): (str(line["file"]), int(line["line"]))
        for line in lines
        if {"kind", "name", "file", "line"} <= line.keys()
    }
    head: dict[str, Any] = lines[0]
    run = read_ledger(data, str(path))
    began, parent = int(head["process_began"]), int(head.get("parent", 0))
    return Kept(int(head["process"]), run, began, stated, parent)


def counted_steps(run: Run) -> Counter[str]:
    """Returns the number of steps by kind; unusual ones are of their kind."""
    kinds = run.segments.drop_nulls("kind")["kind"].cast(str).to_list()
    return Counter(
        kind.removesuffix(UNUSUAL_KIND_SUFFIX) for kind in kinds if kind != UNCOUNTED_STEPS_NAME
    )


def uncounted_spans(run: Run) -> list[tuple[int, int]]:
    """Returns when the ledger says that steps went on that it did not count one by one.

    In ns since the process began, as the ledger has it.
    """
    segments = run.segments.drop_nulls("kind")
    spans = segments.filter(segments["kind"].cast(str) == UNCOUNTED_STEPS_NAME)
    starts, durations = spans["start"].to_list(), spans["duration"].to_list()
    return [(start, start + took) for start, took in zip(starts, durations, strict=True)]


def refusal(program: Program, said: str, kept: Iterable[Kept], *, has_trace: bool) -> str | None:
    """Returns the sentence that was printed in place of an answer; None if there was an answer.

    An answer is a trace, or a ledger with steps. Where a program has no steps it is the account of
    the run, without a sentence that nothing was recorded.
    """
    found = _NOTHING.search(said)
    if program.steps:
        if has_trace or any(counted_steps(one.run) for one in kept):
            return None
        found = found or _NO_STEP.search(said)
        return found["why"] if found else "no trace, no ledger with steps, and no word about it"
    if found:
        return found["why"]
    return None if re.search(r"^Run ", said, re.MULTILINE) else "no account of the run was printed"


def steps_fault(
    program: Program, said: str, kept: list[Kept], clocks: dict[int, Clocked]
) -> str | None:
    """Returns what is wrong with the steps, or with what is said where there are none."""
    with_steps = [one for one in kept if counted_steps(one.run)]
    if not program.steps:
        if with_steps:
            return f"{_told(counted_steps(with_steps[0].run))} where nothing repeats"
        if program.says is not None and not re.search(program.says, said):
            return f"it does not say `{program.says}`"
        return None
    if len(with_steps) != program.processes:
        return f"steps in {len(with_steps)} processes, expected in {program.processes}"
    faults = [
        _count_fault(program.steps, counted_steps(one.run), bool(uncounted_spans(one.run)))
        for one in with_steps
    ]
    faults += [_line_fault(program, one) for one in with_steps]
    for one in with_steps:
        clock = clocks.get(one.process)
        if clock is not None:
            faults += [_place_fault(steps, one, clock) for steps in program.steps]
    return next((fault for fault in faults if fault is not None), None)


def _count_fault(expected: tuple[Steps, ...], found: Counter[str], is_in_part: bool) -> str | None:
    """Each kind within 1 of its number, and no other kind.

    A ledger that says that it did not count all steps one by one may have fewer. The iterations
    before the first update, which are skipped, may be one rollout.
    """
    left = Counter(found)
    if left["rollout"] <= 1 and any(steps.skipped for steps in expected):
        del left["rollout"]
    wanted = ", ".join(f"{steps.count} {steps.kind}" for steps in expected)
    for steps in expected:
        names = NAMES.get(steps.kind, {steps.kind})
        name = next((name for name in left if name in names), None)
        surplus = 0 if name is None else left.pop(name) - steps.count
        if name is None or surplus > 1 or (surplus < -1 and not is_in_part):
            return f"{_told(found)}, expected {wanted}"
    return f"{_told(found)}, expected {wanted}" if left else None


def _line_fault(program: Program, kept: Kept) -> str | None:
    """The loop's line, where the ledger states one."""
    for steps in program.steps:
        text = steps.loop or steps.line or steps.call
        names = NAMES.get(steps.kind, {steps.kind})
        stated = next((kept.lines[name] for name in names if name in kept.lines), None)
        if text is None or stated is None:
            continue
        file, line = program.line_of(text)
        if not stated[0].endswith(file) or stated[1] != line:
            return f"the loop of {steps.kind} at {stated[0]}:{stated[1]}, expected {file}:{line}"
    return None


def _place_fault(steps: Steps, kept: Kept, clock: Clocked) -> str | None:
    """One step ends in each iteration of the loop, but for the first two and the last.

    Iterations that the ledger says it did not count one by one are left out.
    """
    begins = clock.iterations.get(steps.loop or "", [])[steps.skipped :: steps.rounds]
    for low, high in uncounted_spans(kept.run):
        low, high = low + kept.process_began, high + kept.process_began
        begins = [begin for begin in begins if not low <= begin < high]
    if len(begins) < 3:
        return None
    ends = sorted(kept.step_ends)
    wrong = 0
    at = 0
    for low, high in pairwise(begins):
        while at < len(ends) and ends[at] < low:
            at += 1
        within = at
        while within < len(ends) and ends[within] < high:
            within += 1
        wrong += within - at != 1
        at = within
    if wrong <= 2:
        return None
    rounds = "iterations" if steps.rounds == 1 else f"rounds of {steps.rounds} iterations"
    return f"{wrong} of {len(begins)} {rounds} do not have the end of one step"


def _told(found: Counter[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in found.most_common()) or "no steps"


def parts(program: Program, kept: Kept, clock: Clocked, spawned: int | None) -> list[Part]:
    """Returns the parts in the ledger and by the clock, with the whole as `wall`.

    `spawned` is when the parent started the process. Of a process that the program started it is
    None: there the process began when the kernel says so, as the ledger reads it, too, and neither
    the end nor the whole is compared, since the clock does not see the process end.

    The clock cannot see selftime at work, so what the ledger counts as `recording` is taken off the
    phase in which it is, at the beginning of each segment.
    """
    began = kept.process_began if spawned is None else spawned
    is_root = spawned is not None and clock.end is not None
    wall = (clock.end if is_root and clock.end else clock.intervals[-1].end) - began
    seen = clock.times() | {"start": clock.start - began}
    for name, time in _recording_within(kept, clock.intervals).items():
        seen[name] -= time
    told: dict[str, int] = {"start": kept.run.own_startup_ns}
    for row in run_parts(kept.run).rows(named=True):
        if row["part"] != "recording":
            told[row["part"]] = told.get(row["part"], 0) + row["duration"]
    whole = [Part("wall", _wall(kept), wall, wall)] if is_root else []
    if not is_root:
        told.pop("end", None)
        seen.pop("end", None)
    if not program.steps:
        told, seen = _without_steps(told), _without_steps(seen)
    elif any(steps.call for steps in program.steps):
        told, seen = _joined(told), _joined(seen)
    return whole + [
        Part(name, told.get(name, 0), seen.get(name, 0), wall)
        for name in sorted({*told, *seen})
        if told.get(name, 0) or seen.get(name, 0)
    ]


def _without_steps(times: dict[str, int]) -> dict[str, int]:
    common = {name: time for name, time in times.items() if name in _COMMON}
    return common | {REST: sum(times.values()) - sum(common.values())}


def _joined(times: dict[str, int]) -> dict[str, int]:
    """The steps of a library's loop with what the clock does not see in it."""
    apart = {name: time for name, time in times.items() if name not in _IN_LOOP}
    return apart | {"steps": sum(times.get(name, 0) for name in _IN_LOOP)}


def _wall(kept: Kept) -> int:
    """The ledger's wall time less what it counts as recording after the last step.

    Without steps the only segment has what was recorded while the program ran.
    """
    segments = kept.run.segments
    if segments.height < 2:
        return kept.run.wall_ns
    return kept.run.wall_ns - int(segments["recording"][-1])


def _recording_within(kept: Kept, intervals: tuple[Interval, ...]) -> dict[str, int]:
    """How much of the ledger's recording is in each part of the clock.

    Recording begins with its segment. Collections within it are counted as collections.
    """
    within: dict[str, int] = {}
    segments = kept.run.segments.filter(kept.run.segments["recording"] > 0)
    at = 0
    for start, time in segments.select("start", "recording").iter_rows():
        low, left = start + kept.process_began, time
        while at < len(intervals) and intervals[at].end <= low:
            at += 1
        for interval in intervals[at:]:
            if left <= 0:
                break
            if interval.part != "garbage_collection":
                overlap = min(left, interval.end - max(low, interval.start))
                within[interval.part] = within.get(interval.part, 0) + overlap
                left -= overlap
    return within

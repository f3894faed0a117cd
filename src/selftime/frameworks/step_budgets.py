"""Checks that a step's times and counts stay within a budget, by recording a few steps.

Counts are exact, and every recorded step must stay within them. Times are those of steps without
the recorder. Other programs make steps longer, never shorter, so a time exceeds its budget only if
three of four steps do.
"""

import linecache
import sys
import time
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import quantiles
from typing import Final

import polars as pl

from selftime.capture import schedule
from selftime.capture.facts.machine import visible_devices
from selftime.capture.lines.line_marker import LineMarker
from selftime.capture.lines.sources import SourceFiles
from selftime.capture.profiler.profiler_stderr import hide_usdt_lines
from selftime.compare.check.step_measures import MEASURES, all_step_windows
from selftime.errors import SelftimeError, UsageError
from selftime.names.notebook_cells import place_text
from selftime.session import profile
from selftime.trace import Trace
from selftime.units import bytes_text, milliseconds_text, tenths_text, time_text

WARMUP_STEPS: Final = 3
"""Number of unmeasured first steps, in which allocators and caches warm up."""

TIMED_STEPS: Final = 8
"""Number of timed steps: the smallest number whose quartile does not depend on a single step."""

RECORDED_STEPS: Final = 3
"""Number of recorded steps: enough to contain what happens in every second step only."""

MAX_LISTED_SOURCE_LINES: Final = 3
"""Largest number of source lines that the message lists for each exceeded limit."""

_NAMES_OF_LIMITS_THAT_NEED_DEVICE: Final = ("launches", "syncs", "copies")
"""Limits of a budget that can be checked only on a machine with a GPU or other accelerator."""


class StepOverBudget(SelftimeError):  # noqa: N818 - a result rather than an error
    """Raised if a step exceeds its budget; the message names the costliest source lines."""


class BudgetCannotBeJudged(SelftimeError):  # noqa: N818 - likewise
    """Raised if this machine cannot measure whether a step stays within its budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBudget:
    """Upper limits of a step's time, counts and bytes; a limit of None is not checked."""

    host_ms: float | None = None
    """Upper limit of a step's host time, in ms."""
    operators: int | None = None
    """Upper limit of operators per step, including those called by other operators."""
    launches: int | None = None
    """Upper limit of calls per step that launch work on a device."""
    syncs: int | None = None
    """Upper limit of waits of the host for a device per step."""
    copies: int | None = None
    """Upper limit of copies and memsets per step to, from and on a device."""
    allocations: int | None = None
    """Upper limit of memory allocations per step, on the host and on devices."""
    peak_bytes: int | None = None
    """Upper limit of the peak of allocated bytes on a device during a step, beyond those at its
    start."""

    def __post_init__(self) -> None:
        limits = self.limits
        if not limits:
            names = ", ".join(f.name for f in fields(self))
            raise UsageError(f"the budget has no limit; give one of {names}")
        for name, limit in limits.items():
            if isinstance(limit, bool) or not limit >= 0:
                raise UsageError(f"`{name}` is {limit!r}; give a number from 0")

    @property
    def limits(self) -> dict[str, float]:
        limits = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: limit for name, limit in limits.items() if limit is not None}


class StepMeasurement:
    """Measures the steps of a loop, and compares them with a budget."""

    def __init__(self, budget: StepBudget) -> None:
        self.budget = budget
        self._seen = 0
        self._times: list[int] = []
        self._began = 0
        self._first_recorded = WARMUP_STEPS + (TIMED_STEPS if budget.host_ms is not None else 0)
        self._counts = budget.limits.keys() - {"host_ms"}
        self._profile = profile(
            schedule=schedule(wait=0, warmup=1, active=RECORDED_STEPS, repeat=1),
            with_stack=True,
            profile_memory=bool(self._counts & {"allocations", "peak_bytes"}),
        )
        self._profile.pitfalls.started_by_program = False  # its warnings are reported here
        self._line_marker = LineMarker(SourceFiles)

    @property
    def needed_steps(self) -> int:
        """Returns how many steps must run before they can be compared with the budget."""
        return self._first_recorded + 1 + RECORDED_STEPS + 1

    @property
    def done(self) -> bool:
        return self._seen >= self.needed_steps

    def step(self) -> None:
        """Marks the end of one step and the start of the next step."""
        now = time.perf_counter_ns()
        self._seen += 1
        if WARMUP_STEPS < self._seen <= self._first_recorded:
            self._times.append(now - self._began)
        with hide_usdt_lines():
            self._advance_recording_by_one_step()
        self._began = time.perf_counter_ns()

    def _advance_recording_by_one_step(self) -> None:
        if self._seen == self._first_recorded:
            self._profile.start()
        elif self._profile.running:
            self._profile.step()
            if self._seen + 1 == self.needed_steps:
                self._profile.stop()
                self._line_marker.begin_marking()
        elif self.done:
            self._end_recording_of_source_lines()

    def _end_recording_of_source_lines(self) -> None:
        """Ends the step after the profiled steps, in which source lines are recorded."""
        self._line_marker.end_marking()
        if self._profile.marked_lines is None:
            self._profile.marked_lines = self._line_marker.marks

    def stop_recording(self) -> None:
        """Stops all recording, even if fewer steps were run than needed."""
        self._line_marker.end_marking()
        if self._profile.running:
            with hide_usdt_lines():
                self._profile.stop()

    def raise_if_over_budget(self) -> None:
        """Raises StepOverBudget if the measured steps exceed the budget.

        Raises:
            StepOverBudget: A limit is exceeded, or there were too few steps.
            BudgetCannotBeJudged: A limit is about devices, and this machine has none.
        """
        if not self.done:
            raise StepOverBudget(
                f"too few steps: {self._seen} were run, and {self.needed_steps} are needed"
            )
        blind = [name for name in _NAMES_OF_LIMITS_THAT_NEED_DEVICE if name in self._counts]
        if blind and not visible_devices():
            raise BudgetCannotBeJudged(
                f"this machine has no device, so {' and '.join(blind)} cannot be counted"
            )
        trace = self._profile.trace()
        over = [
            text
            for name in self.budget.limits
            for text in self._lines_on_exceeded_limit(name, trace)
        ]
        if over:
            raise StepOverBudget("\n".join(["a step exceeds its budget:", *over]))

    def _lines_on_exceeded_limit(self, limit_name: str, trace: Trace) -> list[str]:
        limit = self.budget.limits[limit_name]
        if limit_name == "host_ms":
            quick = quantiles(self._times, n=4)[0] / 1e6
            if quick <= limit:
                return []
            told = (
                f"three of four steps took {milliseconds_text(quick)} or more, and {limit:g} ms "
                "are allowed"
            )
        else:
            values = MEASURES[limit_name].per_step(trace, all_step_windows(trace))
            if not values.size:
                raise BudgetCannotBeJudged(f"the recorded steps do not tell `{limit_name}`")
            most = int(values.max())
            if most <= limit:
                return []
            show = bytes_text if limit_name == "peak_bytes" else str
            told = f"{show(most)} in a step, and {show(int(limit))} are allowed"
        return [f"  {limit_name}: {told}", *_costliest_source_lines_text(limit_name, trace)]


def _costliest_source_lines_text(limit_name: str, trace: Trace) -> list[str]:
    """Returns text lines on the source lines that contribute most to an exceeded limit."""
    lines = _table_of_costs_by_source_line(limit_name, trace).filter(pl.col("cost") > 0)
    steps = max(1, trace.view("steps").height)
    told = []
    for file, line, how, function, cost in (
        lines.sort("cost", descending=True).head(MAX_LISTED_SOURCE_LINES).rows()
    ):
        text = _source_line_text(file, line)
        if how == "definition":
            text = f"(somewhere in it; line {line} is where it begins)"
        place = place_text(file, line)
        told += [f"    {place} in {function}: {_line_cost_text(limit_name, cost / steps)}"]
        told += [f"        {text}"] if text else []
    return told


def _table_of_costs_by_source_line(limit_name: str, trace: Trace) -> pl.DataFrame:
    by_line = {
        "host_ms": lambda: _locations_and_costs(
            trace.view("lines", counted=True), pl.col("self_cpu_time") - pl.col("waits")
        ),
        "operators": lambda: _locations_and_costs(
            trace.view("operators", by="line"), pl.col("count")
        ),
        "launches": lambda: _locations_and_costs(
            trace.view("launches", by="line"), pl.col("count")
        ),
        "syncs": lambda: _locations_and_costs(trace.view("syncs", by="line"), pl.col("count")),
        "copies": lambda: _locations_and_costs(trace.view("copies", by="line"), pl.col("count")),
        "allocations": lambda: _locations_and_costs(trace.view("memory_events"), pl.lit(1)),
        "peak_bytes": lambda: _locations_and_costs(
            trace.view("memory_peak", by="line"), pl.col("bytes")
        ),
    }
    known = by_line[limit_name]().filter(pl.col("file").is_not_null())
    files = {file: _relative_to_working_folder(file) for file in known["file"].unique()}
    return (
        known.with_columns(pl.col("file").replace(files))
        .group_by("file", "line", "how", maintain_order=True)
        .agg(pl.col("function").first(), pl.col("cost").sum())
    )


def _locations_and_costs(table: pl.DataFrame, cost: pl.Expr) -> pl.DataFrame:
    return table.select("file", "line", "how", "function", cost.cast(pl.Int64).alias("cost"))


def _relative_to_working_folder(file: str) -> str:
    """Returns a path relative to the working folder; unchanged if it is outside of that folder."""
    here = Path.cwd()
    return str(Path(file).relative_to(here)) if Path(file).is_relative_to(here) else file


def _line_cost_text(limit_name: str, amount: float) -> str:
    if limit_name == "host_ms":
        return f"{time_text(amount)} a step while it is recorded"
    if limit_name == "peak_bytes":
        return f"{bytes_text(int(amount * RECORDED_STEPS))} at the peak"
    return f"{tenths_text(amount)} a step"


def _source_line_text(file: str, line: int) -> str:
    """Returns the source text of a line; empty if the file is not found."""
    for folder in (Path.cwd(), *(Path(entry) for entry in sys.path)):
        text = linecache.getline(str(folder / file), line).strip()
        if text:
            return text
    return ""

"""What a step may take at most: counted in a recording of a few steps, and told with its lines.

Counts are exact, and every recorded step has to keep within them. Times are of steps that were not
recorded. What else runs on a machine makes steps longer, never shorter; so a time is over its
budget only where three steps of four are.
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
from selftime.capture.chatter import without_marks
from selftime.capture.facts.machine import devices
from selftime.capture.lines.sources import SourceFiles
from selftime.capture.lines.stamps import Stamps
from selftime.compare.measures import MEASURES, all_steps
from selftime.errors import SelftimeError, UsageError
from selftime.session import profile
from selftime.trace import Trace
from selftime.units import bytes_text

WARMUP: Final = 3
"""Steps that are not looked at: the first sets up, allocators and caches settle in the next."""

TIMED: Final = 8
"""Steps whose time is taken: the fewest of which a quartile is no single step's."""

RECORDED: Final = 3
"""Steps that are counted: what comes in every second step only is seen."""

LINES: Final = 3
"""Lines that are named for each budget that is exceeded."""

_OF_DEVICES: Final = ("launches", "syncs", "copies")


class OverBudget(SelftimeError):  # noqa: N818 - reads as what was found
    """A step takes more than it may; the text names the lines."""


class Unjudged(SelftimeError):  # noqa: N818 - likewise
    """A budget cannot be judged on this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most that a step may take; None is not looked at."""

    host_ms: float | None = None
    """Time on the host."""
    operators: int | None = None
    """Operators, those that others call too."""
    launches: int | None = None
    """Calls that put work on a device."""
    syncs: int | None = None
    """Waits of the host for a device."""
    copies: int | None = None
    """Copies and fills on a device, from it and to it."""
    allocations: int | None = None
    """Allocations of memory, on the host or a device."""
    peak_bytes: int | None = None
    """Bytes that are allocated at once beyond those at the step's beginning, on one device."""

    def __post_init__(self) -> None:
        given = self.given
        if not given:
            names = ", ".join(f.name for f in fields(self))
            raise UsageError(f"a budget without a limit holds nothing; give one of {names}")
        for name, limit in given.items():
            if isinstance(limit, bool) or not limit >= 0:
                raise UsageError(f"`{name}` is {limit!r}; give a number from 0")

    @property
    def given(self) -> dict[str, float]:
        limits = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: limit for name, limit in limits.items() if limit is not None}


class Measurement:
    """Is told where steps end, and judges them when it has enough."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._seen = 0
        self._times: list[int] = []
        self._began = 0
        self._first_recorded = WARMUP + (TIMED if budget.host_ms is not None else 0)
        self._counts = budget.given.keys() - {"host_ms"}
        self._profile = profile(
            schedule=schedule(wait=0, warmup=1, active=RECORDED, repeat=1),
            with_stack=True,
            profile_memory=bool(self._counts & {"allocations", "peak_bytes"}),
        )
        self._profile.traps.attended = False  # what it would warn of is told here
        self._stamps = Stamps(SourceFiles)

    @property
    def needed(self) -> int:
        """Steps to make, at least."""
        return self._first_recorded + 1 + RECORDED + 1

    @property
    def done(self) -> bool:
        return self._seen >= self.needed

    def step(self) -> None:
        """A step has ended and another begins."""
        now = time.perf_counter_ns()
        self._seen += 1
        if WARMUP < self._seen <= self._first_recorded:
            self._times.append(now - self._began)
        with without_marks():
            self._record()
        self._began = time.perf_counter_ns()

    def _record(self) -> None:
        if self._seen == self._first_recorded:
            self._profile.start()
        elif self._profile.running:
            self._profile.step()
            if self._seen + 1 == self.needed:
                self._profile.stop()
                self._stamps.begin()
        elif self.done:
            self._end_marks()

    def _end_marks(self) -> None:
        """The step after the recorded ones ran under line marks, which tell what those lack."""
        self._stamps.end()
        if self._profile.stamps is None:
            self._profile.stamps = self._stamps.marks

    def stop(self) -> None:
        """Leave nothing running: the steps ended early."""
        self._stamps.end()
        if self._profile.running:
            with without_marks():
                self._profile.stop()

    def judge(self) -> None:
        """Raise an OverBudget that names what is exceeded and where, or an Unjudged."""
        if not self.done:
            raise OverBudget(
                f"nothing is known of a step: {self._seen} were made, and {self.needed} are needed"
            )
        blind = [name for name in _OF_DEVICES if name in self._counts]
        if blind and not devices():
            raise Unjudged(f"no device is here, so nothing is known of {' and '.join(blind)}")
        trace = self._profile.trace()
        over = [text for name in self.budget.given for text in self._exceeded(name, trace)]
        if over:
            raise OverBudget("\n".join(["a step takes more than its budget:", *over]))

    def _exceeded(self, name: str, trace: Trace) -> list[str]:
        limit = self.budget.given[name]
        if name == "host_ms":
            quick = quantiles(self._times, n=4)[0] / 1e6
            if quick <= limit:
                return []
            told = f"three of four steps took {quick:.3g} ms or more, and {limit:g} ms are allowed"
        else:
            most = int(MEASURES[name].of(trace, all_steps(trace)).max())
            if most <= limit:
                return []
            show = bytes_text if name == "peak_bytes" else str
            told = f"{show(most)} in a step, and {show(int(limit))} are allowed"
        return [f"  {name}: {told}", *_costs(name, trace)]


def _costs(name: str, trace: Trace) -> list[str]:
    """The lines that cost most of it, with their text."""
    lines = _by_line(name, trace).filter(pl.col("cost") > 0)
    steps = max(1, trace.view("steps").height)
    told = []
    for file, line, how, function, cost in lines.sort("cost", descending=True).head(LINES).rows():
        text = _text(file, line)
        if how == "definition":
            text = f"(somewhere in it; line {line} is where it begins)"
        told += [f"    {file}:{line} in {function}: {_cost(name, cost / steps)}"]
        told += [f"        {text}"] if text else []
    return told


def _by_line(name: str, trace: Trace) -> pl.DataFrame:
    by_line = {
        "host_ms": lambda: _named(
            trace.view("lines", counted=True), pl.col("self_cpu_time") - pl.col("waits")
        ),
        "operators": lambda: _named(trace.view("operators", by="line"), pl.col("count")),
        "launches": lambda: _named(trace.view("launches", by="line"), pl.col("count")),
        "syncs": lambda: _named(trace.view("syncs", by="line"), pl.col("count")),
        "copies": lambda: _named(trace.view("copies", by="line"), pl.col("count")),
        "allocations": lambda: _named(trace.view("memory_events"), pl.lit(1)),
        "peak_bytes": lambda: _named(trace.view("memory_peak", by="line"), pl.col("bytes")),
    }
    known = by_line[name]().filter(pl.col("file").is_not_null())
    files = {file: _from_here(file) for file in known["file"].unique()}
    return (
        known.with_columns(pl.col("file").replace(files))
        .group_by("file", "line", "how", maintain_order=True)
        .agg(pl.col("function").first(), pl.col("cost").sum())
    )


def _named(table: pl.DataFrame, cost: pl.Expr) -> pl.DataFrame:
    return table.select("file", "line", "how", "function", cost.cast(pl.Int64).alias("cost"))


def _from_here(file: str) -> str:
    """The file as it is named from here: some rows have it from an entry of `sys.path`."""
    here = Path.cwd()
    return str(Path(file).relative_to(here)) if Path(file).is_relative_to(here) else file


def _cost(name: str, amount: float) -> str:
    if name == "host_ms":
        return f"{amount / 1e6:.3g} ms a step while it is recorded"
    if name == "peak_bytes":
        return f"{bytes_text(int(amount * RECORDED))} at the peak"
    return f"{amount:.3g} a step"


def _text(file: str, line: int) -> str:
    """The line as it is written, if its file is found from here."""
    for folder in (Path.cwd(), *(Path(entry) for entry in sys.path)):
        text = linecache.getline(str(folder / file), line).strip()
        if text:
            return text
    return ""

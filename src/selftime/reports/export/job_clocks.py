"""Puts the times of a job's ranks on one clock, for exports that hold all of them.

The clocks of the ranks are aligned at the ends of their collectives, as in the view `ranks`; the
clock of a rank without common collectives stays unchanged.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from selftime.analysis.ranks.clocks import RankClock
from selftime.analysis.ranks.job_ranks import Ranks, collectives_on_one_clock
from selftime.array_types import Ints
from selftime.reports.export.export_format import ExportResult
from selftime.trace import Job, Trace

ToFileTimes: TypeAlias = Callable[[Ints], Ints]
"""Converts times of a trace in ns to those of a file; the first event of the job is at 0."""


@dataclass(frozen=True, slots=True)
class JobClocks:
    """How the times of each trace of a job become times of one file."""

    to_file_times_by_path: dict[str, ToFileTimes]
    unaligned_count: int
    """Number of traces whose clock is their own, since they share no collective."""

    def record_unaligned(self, result: ExportResult) -> None:
        """Says in a result how many clocks could not be aligned."""
        result.record_left_out(
            "alignments of clocks: no collective is shared", self.unaligned_count
        )


def clocks_of_job(job: Job) -> JobClocks:
    """Returns how the times of each trace of a job become times of one file."""
    clocks = _common_clock_conversion_by_path(job)
    first_time = min(
        (_earliest_ns_on_common_clock(trace, clocks[path]) for path, trace in job.traces.items()),
        default=0,
    )
    by_path: dict[str, ToFileTimes] = {
        path: partial(
            _times_on_common_clock, clocks[path] or RankClock(), trace.origin or 0, first_time
        )
        for path, trace in job.traces.items()
    }
    return JobClocks(by_path, [*clocks.values()].count(None))


def _common_clock_conversion_by_path(job: Job) -> dict[str, RankClock | None]:
    """Returns by trace path the conversion of times to the job's common clock; None if unknown."""
    ranks = Ranks.of(job)
    clocks_by_path: dict[str, RankClock | None] = dict.fromkeys(job.traces)
    clocks_by_key = collectives_on_one_clock(ranks).clocks.clock_by_rank
    for key, rank in ranks.ranks_by_key().items():
        clock = clocks_by_key.get(key)
        is_aligned = clock is not None and clock.residual is not None
        clocks_by_path.update(dict.fromkeys(rank.paths, clock if is_aligned else None))
    return clocks_by_path


def _times_on_common_clock(
    clock: RankClock, origin: int, first_time: int, trace_times: Ints
) -> Ints:
    """Converts times of a rank's trace (ns) to ns since `first_time` on the common clock."""
    return clock.to_reference_times(trace_times + origin) - first_time


def _earliest_ns_on_common_clock(trace: Trace, clock: RankClock | None) -> int:
    """Returns the earliest time of a trace on the common clock, in ns."""
    first_times = [trace.slices["start"].min(), trace.memory["time"].min()]
    first = min([0, *(time for time in first_times if isinstance(time, int))])
    return int(
        (clock or RankClock()).to_reference_times(
            np.array([first + (trace.origin or 0)], np.int64)
        )[0]
    )

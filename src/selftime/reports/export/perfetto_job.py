"""Exports the traces of all ranks of a job to one Perfetto file, with times on a common clock.

The clocks of the ranks are aligned at the ends of their collectives, as in the view `ranks`; the
clock of a rank without common collectives stays unchanged.
"""

from functools import partial
from pathlib import Path

import numpy as np

from selftime.analysis.ranks.clocks import RankClock
from selftime.analysis.ranks.job_ranks import Ranks, collectives_on_one_clock
from selftime.array_types import Ints
from selftime.reports.export.export_format import ExportOptions, ExportResult
from selftime.reports.export.perfetto import PerfettoPacketSequence
from selftime.reports.trace_file import open_file_writer
from selftime.trace import Job, Trace


def write_job(job: Job, output: Path, options: ExportOptions) -> ExportResult:
    """Writes all traces of a job to one Perfetto file, one rank after the other.

    Raises:
        UsageError: `output` is a folder, or has an unsupported suffix.
        SelftimeError: The file cannot be written.
    """
    clocks = _common_clock_conversion_by_path(job)
    first_time = min(
        (_earliest_ns_on_common_clock(trace, clocks[path]) for path, trace in job.traces.items()),
        default=0,
    )
    result, first_track = ExportResult(), 1
    with open_file_writer(output, next(iter(job.traces), "")) as write_bytes:
        for number, (path, trace) in enumerate(job.traces.items(), 1):
            label_prefix = f"{job.members[path].label}: "
            clock = partial(
                _times_on_common_clock, clocks[path] or RankClock(), trace.origin or 0, first_time
            )
            sequence = PerfettoPacketSequence(
                trace,
                write_bytes,
                sequence_id=number,
                first_track=first_track,
                process_prefix=label_prefix,
                to_file_times=clock,
            )
            sequence.write(options)
            first_track = sequence.tracks.next_track_number
            for counts, rank_counts in (
                (result.written, sequence.result.written),
                (result.left_out, sequence.result.left_out),
            ):
                for what, count in rank_counts.items():
                    counts[what] = counts.get(what, 0) + count
    result.size = write_bytes.size
    result.written["traces"] = len(job)
    result.record_left_out(
        "alignments of clocks: no collective is shared", [*clocks.values()].count(None)
    )
    return result


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

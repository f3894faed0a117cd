"""The traces of a job in one file for Perfetto: each rank's processes, on one clock.

The clocks of the ranks are brought together at the ends of their collectives, as the view `ranks`
does; those of ranks that share none stay as they are.
"""

from functools import partial
from pathlib import Path

import numpy as np

from selftime.analysis.ranks.clocks import Clock
from selftime.analysis.ranks.ranks import Ranks, joined_ranks
from selftime.arrays import Ints
from selftime.reports.exports.base import Asked, Told
from selftime.reports.exports.perfetto import Sequence
from selftime.reports.trace_file import new_file
from selftime.trace import Job, Trace


def write_job(job: Job, output: Path, asked: Asked) -> Told:
    """Write the traces of a job, of one rank after the other.

    Raises:
        UsageError: `output` is nothing that can be written to.
        SelftimeError: It cannot be written.
    """
    clocks = _clocks(job)
    zero = min((_first(trace, clocks[path]) for path, trace in job.traces.items()), default=0)
    told, first = Told(), 1
    with new_file(output, next(iter(job.traces), "")) as put:
        for number, (path, trace) in enumerate(job.traces.items(), 1):
            prefix = f"{job.members[path].label}: "
            clock = partial(_read, clocks[path] or Clock(), trace.origin or 0, zero)
            sequence = Sequence(
                trace, put, number=number, first_track=first, prefix=prefix, clock=clock
            )
            sequence.write(asked)
            first = sequence.tracks.next
            for counts, own in (
                (told.written, sequence.told.written),
                (told.left_out, sequence.told.left_out),
            ):
                for what, count in own.items():
                    counts[what] = counts.get(what, 0) + count
    told.size = put.size
    told.written["traces"] = len(job)
    told.lacks("alignments of clocks: no collective is shared", [*clocks.values()].count(None))
    return told


def _clocks(job: Job) -> dict[str, Clock | None]:
    """By path: how its rank's clock is read as the common one; None if that is not known."""
    ranks = Ranks.of(job)
    found: dict[str, Clock | None] = dict.fromkeys(job.traces)
    of = joined_ranks(ranks).clocks.of
    for key, rank in ranks.by_key().items():
        clock = of.get(key)
        known = clock is not None and clock.residual is not None
        found.update(dict.fromkeys(rank.paths, clock if known else None))
    return found


def _read(clock: Clock, origin: int, zero: int, times: Ints) -> Ints:
    return clock.read(times + origin) - zero


def _first(trace: Trace, clock: Clock | None) -> int:
    """The earliest instant of a trace by the common clock."""
    times = [trace.slices["start"].min(), trace.memory["time"].min()]
    first = min([0, *(one for one in times if isinstance(one, int))])
    return int((clock or Clock()).read(np.array([first + (trace.origin or 0)], np.int64))[0])

"""What the recorder says of itself, and what it did to the program."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import polars as pl

from selftime import names
from selftime.analysis.health.checks import Check, Verdict, several
from selftime.analysis.health.recording import Recording
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.intervals import intersect, length
from selftime.units import share_text

_SLOWED: Final = 1.5
"""Beyond this factor the recording has changed what it measured."""
_MUCH_OWN: Final = 0.02
"""From this share of a step on a cause is worth a finding: the recorder must not be one."""
_FLAGS: Final = {
    "with_stack": "Python stacks",
    "profile_memory": "memory",
    "record_shapes": "shapes",
    "with_flops": "FLOPs",
    "with_modules": "modules",
}
"""Options of the profiler, as the trace's keys name them, that slow the host."""
_LOGS: Final = ("ERROR", "WARNING", "INFO")
_SHOWN: Final = 160


def partial(recording: Recording) -> Iterator[Check]:
    """Whether the recording ended before it was meant to."""
    ended = recording.trace.facts.get("partial")
    if ended:
        yield Check("recording", "degraded", f"it ended early: {ended}", None, "the last step")


def dropped(recording: Recording) -> Iterator[Check]:
    """What the recorder's log says of records that it lost."""
    lines = list(_log(recording.trace.metadata))
    lost = [line for line in lines if names.reports_lost_records(line)]
    if not lost:
        return
    counts = [names.lost_record_count(line) for line in lost]
    known = [count for count in counts if count is not None]
    first = lost[0] if len(lost[0]) <= _SHOWN else lost[0][:_SHOWN] + "…"
    text = f"the recorder says that it lost records: {first}"
    value = float(sum(known)) if known else None
    yield Check("dropped", "degraded", text, value, "idle, kernels, launches")


def _log(metadata: Mapping[str, Any]) -> Iterator[str]:
    for level in _LOGS:
        lines = metadata.get(level)
        for line in lines if isinstance(lines, list) else [lines]:
            if isinstance(line, str):
                yield line


def own_time(recording: Recording) -> Iterator[Check]:
    """How much of the steps the recorder spent on its own buffers."""
    rows = slices_on(recording.trace, "profiler")
    own = filter_by_name(rows, names.is_profiler_overhead)
    if not own.height:
        return
    steps = recording.steps.filter("counted")
    steps = steps if steps.height else recording.steps
    inside = covered_time(steps.select("start", duration=pl.col("end") - pl.col("start")))
    whole = length(inside)
    if not whole:
        return
    share = length(intersect(covered_time(own), inside)) / whole
    kinds = ", ".join(own["name"].unique().cast(pl.String).sort().head(3).to_list())
    verdict: Verdict = "degraded" if share > _MUCH_OWN else "good"
    text = f"the recorder's own work ({kinds}) takes {share_text(share)} of the steps"
    yield Check("recorder", verdict, text, share, "idle causes, host time")


def own_overhead(recording: Recording) -> Iterator[Check]:
    """By how much the recording slowed the steps, where it measured that."""
    overhead = recording.trace.facts.get("overhead")
    ratio = overhead.get("ratio") if isinstance(overhead, dict) else None
    if isinstance(ratio, int | float):
        verdict: Verdict = "degraded" if ratio > _SLOWED else "good"
        text = f"recorded steps took {ratio:.2f} times as long as those before and after"
        yield Check("overhead", verdict, text, float(ratio), "host times, launch-bound or not")


def flags(recording: Recording) -> Iterator[Check]:
    """Which options slowed the host: in measurements by 1.3 (none of them) to 1.7 (all)."""
    told = [what for flag, what in _FLAGS.items() if recording.trace.metadata.get(flag)]
    if recording.trace.frame_args.height and _FLAGS["with_stack"] not in told:
        told.insert(0, _FLAGS["with_stack"])
    if told:
        text = f"recorded with {', '.join(told)}: the host may have taken up to 1.7 times as long"
        yield Check("flags", "good", text, float(len(told)), "host times, launch-bound or not")


def waits(recording: Recording) -> Iterator[Check]:
    """Whether waits are known by the device's records, or by the names of calls alone."""
    if recording.trace.sync_args.height or not recording.work.height:
        return
    blocking = filter_by_name(recording.calls, names.is_blocking_call).height
    if blocking:
        text = (
            f"what {several(blocking, 'blocking call')} waited for is told by the names alone; "
            "`enable_cuda_sync_events` would record it"
        )
        yield Check("waits", "good", text, float(blocking), "syncs, critical path")

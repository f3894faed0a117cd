"""What a part of the program launched, and what changes if that part does."""

import polars as pl

from selftime.advice.detectors.counted_steps import covered, is_under
from selftime.advice.replay import Change, Cut, Scale
from selftime.analysis.device.work import device_work
from selftime.analysis.steps.steady_steps import is_within
from selftime.intervals import Intervals
from selftime.trace import Trace


def launched_by(trace: Trace, operators: pl.DataFrame) -> pl.Series:
    """Device work that these operators, or what they called, launched: ids of slices."""
    told = trace.device_args.filter(pl.col("operator").is_not_null()).select("id", "operator")
    launchers = trace.slices.select("track", "start")[told["operator"]]
    return told["id"].filter(pl.Series(is_under(launchers, operators), dtype=pl.Boolean))


def launched_during(trace: Trace, times: Intervals) -> pl.DataFrame:
    """Device work that was launched in these times; the rows of `device_work`."""
    work = device_work(trace).filter(pl.col("launched").is_not_null())
    window = pl.DataFrame({"start": times.starts, "end": times.ends})
    begun = is_within(work["launched"].to_numpy(), window)
    return work.filter(pl.Series(begun, dtype=pl.Boolean))


def change(trace: Trace, operators: pl.DataFrame, keep: float) -> Change:
    """What takes `keep` of its time if these operators do: on the device, else on the host."""
    if trace.device_args.height:
        return Scale(launched_by(trace, operators).cast(pl.Int64).to_numpy(), keep)
    return Cut(covered(operators), keep)


def shortened(trace: Trace, times: Intervals, keep: float) -> tuple[Change, ...]:
    """The changes of a program that does in `keep` of the time what it does in these times."""
    work = launched_during(trace, times)["id"].cast(pl.Int64).to_numpy()
    return (Cut(times, keep), *([Scale(work, keep)] if work.size else []))

"""Finds the steps of a run that are in its trace, and which other steps they represent."""

from dataclasses import dataclass
from typing import Final

import polars as pl

from selftime.analysis.run.slow_steps import steps_of_run
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.ledger_format import UNUSUAL_KIND_SUFFIX
from selftime.trace import Trace

MIN_PARTS_OF_A_STEP: Final = 2
"""Fewest recorded steps that are told to be parts of a step: a single one may be that step, whose
end the ledger saw later."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordedStepCoverage:
    """The steps of the run that are of the same kinds as those that a profiler recorded."""

    kinds: tuple[str, ...]
    """The kinds, the one with the most time first."""
    usual_ns: pl.Series
    """What each step took, in ns, without selftime's work, and for a slow one without the time
    beyond the median of its kind."""

    @property
    def steps(self) -> int:
        return self.usual_ns.len()

    @property
    def duration_ns(self) -> int:
        return int(self.usual_ns.sum())

    def saved_ns(self, saving_per_step_ns: float) -> int:
        """Returns what all steps save if each saves so much, but none more than it took, in ns."""
        return int(self.usual_ns.clip(upper_bound=int(saving_per_step_ns)).sum())


def recorded_step_coverage(trace: Trace) -> RecordedStepCoverage | None:
    """Returns which steps of its run a trace represents; None if the run has no recorded step.

    They are of the kinds that the trace has. The run may have recorded others before, which the
    recorder gave up, such as calls of a model before the training began. Where it is not known
    which steps the trace has, all that were recorded count.
    """
    run = trace.run
    family = pl.col("kind").cast(pl.String).str.strip_suffix(UNUSUAL_KIND_SUFFIX)
    usual = pl.col("duration") - pl.col("recording") - pl.col("excess")
    in_trace = step_starts_in_trace(trace)["segment"]
    is_recorded = pl.col("id").is_in(in_trace.implode()) if in_trace.len() else pl.col("recorded")
    steps = steps_of_run(run).select(
        family.alias("kind"), usual.alias("usual"), is_recorded=is_recorded
    )
    is_covered = pl.col("is_recorded").any().over("kind")
    covered = steps.filter(is_covered)
    if not covered.height:
        return None
    times = covered.group_by("kind").agg(pl.col("usual").sum()).sort("usual", descending=True)
    return RecordedStepCoverage(tuple(times["kind"]), covered["usual"])


def step_starts_in_trace(trace: Trace) -> pl.DataFrame:
    """Returns the steps of the run that are in the trace: segment, trace_start (ns).

    A recorded step of the run is the step of the trace that ends at the same instant, or within
    half of its duration of that: the two clocks differ by far less. Begins are not compared, for
    the trace leaves out what the recorder does between two steps. The table is empty if either
    clock is not known in relation to the Unix epoch.
    """
    run = trace.run
    recorded = run.segments.filter("recorded")
    found = {"segment": pl.UInt32, "trace_start": pl.Int64}
    if run.began_at is None or trace.origin is None or not recorded.height:
        return pl.DataFrame(schema=found)
    shift = run.began_at - trace.origin
    ended = pl.col("start") + pl.col("duration") + shift
    steps = recorded.select(pl.col("id").alias("segment"), "duration", ended.alias("ended"))
    in_trace = steps_with_counted_flags(trace).select(pl.col("start").alias("trace_start"), "end")
    joined = steps.sort("ended").join_asof(
        in_trace.sort("end"), left_on="ended", right_on="end", strategy="nearest", coalesce=False
    )
    apart = (pl.col("ended") - pl.col("end")).abs()
    return joined.filter(2 * apart <= pl.col("duration")).select(
        pl.col(name).cast(dtype) for name, dtype in found.items()
    )


def step_that_holds_all_recorded_ones(trace: Trace) -> str | None:
    """Returns the kind of the step of the run within which all steps of the trace lie.

    None if there is no such step, if the trace has a single one, or if the clocks of the run and
    the trace are not known in relation to the Unix epoch.
    """
    run, recorded = trace.run, steps_with_counted_flags(trace)
    if run.began_at is None or trace.origin is None or recorded.height < MIN_PARTS_OF_A_STEP:
        return None
    shift = run.began_at - trace.origin
    first, last = recorded["start"].to_list()[0], recorded["end"].to_list()[-1]
    start = pl.col("start") + shift
    holds_all = (start <= first) & (start + pl.col("duration") >= last)
    around = steps_of_run(run).filter(holds_all)
    return str(around["kind"][0]).removesuffix(UNUSUAL_KIND_SUFFIX) if around.height else None

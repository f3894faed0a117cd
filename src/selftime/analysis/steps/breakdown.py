"""Where the time of each step goes: by category, and by what ran whatever else did."""

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.cached import cached_per_trace
from selftime.analysis.slice_filters import slices_on
from selftime.analysis.steps.category_times import CATEGORIES, spans
from selftime.analysis.steps.steady_steps import assessed_steps
from selftime.arrays import Ints
from selftime.intervals import Intervals, before, subtract, union
from selftime.trace import Trace


@cached_per_trace
def breakdown(trace: Trace) -> pl.DataFrame:
    """For each of the judged steps, in order, how long it was in each category, in ns.

    Columns: time, from its begin until it was done; those of `CATEGORIES` and other, which add up
    to that: a moment counts to the first that holds of it; then, whatever else ran, busy (a device
    worked), all_communication and loading. What was not recorded anywhere is null: data loading,
    the work of devices, the calls that launched it.
    """
    steps = assessed_steps(trace)
    start, end = steps["begin"].to_numpy(), steps["done"].to_numpy()
    parts = spans(trace)
    table: dict[str, Ints] = {"time": end - start}
    covered = union([], [])
    for part in CATEGORIES:
        own = subtract(parts[part], covered)
        covered = _either(covered, parts[part])
        table[part] = within(own, start, end)
    table["other"] = (end - start) - within(covered, start, end)
    table["busy"] = within(parts["busy"], start, end)
    table["all_communication"] = within(parts["communication"], start, end)
    table["loading"] = within(parts["data_loading"], start, end)
    return pl.DataFrame(table).with_columns(
        pl.lit(None, pl.Int64).alias(part) for part in _unknown(trace, parts)
    )


def _unknown(trace: Trace, parts: dict[str, Intervals]) -> list[str]:
    """Columns of which nothing was recorded anywhere: not known, which is not zero."""
    unknown: list[str] = []
    if not parts["data_loading"].starts.size:
        unknown += ["data_loading", "loading"]
    host = slices_on(trace, "host")
    if not host.height:
        unknown.append("cpu")
    if not slices_on(trace, "device")["duration"].is_not_null().any():
        unknown += ["kernel", "memcpy", "memset", "busy"]
        if not parts["communication"].starts.size:
            unknown += ["communication", "all_communication"]
    elif not host["category"].is_in(list(names.CALLS)).any():
        unknown.append("runtime")  # what launched the work was not recorded
    return unknown


def _either(these: Intervals, those: Intervals) -> Intervals:
    starts = np.append(these.starts, those.starts)
    return union(starts, np.append(these.ends, those.ends))


def within(these: Intervals, start: Ints, end: Ints) -> Ints:
    """How much of a set lies in each of the windows, in ns."""
    return before(these, end) - before(these, start)

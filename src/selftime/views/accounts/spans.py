"""When the program was in which category: sets of time, over the whole trace.

The categories are those of the old TensorBoard plugin, in its order of precedence: a moment counts
to the first that holds of it.
"""

from typing import Final

import polars as pl

from selftime import names
from selftime.intervals import Intervals, union
from selftime.trace import Trace
from selftime.views.accounts.named import of_kind, whose_name
from selftime.views.accounts.work import device_work

__all__ = ["CATEGORIES", "DEVICE_CATEGORIES", "spans", "times_of"]

DEVICE_CATEGORIES: Final = ("kernel", "memcpy", "memset", "communication")
"""Categories in which a device works; where a trace has no device work, hosts communicate."""
CATEGORIES: Final = (*DEVICE_CATEGORIES, "runtime", "data_loading", "cpu")
"""Every category but `other`, by precedence."""


def spans(trace: Trace) -> dict[str, Intervals]:
    """The time of each of `CATEGORIES`, whatever else ran then."""
    work, host = device_work(trace), of_kind(trace, "host")
    marked = whose_name(host, names.is_collective_annotation) if not work.height else host.clear()
    on_device = {kind: times_of(work.filter(pl.col("kind") == kind)) for kind in DEVICE_CATEGORIES}
    calls = host["category"].cast(pl.String).is_in(list(names.CALLS))
    return {
        **on_device,
        "communication": times_of(marked) if marked.height else on_device["communication"],
        "runtime": times_of(host.filter(calls)),
        "data_loading": times_of(whose_name(host, names.is_data_loading)),
        "cpu": times_of(whose_name(host, lambda name: names.step_number(name) is None)),
    }


def times_of(slices: pl.DataFrame) -> Intervals:
    """The time covered by slices whose end is known."""
    known = slices.filter(pl.col("duration").is_not_null())
    begin = known["start"].to_numpy()
    return union(begin, begin + known["duration"].to_numpy())

"""Divides the steps among classes of time, by source line: every nanosecond in exactly one row."""

from typing import Any, Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.account.frame_segments import segments_split_at_frames
from selftime.analysis.account.time_classes import TIME_CLASSES, time_class_of_segments
from selftime.analysis.graph.critical_path import critical_path_segments
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_arguments import parent_of_every_slice
from selftime.analysis.slice_filters import matches_name
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS, source_sites_of_slices
from selftime.nesting import NO_SLICE, nearest_ancestor
from selftime.trace import Trace

ACCOUNT_SEGMENT_SCHEMA: Final[dict[Any, Any]] = {
    "step": pl.Int64,
    "counted": pl.Boolean,
    "class": pl.Enum(TIME_CLASSES),
    "what": pl.Categorical(),
    "start": pl.Int64,
    "end": pl.Int64,
    "slice": pl.UInt32,
    "inferred": pl.Boolean,
    "file": pl.String,
    "line": pl.Int32,
    "function": pl.String,
    "how": pl.String,
}
"""Columns of `account_segments`; times in ns."""

_INFERRED_LINKS: Final = ("inferred", "unknown")
"""Why segments of the critical path began whose dependency the trace does not record."""


@cached_per_trace
def account_segments(trace: Trace) -> pl.DataFrame:
    """Returns what each moment of each step was spent on, one row per segment, in order of time.

    Columns: step, its number; counted, whether the step is typical; class, one of `TIME_CLASSES`;
    what, the optimizer, else the outermost operator, that ran or launched it, else the Python frame
    or the name on the device, null if unknown; start and end in ns; slice, the id of the slice on
    the critical path, null if there is none; inferred, whether it is not recorded what the segment
    waited for; file, line, function, how: the source line. The segments of a step are contiguous,
    from the step's `begin` to its `done`.
    """
    segments = segments_split_at_frames(trace, critical_path_segments(trace))
    table = segments.select(
        "step",
        "counted",
        time_class_of_segments(trace, segments),
        _responsible_names(trace, segments["slice"]),
        "start",
        "end",
        "slice",
        inferred=pl.col("link").is_in(_INFERRED_LINKS),
    )
    sites = source_sites_of_slices(trace, segments["slice"])
    return table.hstack(sites.select(SOURCE_SITE_COLUMNS)).cast(ACCOUNT_SEGMENT_SCHEMA)


def _responsible_names(trace: Trace, slice_ids: pl.Series) -> pl.Series:
    """Returns the name of what ran or launched each slice, as `what`; null for null ids.

    That is the optimizer's annotation around it, else the outermost operator, else the slice.
    """
    slices = trace.slices
    own = slice_ids.cast(pl.Int64).fill_null(NO_SLICE).to_numpy()
    launch = slices["launch"].cast(pl.Int64).fill_null(NO_SLICE).to_numpy()
    at = np.where(own == NO_SLICE, NO_SLICE, np.append(launch, NO_SLICE)[own])
    at = np.where(at == NO_SLICE, own, at)
    parent = parent_of_every_slice(trace)
    is_operator = np.append(
        slices["category"].is_in(list(names.OPERATOR_CATEGORIES)).to_numpy(), False
    )
    is_outermost = is_operator[:-1] & ~is_operator[parent]
    outermost = nearest_ancestor(parent, is_outermost, at)
    optimizer = nearest_ancestor(parent, matches_name(slices, names.is_optimizer_step), at)
    chosen = np.where(outermost == NO_SLICE, own, outermost)
    chosen = np.where(optimizer == NO_SLICE, chosen, optimizer)
    ids = pl.Series(chosen)
    return slices["name"].gather(ids.set(ids == NO_SLICE, None).cast(pl.UInt32)).alias("what")

"""What operators took and did, whatever they are grouped by: computed once per trace.

The columns of `OperatorAmounts.work` are mostly 0 or unknown: calls of the runtime and operators
that only prepare others compute nothing. So they are kept only for the entries that do.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from selftime.analysis.call_tree.call_tree import has_python_frames
from selftime.analysis.call_tree.self_times import SelfTimes, self_times
from selftime.analysis.models.modelled_operator_work import (
    modelled_work_of_calls,
    modelled_work_of_operators,
    tensor_core_times_by_operator,
)
from selftime.analysis.models.operator_efficiency import operator_efficiency_amounts
from selftime.analysis.models.operator_flops import recorded_or_modelled_flops
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_grouping import map_distinct_names
from selftime.array_types import Flags
from selftime.trace import Trace

_KIND_BY_SLICE_CATEGORY: Final = {
    "cpu_op": "operator",
    "user_annotation": "annotation",
    "python_function": "frame",
}


@dataclass(frozen=True, slots=True)
class OperatorAmounts:
    """The entries of `self_times`, and what each of them took and did."""

    host: SelfTimes
    ids: pl.Series
    """The slice id of each entry."""
    kind: pl.Series
    """Whether each entry is an operator, an annotation, a frame or a call."""
    is_ended: pl.Series
    """Whether the end of each entry is recorded."""
    entry: pl.Series
    """The indexes of the entries that `work` describes, in ascending order."""
    work: pl.DataFrame
    """The columns of `operator_efficiency_amounts`, and `flops`, of the entries in `entry`; of all
    others they are 0, or null for those that may be null."""


def operator_amounts(trace: Trace, *, with_python_frames: bool) -> OperatorAmounts:
    """Returns what the entries of `self_times` took and did."""
    if with_python_frames and has_python_frames(trace):
        return _amounts_with_python_frames(trace)
    return _amounts_without_python_frames(trace)


@cached_per_trace
def _amounts_with_python_frames(trace: Trace) -> OperatorAmounts:
    return _amounts_of_entries(trace, self_times(trace, with_python_frames=True))


@cached_per_trace
def _amounts_without_python_frames(trace: Trace) -> OperatorAmounts:
    return _amounts_of_entries(trace, self_times(trace))


def _amounts_of_entries(trace: Trace, host: SelfTimes) -> OperatorAmounts:
    ids = pl.Series("id", host.id, dtype=pl.UInt32)
    core_times = tensor_core_times_by_operator(trace, host)
    work = (
        modelled_work_of_calls(trace)
        if host is self_times(trace)
        else modelled_work_of_operators(trace, host, core_times)
    )
    amounts = {
        "flops": recorded_or_modelled_flops(trace, host.name, ids),
        **operator_efficiency_amounts(
            host, work, core_times, is_device_time=trace.device_args.height > 0
        ),
    }
    entry = np.flatnonzero(_has_any_amount(amounts, host.id.size))
    at = pl.Series("entry", entry, dtype=pl.UInt32)
    return OperatorAmounts(
        host=host,
        ids=ids,
        kind=map_distinct_names(
            host.category, lambda category: _KIND_BY_SLICE_CATEGORY.get(category, "call")
        ),
        is_ended=trace.slices["duration"].gather(ids).is_not_null(),
        entry=at,
        work=pl.DataFrame({name: pl.Series(much).gather(at) for name, much in amounts.items()}),
    )


def _has_any_amount(amounts: dict[str, Any], entry_count: int) -> Flags:
    """Flags the entries of which any amount is known and not 0, or may differ from others."""
    found = np.zeros(entry_count, bool)
    for much in amounts.values():
        if isinstance(much, pl.Series):
            found |= much.is_not_null().to_numpy()
        elif much.any():
            found |= much != 0
    return found

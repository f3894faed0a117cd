"""Finds the time of steps in which the program's own Python runs, outside of torch's operators.

Only time on the critical path counts: Python that runs while a device still has work costs nothing.
Of that, time in PyTorch's own Python is left out, and what a function of the program takes between
the operators that it issues. What is left is either in a function that issues no operator, or a
stretch in which several operators could have been issued.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.counted_steps import (
    begins_during_intervals,
    times_of_slices_named,
    union_of_interval_sets,
)
from selftime.advice.detectors.source_lines import logging_frames
from selftime.analysis.account.step_account import account_segments
from selftime.analysis.frame_origins import parse_frame_of_trace
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_arguments import (
    caller_of_every_frame,
    enclosing_frame_of_every_slice,
)
from selftime.analysis.slice_filters import covered_time, matches_name
from selftime.array_types import Flags, Ints
from selftime.intervals import Intervals, length, union
from selftime.names.tensor_operators import intercepts_operators
from selftime.nesting import NO_SLICE, flag_with_ancestors, nearest_ancestor
from selftime.trace import Trace

MIN_STRETCH_WITHOUT_OPERATOR_NS: Final = 200_000
"""Shortest stretch of Python, in ns, that is more than the way from one operator to the next, in a
function that issues operators; some ten operators are issued in that time, with stacks recorded."""


@dataclass(frozen=True, slots=True, eq=False)
class PythonFunctionTime:
    """The time that one function of the program takes in Python, with the functions it calls."""

    frame: int
    """Slice id of its longest frame."""
    segments: pl.DataFrame
    """Its segments of the account in order of time: start and end in ns; frame, the innermost
    Python frame; owner, the innermost frame of the program's own code."""
    calls: int
    """Number of its calls in the counted steps."""

    @property
    def times(self) -> Intervals:
        """The intervals that the segments cover, merged."""
        return union(self.segments["start"].to_numpy(), self.segments["end"].to_numpy())


@cached_per_trace
def python_functions_outside_torch(trace: Trace) -> tuple[PythonFunctionTime, ...]:
    """Returns the program's functions with time in Python in the counted steps, longest first."""
    segments = program_python_segments(trace)
    if not segments.height:
        return ()
    found = [_function_time(part) for part in segments.partition_by("function")]
    return tuple(sorted(found, key=lambda function: -length(function.times)))


def _function_time(segments: pl.DataFrame) -> PythonFunctionTime:
    total = pl.col("end").sum() - pl.col("start").sum()
    roots = segments.group_by("root", maintain_order=True).agg(total=total)
    longest = roots.sort("total", descending=True, maintain_order=True)["root"][0]
    return PythonFunctionTime(int(longest), segments, roots.height)


@cached_per_trace
def program_python_segments(trace: Trace) -> pl.DataFrame:
    """Returns the segments of the account in which the program's own Python runs, in order of time.

    Columns: start and end in ns; frame, the innermost Python frame; owner, the innermost frame of
    the program's own code; root, the outermost frame of it that issues no operator, or the owner if
    that issues some; function, the name of root.
    """
    segments = _python_segments(trace)
    frame = segments["frame"].to_numpy()
    caller, is_own = caller_of_every_frame(trace), frames_of_program(trace)
    is_torch = _torch_calls(trace)
    owner = nearest_ancestor(caller, is_own | is_torch, frame)
    is_known = (owner != NO_SLICE) & np.append(is_own & ~is_torch, False)[owner]
    segments = segments.with_columns(owner=owner).filter(pl.Series(is_known, dtype=pl.Boolean))
    segments = segments.filter(~_has_other_cause(trace, segments))
    issues = _frames_with_operators(trace)
    owner = segments["owner"].to_numpy()
    is_long = _stretch_ns(segments) >= MIN_STRETCH_WITHOUT_OPERATOR_NS
    is_alone = ~issues[owner] if owner.size else np.zeros(0, np.bool_)
    root = np.where(is_alone, _outermost_without_operators(trace, owner), owner)
    function = trace.slices["name"].gather(pl.Series(root, dtype=pl.UInt32))
    return segments.with_columns(root=root, function=function.cast(pl.String)).filter(
        pl.Series(is_long | is_alone, dtype=pl.Boolean)
    )


def _python_segments(trace: Trace) -> pl.DataFrame:
    """Returns start, end and innermost frame of the counted segments of the class `python`."""
    told = account_segments(trace).filter(
        pl.col("counted") & (pl.col("class") == "python") & pl.col("slice").is_not_null()
    )
    frame = enclosing_frame_of_every_slice(trace)[told["slice"].to_numpy()]
    return told.select("start", "end", frame=pl.Series(frame, dtype=pl.Int64)).filter(
        pl.col("frame") != NO_SLICE
    )


@cached_per_trace
def frames_of_program(trace: Trace) -> Flags:
    """Flags the frames of the program's own functions."""

    def is_own(name: str) -> bool:
        known = parse_frame_of_trace(trace, name)
        return known is not None and known.origin == "user"

    return matches_name(trace.slices, is_own) & _is_frame(trace)


def _is_frame(trace: Trace) -> Flags:
    flags = np.zeros(trace.slices.height, np.bool_)
    flags[trace.frame_args["id"].to_numpy()] = True
    return flags


def _torch_calls(trace: Trace) -> Flags:
    """Flags the frames of PyTorch's own functions, built-in ones that run operators among them."""
    within = _frames_of_work(trace)
    texts = trace.slices["name"].gather(within).cast(pl.String)
    issuing = {names.without_object_address(name) for name in texts if name.startswith("<")}

    def is_torch(name: str) -> bool:
        known = names.parse_frame(name)
        if known is not None:
            return known.origin == "system" and "torch" in known.file
        return not names.is_program_work(name) or names.without_object_address(name) in issuing

    return matches_name(trace.slices, is_torch) & _is_frame(trace)


def _frames_with_operators(trace: Trace) -> Flags:
    """Flags the frames in which an operator runs, called by them or by what they call."""
    within = _frames_of_work(trace).cast(pl.Int64).to_numpy()
    return flag_with_ancestors(caller_of_every_frame(trace), within)


def _frames_of_work(trace: Trace) -> pl.Series:
    """Returns the ids of the innermost frames around operators and calls of a device's runtime."""
    operators = trace.op_args.select("id", "frame").drop_nulls()
    category = trace.slices["category"].gather(operators["id"])
    frames = operators["frame"].filter(category.is_in(list(names.OPERATOR_CATEGORIES)))
    return pl.concat([frames, trace.call_args["frame"].drop_nulls()]).unique(maintain_order=True)


def _outermost_without_operators(trace: Trace, owners: Ints) -> Ints:
    """Returns the outermost frame around each owner that issues no operator; of the program."""
    caller, issues = caller_of_every_frame(trace), _frames_with_operators(trace)
    is_top = (caller == NO_SLICE) | np.append(issues, True)[caller]
    top = nearest_ancestor(caller, is_top, owners)
    return np.where(np.append(frames_of_program(trace), False)[top], top, owners)


def _stretch_ns(segments: pl.DataFrame) -> Ints:
    """Returns the duration in ns of the unbroken stretch of segments that each one is part of."""
    start, end = segments["start"].to_numpy(), segments["end"].to_numpy()
    if not start.size:
        return np.zeros(0, np.int64)
    first = np.flatnonzero(np.append(True, start[1:] != end[:-1]))
    last = np.append(first[1:], start.size) - 1
    return np.repeat(end[last] - start[first], last - first + 1)


def _has_other_cause(trace: Trace, segments: pl.DataFrame) -> pl.Series:
    """Returns for each segment whether another rule is about what the host does in it."""
    explained = times_of_slices_named(
        trace,
        names.is_data_loading,
        names.is_garbage_collection,
        names.is_compilation,
        names.is_checkpoint_frame,
        names.is_optimizer_annotation,
        names.formats_stack,
        intercepts_operators,
    )
    explained = union_of_interval_sets(explained, covered_time(logging_frames(trace)))
    return begins_during_intervals(segments, explained)


def python_without_frames(trace: Trace) -> Intervals:
    """Returns the long stretches between operators in the counted steps of a trace without frames.

    Those are of some function of the program, or of a library, that is not recorded.
    """
    told = account_segments(trace).filter(
        pl.col("counted")
        & (
            (pl.col("class") == "python")
            | ((pl.col("class") == "other") & pl.col("slice").is_null())
        )
    )
    told = told.filter(~_has_other_cause(trace, told))
    is_long = _stretch_ns(told) >= MIN_STRETCH_WITHOUT_OPERATOR_NS
    long = told.filter(pl.Series(is_long, dtype=pl.Boolean))
    return union(long["start"].to_numpy(), long["end"].to_numpy())

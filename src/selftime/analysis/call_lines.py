"""Finds the lines at which the user's functions call those of libraries and of C.

A trace tells only which Python frame called which. Where a function called another at one line, the
recorder saves it, by the names of both frames.
"""

from collections.abc import Container
from typing import Any, Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_arguments import caller_of_every_frame
from selftime.analysis.slice_filters import matches_name
from selftime.array_types import Ints
from selftime.nesting import NO_SLICE, nearest_ancestor
from selftime.trace import Trace

_CALL_SCHEMA: Final = {"caller": pl.String, "called": pl.String, "line": pl.Int32}


@cached_per_trace
def recorded_call_lines(trace: Trace) -> pl.DataFrame:
    """Returns the recorded lines of calls: caller and called, the names of frames, and line."""
    told = trace.facts.get("calls")
    if not isinstance(told, dict):
        return pl.DataFrame(schema=_CALL_SCHEMA)
    texts = told.get("names")
    columns = [told.get(name) for name in _CALL_SCHEMA]
    if not isinstance(texts, list) or not all(isinstance(column, list) for column in columns):
        return pl.DataFrame(schema=_CALL_SCHEMA)
    rows = [
        (str(texts[caller]), str(texts[called]), line)
        for caller, called, line in zip(*columns, strict=False)
        if _is_number_below(caller, len(texts))
        and _is_number_below(called, len(texts))
        and _is_number_below(line, 1 << 31)
    ]
    return pl.DataFrame(rows, _CALL_SCHEMA, orient="row").unique(
        ("caller", "called"), keep="none", maintain_order=True
    )


def _is_number_below(value: Any, bound: int) -> bool:
    return type(value) is int and 0 <= value < bound


def calls_by_users_frames(trace: Trace, frames: Ints, users_frames: Container[str]) -> Ints:
    """Returns for each frame the row of `recorded_call_lines` of the user's call around it, or -1.

    That is the call by the innermost frame of the user's code; none for that frame's own time.

    Args:
        trace: The trace.
        frames: The ids of Python frames; -1 for none.
        users_frames: The names of frames of the user's code.
    """
    found = np.full(frames.size, NO_SLICE, np.int64)
    calls = recorded_call_lines(trace)
    if not calls.height:
        return found
    caller = caller_of_every_frame(trace)
    is_users = matches_name(trace.slices, users_frames.__contains__)
    is_called = np.append(is_users, False)[caller]
    call = nearest_ancestor(caller, is_users | is_called, frames)
    is_call = call != NO_SLICE
    at = np.flatnonzero(is_call)[~is_users[call[is_call]]]
    pairs = pl.DataFrame(
        {
            "caller": trace.slices["name"].gather(pl.Series(caller[call[at]])).cast(pl.String),
            "called": trace.slices["name"].gather(pl.Series(call[at])).cast(pl.String),
        },
        schema={"caller": pl.String, "called": pl.String},
    )
    distinct = pairs.unique(maintain_order=True)
    known = {(one, other): row for row, (one, other, _) in enumerate(calls.iter_rows())}
    rows = distinct.with_columns(
        row=pl.Series(
            [
                known.get((one, names.without_object_address(other)), NO_SLICE)
                for one, other in distinct.iter_rows()
            ],
            dtype=pl.Int64,
        )
    )
    joined = pairs.join(rows, on=("caller", "called"), how="left", maintain_order="left")
    found[at] = joined["row"].to_numpy()
    return found

"""Finds loops that go through a tensor, as `for row in tensor` does, by the rounds that follow.

Such a loop takes the tensor apart at once, with `aten::unbind`, and then works on one part after
the other: the line of the loop has one operator, and its body many.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.counted_operators import outermost_operators, parse_sizes
from selftime.advice.detectors.source_lines import LineSlices, slices_by_line
from selftime.analysis.slice_arguments import (
    arguments_of_slices,
    caller_of_every_frame,
    enclosing_frame_of_every_slice,
)
from selftime.analysis.slice_filters import filter_by_name
from selftime.analysis.source_sites import numbered_source_sites
from selftime.analysis.steps.steady_steps import counted_step_windows
from selftime.array_types import Flags, Ints
from selftime.names.operator_patterns import takes_apart
from selftime.nesting import NO_SLICE
from selftime.trace import Trace

MIN_SHARE_OF_PARTS: Final = 0.5
"""Smallest share of a tensor's parts that have an operator of their own at one line for them to be
the rounds of a loop; a round may do nothing."""


def rounds_of_tensor_iterations(trace: Trace, min_rounds: int) -> Iterator[LineSlices]:
    """Yields the line of each loop through a tensor, with the first operator of its rounds.

    Loops through fewer than `min_rounds` parts, or of unknown size, are left out.
    """
    operators = outermost_operators(trace)
    taken = filter_by_name(operators, takes_apart)
    taken = taken.with_columns(parts=_part_counts(trace, taken["id"]))
    taken = taken.filter(pl.col("parts") >= min_rounds)
    if not taken.height:
        return
    start = operators["start"].to_numpy()
    site = numbered_source_sites(trace, operators["id"]).number
    kind = operators["name"].to_physical().to_numpy().astype(np.int64)
    for loop in slices_by_line(trace, taken):
        ends = _ends_of_loops(trace, loop.slices)
        rounds = [
            operators[first + marks]
            for (begin, parts), end in zip(
                loop.slices.select("start", "parts").iter_rows(), ends.tolist(), strict=True
            )
            for first, last in [np.searchsorted(start, (begin + 1, end))]
            if (marks := _first_of_rounds(site[first:last], kind[first:last], parts)).size
            >= min_rounds
        ]
        if rounds:
            yield LineSlices(loop.where, pl.concat(rounds).sort("start", "id"))


def _part_counts(trace: Trace, ids: pl.Series) -> pl.Series:
    """Returns into how many parts each operator takes its tensor apart; null without shapes."""
    texts = arguments_of_slices(trace, "op_args", ids, "input_shapes")["input_shapes"]
    sizes = [parse_sizes(text) for text in texts.cast(pl.String)]
    return pl.Series([size[0][0] if size and size[0] else None for size in sizes], dtype=pl.Int64)


def _ends_of_loops(trace: Trace, taken: pl.DataFrame) -> Ints:
    """Returns by when each loop ended, in ns: with its function, its step, or as it began again."""
    begin = taken["start"].to_numpy()
    ends = np.append(begin[1:], np.iinfo(np.int64).max)
    steps = np.sort(counted_step_windows(trace)["end"].to_numpy())
    ends = np.minimum(ends, np.append(steps, ends[-1])[np.searchsorted(steps, begin, "right")])
    frame = enclosing_frame_of_every_slice(trace)[taken["id"].to_numpy()]
    caller = caller_of_every_frame(trace)
    slices = trace.slices.select(end=pl.col("start") + pl.col("duration"), name="name")
    at = frame
    while (is_inner := _is_of_library(trace, at)).any():  # out of `Tensor.__iter__`
        at = np.where(is_inner, np.append(caller, NO_SLICE)[at], at)
    end_of_frame = slices["end"].fill_null(np.iinfo(np.int64).max).to_numpy()
    limit = np.append(end_of_frame, np.iinfo(np.int64).max)[at]
    return np.asarray(np.minimum(ends, limit))


def _is_of_library(trace: Trace, frames: Ints) -> Flags:
    """Flags the frames of functions that are not in a file of the user."""
    ids = pl.Series(frames)
    texts = trace.slices["name"].gather(ids.set(ids == NO_SLICE, None).cast(pl.UInt32))
    known = {
        text: (frame := names.parse_frame(text)) is None or frame.origin != "user"
        for text in texts.drop_nulls().unique().cast(pl.String)
    }
    texts = texts.cast(pl.String)
    return texts.replace_strict(known, default=False, return_dtype=pl.Boolean).to_numpy()


def _first_of_rounds(site: Ints, kind: Ints, parts: int) -> Ints:
    """Returns the positions of the first operator that runs once in each round of a loop.

    Operators of the loop's body are at one line, and as many as the tensor has parts.
    """
    if not site.size:
        return np.zeros(0, np.int64)
    pairs = np.stack([site, kind], axis=1)
    _, first, which, count = np.unique(
        pairs, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    is_round = (count <= parts) & (count >= MIN_SHARE_OF_PARTS * parts)
    if not is_round.any():
        return np.zeros(0, np.int64)
    chosen = np.flatnonzero(is_round)[np.argmin(first[is_round])]
    return np.flatnonzero(which.reshape(-1) == chosen)

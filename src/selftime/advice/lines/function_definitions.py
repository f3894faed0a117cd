"""Finds by Python frames at which line the function around a source line is defined."""

from collections import defaultdict
from collections.abc import Mapping
from typing import TypeAlias

import polars as pl

from selftime import names
from selftime.advice.lines.line_from_source import is_frame_of_place
from selftime.advice.rule_outcomes import Where
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_filters import slices_on
from selftime.trace import Trace

FramesByFunction: TypeAlias = Mapping[str, tuple[names.Frame, ...]]
"""Maps the name of a function to the frames of the functions of that name, one of each."""


@cached_per_trace
def frames_by_function(trace: Trace) -> FramesByFunction:
    """Returns the functions of which the trace has Python frames."""
    found: dict[str, list[names.Frame]] = defaultdict(list)
    for text in slices_on(trace, "python")["name"].unique().cast(pl.String).sort().to_list():
        frame = names.parse_frame(text)
        if frame is not None:
            found[frame.function].append(frame)
    return {function: tuple(frames) for function, frames in found.items()}


def definition_line(frames: FramesByFunction, place: Where) -> int | None:
    """Returns the line that defines the function around a place; None if no frame tells it.

    Of functions of one name in a file it is the last that begins before the place.
    """
    begins = [
        frame.line
        for frame in frames.get(place.function or "", ())
        if place.line is not None and frame.line <= place.line and is_frame_of_place(frame, place)
    ]
    return max(begins, default=None)

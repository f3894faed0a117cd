"""Operators of the steps: which there are, on what, and which are the backward of which."""

import json
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.counted_steps import counted, is_under, recorded_windows
from selftime.analysis.cached import cached_per_trace
from selftime.analysis.slice_arguments import with_arguments
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.analysis.steps.steady_steps import is_within
from selftime.trace import Trace

_TOLD: Final = ("input_shapes", "input_types", "input_strides", "concrete_inputs")


@cached_per_trace
def recorded_operators(trace: Trace) -> pl.DataFrame:
    """Operators that began in the steps that count, in order of time.

    With a device these are all steps: its queue carries a change of one into those that follow.

    Columns: id, name, track, start, end (ns), and input_shapes, input_types, input_strides and
    concrete_inputs as JSON text, null where not recorded.
    """
    host = slices_on(trace, "host", ended=True)
    operators = host.filter(host["category"].is_in(list(names.OPERATORS)))
    mine = is_within(operators["start"].to_numpy(), recorded_windows(trace))
    end = pl.col("start") + pl.col("duration")
    table = operators.select("id", "name", "track", "start", end=end)
    return with_arguments(trace, "op_args", table.filter(pl.Series(mine, dtype=pl.Boolean)), *_TOLD)


@cached_per_trace
def outermost_operators(trace: Trace) -> pl.DataFrame:
    """Operators of the steps that count that no other operator called, in order of time.

    Columns: those of `slices`. The rows of autograd around its nodes are no operators here.
    """
    host = slices_on(trace, "host")
    host = host.filter(host["category"].is_in(list(names.OPERATORS)))
    every = filter_by_name(host, names.is_dispatched)
    inner = np.zeros(trace.slices.height, bool)
    inner[every["id"].to_numpy()] = True
    parents = every["parent"].cast(pl.Int64).fill_null(-1).to_numpy()
    outermost = ~((parents >= 0) & inner[np.maximum(parents, 0)]) if parents.size else parents >= 0
    return counted(trace, every.filter(pl.Series(outermost, dtype=pl.Boolean)))


def with_backward(trace: Trace, operators: pl.DataFrame) -> pl.DataFrame:
    """The operators and those that are their backward: id, track, start and end."""
    kept_columns = ("id", "track", "start", "end")
    links = trace.op_args.filter(pl.col("forward").is_not_null()).select("id", "forward")
    forward = trace.slices.select("id", "track", "start")[links["forward"]]
    mine = links["id"].filter(pl.Series(is_under(forward, operators), dtype=pl.Boolean))
    backward = trace.slices[mine].filter(pl.col("duration").is_not_null())
    backward = backward.with_columns(end=pl.col("start") + pl.col("duration"))
    both = pl.concat([operators.select(kept_columns), backward.select(kept_columns)])
    return both.unique("id").sort("start", "id")


def backward_of(trace: Trace, slices: pl.DataFrame) -> pl.DataFrame:
    """The slices of the backward pass that compute the gradients of these, where that is told."""
    ids = slices["id"].implode()
    told = trace.op_args.filter(pl.col("forward").is_in(ids))["id"]
    return counted(trace, trace.slices.filter(pl.col("id").is_in(told.implode())))


def sizes(text: str | None) -> list[tuple[int, ...]]:
    """Sizes or strides of each input; `()` for what is no tensor, or is malformed.

    >>> sizes("[[2,3],[],[[1],[2]]]")
    [(2, 3), (), ()]
    """
    try:
        read = json.loads(text or "[]")
    except ValueError:
        return []
    return [_size(one) for one in read] if isinstance(read, list) else []


def _size(told: object) -> tuple[int, ...]:
    if not isinstance(told, list) or not all(isinstance(length, int) for length in told):
        return ()
    return tuple(told)

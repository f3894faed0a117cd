"""Selects operators that began in measured steps, with input sizes and backward operators."""

import json
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.counted_steps import (
    begins_within_enclosing,
    recorded_step_windows,
    slices_in_counted_steps,
)
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_arguments import parent_of_every_slice, slices_with_arguments
from selftime.analysis.slice_filters import matches_name, slices_on
from selftime.analysis.steps.steady_steps import is_instant_in_windows
from selftime.trace import Trace

_OPERATOR_ARGUMENT_COLUMNS: Final = (
    "input_shapes",
    "input_types",
    "input_strides",
    "concrete_inputs",
)
"""Columns of operator arguments, such as input shapes; their values are JSON text."""


@cached_per_trace
def operators_in_counted_steps(trace: Trace) -> pl.DataFrame:
    """Returns the operators that began in the measured steps, in order of time.

    With a device all steps are covered, as its queue carries a change into the steps after.

    Columns: id, name, track, start, end (ns), and input_shapes, input_types, input_strides and
    concrete_inputs as JSON text, null where not recorded.
    """
    host = slices_on(trace, "host", ended=True)
    is_operator = host["category"].is_in(list(names.OPERATOR_CATEGORIES))
    operators = host.select("id", "name", "track", "start", "duration").filter(is_operator)
    mine = is_instant_in_windows(operators["start"].to_numpy(), recorded_step_windows(trace))
    end = pl.col("start") + pl.col("duration")
    table = operators.select("id", "name", "track", "start", end=end)
    return slices_with_arguments(
        trace,
        "op_args",
        table.filter(pl.Series(mine, dtype=pl.Boolean)),
        *_OPERATOR_ARGUMENT_COLUMNS,
    )


@cached_per_trace
def outermost_operators(trace: Trace) -> pl.DataFrame:
    """Returns the measured steps' operators that no other operator called, in order of time.

    Columns: those of `slices`. The rows of autograd around its nodes are no operators here.
    """
    return slices_in_counted_steps(trace, outermost_operators_of_recording(trace))


@cached_per_trace
def outermost_operators_of_recording(trace: Trace) -> pl.DataFrame:
    """Returns the operators that no other operator called, measured or not, in order of time.

    For what does not depend on how long a step took, such as the shapes of its inputs.
    """
    host = slices_on(trace, "host")
    is_operator = host["category"].is_in(list(names.OPERATOR_CATEGORIES)).to_numpy()
    is_operator = is_operator & matches_name(host, names.is_dispatched_operator)
    ids = host["id"].to_numpy()
    calls_operators = np.zeros(trace.slices.height + 1, np.bool_)  # the last entry: no parent
    calls_operators[ids[is_operator]] = True
    is_outermost = is_operator & ~calls_operators[parent_of_every_slice(trace)[ids]]
    return host.filter(pl.Series(is_outermost) & pl.col("duration").is_not_null())


def with_backward_operators(trace: Trace, operators: pl.DataFrame) -> pl.DataFrame:
    """Returns id, track, start and end (ns) of the operators and of their backward operators."""
    kept_columns = ("id", "track", "start", "end")
    links = trace.op_args.filter(pl.col("forward").is_not_null()).select("id", "forward")
    forward = trace.slices.select("id", "track", "start")[links["forward"]]
    mine = links["id"].filter(
        pl.Series(begins_within_enclosing(forward, operators), dtype=pl.Boolean)
    )
    backward = trace.slices[mine].filter(pl.col("duration").is_not_null())
    backward = backward.with_columns(end=pl.col("start") + pl.col("duration"))
    both = pl.concat([operators.select(kept_columns), backward.select(kept_columns)])
    return both.unique("id").sort("start", "id")


def backward_slices_of(trace: Trace, slices: pl.DataFrame) -> pl.DataFrame:
    """Returns the slices of the backward pass that compute gradients of the given operators."""
    ids = slices["id"].implode()
    told = trace.op_args.filter(pl.col("forward").is_in(ids))["id"]
    return slices_in_counted_steps(trace, trace.slices.filter(pl.col("id").is_in(told.implode())))


def parse_sizes(json_text: str | None) -> list[tuple[int, ...]]:
    """Returns each input's sizes (or strides), parsed from JSON; `()` for inputs without sizes.

    >>> parse_sizes("[[2,3],[],[[1],[2]]]")
    [(2, 3), (), ()]
    """
    try:
        read = json.loads(json_text or "[]")
    except ValueError:
        return []
    return [_integer_tuple(one) for one in read] if isinstance(read, list) else []


def _integer_tuple(json_value: object) -> tuple[int, ...]:
    """Returns a JSON list of integers as a tuple; `()` for any other value."""
    if not isinstance(json_value, list) or not all(
        isinstance(length, int) for length in json_value
    ):
        return ()
    return tuple(json_value)

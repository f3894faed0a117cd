"""Counts how often a step calls the model as a whole."""

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.counted_steps import counted_step_count, slices_in_counted_steps
from selftime.analysis.slice_arguments import parent_of_every_slice
from selftime.analysis.slice_filters import filter_by_name
from selftime.nesting import NO_SLICE, nearest_ancestor
from selftime.trace import Trace


def model_calls_per_step(trace: Trace) -> float:
    """Returns how many calls of modules, by no other module, a counted step has; 1 at least.

    Modules whose class is named as a loss do not count. Without frames of modules a step is taken
    for one call.
    """
    return max(1.0, outermost_module_calls(trace).height / counted_step_count(trace))


def most_calls_of_one_module_per_step(trace: Trace) -> float:
    """Returns how often a counted step calls one module by itself, the most of any; 1 at least."""
    called = outermost_module_calls(trace)["id"]
    told = trace.frame_args.filter(pl.col("id").is_in(called.implode()))
    most = told["module_id"].value_counts()["count"].max()
    return max(1.0, (most if isinstance(most, int) else 0) / counted_step_count(trace))


def outermost_module_calls(trace: Trace) -> pl.DataFrame:
    """Returns the counted steps' calls of modules, by no other module, without those of losses."""
    calls = trace.frame_args.select("id", "module_id").drop_nulls()["id"].to_numpy()
    is_call = np.zeros(trace.slices.height, bool)
    is_call[calls] = True
    parent = parent_of_every_slice(trace)
    outermost = calls[nearest_ancestor(parent, is_call, parent[calls]) == NO_SLICE]
    found = slices_in_counted_steps(trace, trace.slices[pl.Series(outermost, dtype=pl.UInt32)])
    return filter_by_name(found, lambda name: not names.module_class(name).endswith("Loss"))

"""Loops of Python: runs of one source line, among them those that take tensors apart."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.counted_steps import is_during, regions_of
from selftime.advice.detectors.operators import outermost_operators
from selftime.advice.detectors.places import Place, places
from selftime.analysis.cached import cached_per_trace
from selftime.analysis.slice_filters import filter_by_name
from selftime.trace import Trace

LEAST_ROUNDS: Final = 50
"""A loop over a dimension of the data; layers, heads and coordinates are fewer."""

PACE: Final = 10.0
"""Slices that follow after this many times the usual time are not of the same run of a loop."""


@cached_per_trace
def element_loops(trace: Trace) -> tuple[Place, ...]:
    """The lines that take elements of tensors one by one, the longest first.

    A row spans a run of the loop; `rounds` are the elements that it took. Runs whose rounds
    multiply matrices, and those of data loading and optimizers, are none.
    """
    ops = outermost_operators(trace)
    selects = filter_by_name(ops, names.selects_index)
    explained = regions_of(trace, names.is_data_loading, names.is_optimizer)
    selects = selects.filter(~is_during(selects, explained))
    products = filter_by_name(ops, names.is_matrix_operator)["start"]
    found = (_loop(place, products) for place in places(trace, selects))
    return tuple(loop for loop in found if loop is not None)


def _loop(place: Place, products: pl.Series) -> Place | None:
    spans = [
        run.head(1).with_columns(
            duration=pl.lit(span(run)[1] - span(run)[0]), rounds=pl.lit(run.height)
        )
        for run in rounds(place.slices, LEAST_ROUNDS)
        if not products.is_between(*span(run)).any()
    ]
    return Place(place.where, pl.concat(spans)) if spans else None


def rounds(slices: pl.DataFrame, least: int) -> Iterator[pl.DataFrame]:
    """Runs of a loop: at least so many slices that follow each other at the pace of a loop."""
    begin = slices["start"].to_numpy()
    between = np.diff(begin)
    if between.size + 1 < least:
        return
    breaks = np.flatnonzero(between > PACE * np.median(between)) + 1
    edges = [0, *breaks.tolist(), begin.size]
    for first, last in pairwise(edges):
        if last - first >= least:
            yield slices.slice(first, last - first)


def span(run: pl.DataFrame) -> tuple[int, int]:
    """From the begin of a run's first slice until the end of its last."""
    begin = run["start"].to_numpy()
    return int(begin[0]), int((begin + run["duration"].to_numpy()).max())

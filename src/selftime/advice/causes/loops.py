"""Loops of Python that take tensors apart: runs of one source line that do nothing large."""

from typing import Final

import polars as pl

from selftime import names
from selftime.advice.causes.places import Place, inside, operators, places, regions_of, rounds, span
from selftime.trace import Trace
from selftime.views.accounts.kept import kept
from selftime.views.accounts.named import whose_name

__all__ = ["LEAST_ROUNDS", "element_loops"]

LEAST_ROUNDS: Final = 50
"""A loop over a dimension of the data; layers, heads and coordinates are fewer."""


@kept
def element_loops(trace: Trace) -> tuple[Place, ...]:
    """The lines that take elements of tensors one by one, the longest first.

    A row spans a run of the loop; `rounds` are the elements that it took. Runs whose rounds
    multiply matrices, and those of data loading and optimizers, are none.
    """
    ops = operators(trace)
    selects = whose_name(ops, names.takes_one_element)
    explained = regions_of(trace, names.is_data_loading, names.is_optimizer)
    selects = selects.filter(~inside(selects, explained))
    products = whose_name(ops, names.is_matrix_operator)["start"]
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

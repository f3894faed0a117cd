"""Finds the operator that issued each collective that a thread of the backend runs on the host.

Gloo and MPI run a collective on a thread of their own, in the order in which the program issues
them, and a trace does not link the two.
"""

from collections.abc import Callable, Iterable

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.array_types import Ints
from selftime.names.collectives import collective_of
from selftime.nesting import NO_SLICE
from selftime.trace import Trace


def issuers_of_host_collectives(trace: Trace) -> tuple[Ints, Ints]:
    """Returns slice ids of collectives on threads of the backend, and of the operator of each.

    The operator is the first one of the same kind, such as an all-reduce, that was called before
    the collective ran and that issued none before it; -1 if there is none in the recording.
    """
    host = slices_on(trace, "host")
    calls = _collectives_with_kind(host, names.OPERATOR_CATEGORIES, names.is_collective_annotation)
    runs = _collectives_with_kind(host, names.ANNOTATION_CATEGORIES, names.is_host_collective)
    runs = runs.filter(~pl.col("track").is_in(calls["track"].unique().implode()))
    issuer = np.full(runs.height, NO_SLICE, np.int64)
    for kind in runs["kind"].unique().drop_nulls().to_list():
        issued = calls.filter(pl.col("kind") == kind)
        at = np.flatnonzero(runs["kind"].eq_missing(kind).to_numpy())
        row = _first_free_rows(issued["start"].to_numpy(), runs["start"].to_numpy()[at])
        issuer[at] = np.append(issued["id"].cast(pl.Int64).to_numpy(), NO_SLICE)[row]
    return runs["id"].cast(pl.Int64).to_numpy(), issuer


def _collectives_with_kind(
    host: pl.DataFrame, categories: Iterable[str], is_meant: Callable[[str], bool]
) -> pl.DataFrame:
    """Returns the slices of some categories whose name satisfies a test, with `kind`, by start."""
    found = filter_by_name(host.filter(pl.col("category").is_in(list(categories))), is_meant)
    name = found["name"].cast(pl.String)
    kinds = {text: collective_of(text) for text in name.unique().to_list()}
    kind = name.replace_strict(kinds, return_dtype=pl.String).alias("kind")
    return found.with_columns(kind).sort("start", maintain_order=True)


def _first_free_rows(issued: Ints, ran: Ints) -> Ints:
    """Returns for each run the row of the call that issued it; -1 where all calls came later.

    Args:
        issued: When each call began, in ns, ascending.
        ran: When each run began, in ns, ascending.
    """
    rows, free = np.full(ran.size, NO_SLICE, np.int64), 0
    for number, began in enumerate(ran.tolist()):
        if free < issued.size and issued[free] <= began:
            rows[number] = free
            free += 1
    return rows

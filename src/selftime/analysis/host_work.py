"""Which slices of the host are work of their thread."""

import polars as pl

from selftime import names
from selftime.analysis.slice_filters import matches_name
from selftime.arrays import Flags


def is_work(host: pl.DataFrame) -> Flags:
    """Which of these host slices are work of their thread, shape (n,).

    Calls of a device's runtime, operators of the dispatcher, of whatever library, and nodes of the
    backward pass are. Annotations, profiler steps and what a program calls an operator without the
    dispatcher's name are not: they lie around work, of their own thread or of another that theirs
    waits for.
    """
    calls = host["category"].is_in(list(names.CALLS)).to_numpy()
    return calls | matches_name(host, _is_operator)


def _is_operator(name: str) -> bool:
    return names.is_dispatched(name) or names.is_backward_node(name)

"""Options of commands that answer queries in SQL: how much time and memory one may take."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

if TYPE_CHECKING:  # polars stays out until a command runs
    from selftime.sql.query_limits import QueryLimits

_BYTES_PER_GIB: Final = 1 << 30

QuerySeconds: TypeAlias = Annotated[
    float | None,
    typer.Option(
        min=0.1,
        metavar="S",
        help="Time that a query in SQL may take once the trace is read, in seconds. Default: 30.",
    ),
]
QueryMemory: TypeAlias = Annotated[
    float | None,
    typer.Option(
        min=0.1,
        metavar="GIB",
        help="Memory that a query in SQL may take, in GiB (on Linux). Default: 4, or a quarter "
        "of the machine's.",
    ),
]
QueryThreads: TypeAlias = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Threads that compute a query in SQL. Default: half of the processor's cores, but "
        "in `selftime sql` all.",
    ),
]


def limits_of_options(
    seconds: float | None, memory_gib: float | None, threads: int | None
) -> "QueryLimits":
    """Returns the limits that the options ask for; the defaults where they ask for none."""
    from selftime.sql.query_limits import QueryLimits

    limits = QueryLimits()
    memory_bytes = None if memory_gib is None else int(memory_gib * _BYTES_PER_GIB)
    return QueryLimits(
        seconds=limits.seconds if seconds is None else seconds,
        memory_bytes=limits.memory_bytes if memory_bytes is None else memory_bytes,
        threads=limits.threads if threads is None else threads,
    )

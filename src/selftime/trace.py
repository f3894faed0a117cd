"""A trace: an immutable set of columnar tables, as `schema` declares them.

Load one with `selftime.load`. Times are integer nanoseconds from the trace's origin, the earliest
event; `Trace.origin` is that time in nanoseconds since the Unix epoch, if the file has it.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType, ModuleType
from typing import Any

import polars as pl

from selftime import schema


def _empty(table: schema.Table) -> Any:
    """Returns a dataclass field whose default is the table without rows."""
    return field(default_factory=table.empty)


class _Referable:
    """Base class for weak references: derived data is cached as long as the trace lives."""

    __slots__ = ("__weakref__",)


@dataclass(frozen=True, slots=True, eq=False)
class Trace(_Referable):
    """The tables of one trace; each is documented, column by column, in `schema.TABLES`."""

    slices: pl.DataFrame = _empty(schema.SLICES)
    tracks: pl.DataFrame = _empty(schema.TRACKS)
    op_args: pl.DataFrame = _empty(schema.OP_ARGS)
    compiled_args: pl.DataFrame = _empty(schema.COMPILED_ARGS)
    call_args: pl.DataFrame = _empty(schema.CALL_ARGS)
    frame_args: pl.DataFrame = _empty(schema.FRAME_ARGS)
    device_args: pl.DataFrame = _empty(schema.DEVICE_ARGS)
    collective_args: pl.DataFrame = _empty(schema.COLLECTIVE_ARGS)
    sync_args: pl.DataFrame = _empty(schema.SYNC_ARGS)
    memory: pl.DataFrame = _empty(schema.MEMORY)
    instants: pl.DataFrame = _empty(schema.INSTANTS)
    counters: pl.DataFrame = _empty(schema.COUNTERS)
    devices: pl.DataFrame = _empty(schema.DEVICES)
    lines: pl.DataFrame = _empty(schema.LINES)
    clipped: pl.DataFrame = _empty(schema.CLIPPED)
    events: pl.DataFrame = _empty(schema.EVENTS)
    repairs: pl.DataFrame = _empty(schema.REPAIRS)
    metadata: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """The file's other top-level keys, as JSON values."""
    origin: int | None = None
    """The trace's origin in ns since the Unix epoch; None if only relative times are known."""
    source: str = ""
    """The path or address that the trace was read from."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """What a recording by selftime knows beyond the trace; empty for other recordings."""
        facts = self.metadata.get("selftime")
        return facts if isinstance(facts, dict) else {}

    def tables(self) -> dict[str, pl.DataFrame]:
        """Every table by its name in `schema.TABLES`."""
        return {name: getattr(self, name) for name in schema.TABLES}

    def view(self, name: str, /, **options: Any) -> pl.DataFrame:
        """Returns a view of this trace: `trace.view("operators", by="shape")`."""
        from selftime.views import find  # noqa: PLC0415 - views are made of traces

        return find(name)(self, **options)

    def sql(self, query: str, /, **views: str) -> pl.DataFrame:
        """Returns the result of an SQL query over all tables and views.

        See `selftime.sql.query`. `trace.sql("select * from shapes limit 5", shapes="operators
        by=shape")`.
        """
        return _answer(self, query, views)

    def export(self, output: str | os.PathLike[str], /, *, to: str, **options: Any) -> None:
        """Write the trace in another format: `trace.export("a.pftrace", to="perfetto")`."""
        _export(self, output, to, options)

    def show(self, panel: str = "answer", /, **params: Any) -> Any:
        """Show the page in a notebook, at one of its panels: `trace.show("timeline")`."""
        return _notebook().show(self, panel, **params)

    def _repr_html_(self) -> str:
        return str(_notebook().html(self))

    def __repr__(self) -> str:
        seconds = 0.0
        if self.slices.height:
            ends = self.slices["start"] + self.slices["duration"].fill_null(0)
            seconds = int(ends.max() or 0) / 1e9  # type: ignore[arg-type]  # integers
        source = self.source or "(in memory)"
        if not source.isprintable():  # a file name may contain terminal control characters
            source = repr(source)
        return f"<Trace {source}: {self.slices.height:,} slices, {seconds:.3f} s>"


@dataclass(frozen=True, slots=True)
class Member:
    """The place of a trace in its job."""

    label: str
    """The trace's label: its rank, its position along the parallel axes, or its number.

    It is unique among the traces of one run, which is a folder.
    """
    rank: int | None = None
    size: int | None = None
    """The number of ranks of the job; None if unknown."""
    known_by: str = ""
    """The source of the rank: `header`, `file name`, `folder` or `process groups`."""
    run: str = ""
    """The run's folder relative to the job's, without folder names that are a rank."""
    window: int | None = None
    """The number, from 1, of this recording among successive recordings of one process."""


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """The traces of one job by path: one for each rank and recording."""

    traces: Mapping[str, Trace]
    refused: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """The reason by path for each file that could not be read."""
    members: Mapping[str, Member] = field(default_factory=lambda: MappingProxyType({}))
    """The place of each trace in the job, by path."""
    notes: tuple[str, ...] = ()
    """One sentence for each problem with the ranks: missing, duplicate or unknown ranks."""

    def __iter__(self) -> Iterator[Trace]:
        return iter(self.traces.values())

    def __len__(self) -> int:
        return len(self.traces)

    def view(self, name: str, /, **options: Any) -> pl.DataFrame:
        """Returns a view of this job: `job.view("stragglers")`.

        A view of one trace is computed for each trace and the tables are stacked, with the columns
        rank (null if unknown) and label before the view's own.
        """
        from selftime.views import find, of_job  # noqa: PLC0415 - views are made of traces

        return of_job(self, find(name), options)

    def sql(self, query: str, /, **views: str) -> pl.DataFrame:
        """Returns the result of an SQL query over all traces, told apart by the column `trace`."""
        return _answer(self, query, views)

    def export(self, output: str | os.PathLike[str], /, *, to: str, **options: Any) -> None:
        """Write all traces to one file: `job.export("job.pftrace", to="perfetto")`."""
        _export(self, output, to, options)

    def show(self, panel: str = "answer", /, **params: Any) -> Any:
        """Show the page of all traces in a notebook, at one of its panels."""
        return _notebook().show(self, panel, **params)

    def _repr_html_(self) -> str:
        return str(_notebook().html(self))


def _answer(subject: Trace | Job, query: str, views: Mapping[str, str]) -> pl.DataFrame:
    from selftime import sql  # noqa: PLC0415 - queries are asked of traces

    return sql.query(subject, query, views)


def _export(
    subject: Trace | Job, output: str | os.PathLike[str], to: str, options: Mapping[str, Any]
) -> None:
    from selftime.reports import exports  # noqa: PLC0415 - exports are made of traces

    exports.export(subject, output, to=to, **options)


def _notebook() -> ModuleType:
    from selftime import notebook  # noqa: PLC0415 - a notebook shows traces

    return notebook


assert {f.name for f in fields(Trace)} >= set(schema.TABLES), "every table has a field"  # noqa: S101 - true at import or the package is broken

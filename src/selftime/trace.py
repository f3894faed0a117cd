"""Defines a trace: an immutable set of tables, whose columns `schema` declares.

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
from selftime.run import Run
from selftime.units import time_text


def _empty_table_field(table: schema.Table) -> Any:
    """Returns a dataclass field whose default value is an empty table with the given schema."""
    return field(default_factory=table.empty)


class _WeaklyReferable:
    """Base class that allows weak references, so that caches do not keep traces in memory."""

    __slots__ = ("__weakref__",)


@dataclass(frozen=True, slots=True, eq=False)
class Trace(_WeaklyReferable):
    """The tables of one trace; each is documented, column by column, in `schema.TABLES`."""

    slices: pl.DataFrame = _empty_table_field(schema.SLICES)
    tracks: pl.DataFrame = _empty_table_field(schema.TRACKS)
    op_args: pl.DataFrame = _empty_table_field(schema.OP_ARGS)
    compiled_args: pl.DataFrame = _empty_table_field(schema.COMPILED_ARGS)
    call_args: pl.DataFrame = _empty_table_field(schema.CALL_ARGS)
    frame_args: pl.DataFrame = _empty_table_field(schema.FRAME_ARGS)
    device_args: pl.DataFrame = _empty_table_field(schema.DEVICE_ARGS)
    collective_args: pl.DataFrame = _empty_table_field(schema.COLLECTIVE_ARGS)
    sync_args: pl.DataFrame = _empty_table_field(schema.SYNC_ARGS)
    memory: pl.DataFrame = _empty_table_field(schema.MEMORY)
    instants: pl.DataFrame = _empty_table_field(schema.INSTANTS)
    counters: pl.DataFrame = _empty_table_field(schema.COUNTERS)
    devices: pl.DataFrame = _empty_table_field(schema.DEVICES)
    lines: pl.DataFrame = _empty_table_field(schema.LINES)
    clipped: pl.DataFrame = _empty_table_field(schema.CLIPPED)
    events: pl.DataFrame = _empty_table_field(schema.EVENTS)
    repairs: pl.DataFrame = _empty_table_field(schema.REPAIRS)
    metadata: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """Top-level keys of the trace file other than its events, with their JSON values."""
    origin: int | None = None
    """Time 0 of the trace, in ns since the Unix epoch; None if only relative times are known."""
    source: str = ""
    """The path or address that the trace was read from."""
    run: Run = field(default_factory=Run)
    """The wall-time ledger of the program run in which the trace was recorded; empty if there is
    none."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """Returns what selftime recorded besides events; empty if another tool recorded."""
        facts = self.metadata.get("selftime")
        return facts if isinstance(facts, dict) else {}

    def tables(self) -> dict[str, pl.DataFrame]:
        """Returns {table name: table} for all tables of `schema.TABLES`."""
        return {name: getattr(self, name) for name in schema.TABLES}

    def view(self, name: str, /, **options: Any) -> pl.DataFrame:
        """Returns the named view's table for this trace: `trace.view("operators", by="shape")`."""
        from selftime.views import find_view  # noqa: PLC0415 - views are made of traces

        return find_view(name)(self, **options)

    def sql(self, query: str, /, **views: str) -> pl.DataFrame:
        """Returns the result of an SQL query over all tables and views.

        See `selftime.sql.query`. `trace.sql("select * from shapes limit 5", shapes="operators
        by=shape")`.
        """
        return _query_result(self, query, views)

    def export(self, output: str | os.PathLike[str], /, *, to: str, **options: Any) -> None:
        """Writes the trace in another format: `trace.export("a.pftrace", to="perfetto")`."""
        _export_to_file(self, output, to, options)

    def show(self, panel: str = "answer", /, **params: Any) -> Any:
        """Shows the trace's page in a notebook, at one of its panels: `trace.show("timeline")`."""
        return _notebook_module().show(self, panel, **params)

    def _repr_html_(self) -> str:
        return str(_notebook_module().notebook_html(self))

    def __repr__(self) -> str:
        last = 0
        if self.slices.height:
            ends = self.slices["start"] + self.slices["duration"].fill_null(0)
            last = int(ends.max() or 0)  # type: ignore[arg-type]  # integers
        source = self.source or "(in memory)"
        if not source.isprintable():  # a file name may contain terminal control characters
            source = repr(source)
        return f"<Trace {source}: {self.slices.height:,} slices, {time_text(last)}>"


@dataclass(frozen=True, slots=True)
class TraceInJob:
    """What identifies a trace within a distributed job: rank, label, run and recording number."""

    label: str
    """The trace's label: its rank, its position along the parallel axes, or its number.

    It is unique among the traces of one run, which is a folder.
    """
    rank: int | None = None
    """The rank of the process; None if unknown."""
    size: int | None = None
    """The number of ranks of the job; None if unknown."""
    known_by: str = ""
    """Where the rank was found: `header`, `file name`, `folder` or `process groups`."""
    run: str = ""
    """Path of the run's folder relative to the job's folder, without folders named after a rank."""
    window: int | None = None
    """Number, from 1, of this recording among the recordings of its process; None if there is
    only one."""


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """The traces of one distributed job by path: one for each rank and recording."""

    traces: Mapping[str, Trace]
    refused: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Maps the path of each file that could not be read to the reason."""
    members: Mapping[str, TraceInJob] = field(default_factory=lambda: MappingProxyType({}))
    """Maps the path of each trace to its rank, label, run and recording number."""
    notes: tuple[str, ...] = ()
    """One sentence for each problem with the ranks: missing, duplicate or unknown ranks."""

    def __repr__(self) -> str:
        count = f"{len(self.traces)} trace{'' if len(self.traces) == 1 else 's'}"
        labels = ", ".join(member.label for member in self.members.values()) or "no labels"
        left_out = f"; {len(self.refused)} left out" if self.refused else ""
        return f"<Job of {count}: {labels}{left_out}>"

    def __iter__(self) -> Iterator[Trace]:
        return iter(self.traces.values())

    def __len__(self) -> int:
        return len(self.traces)

    def view(self, name: str, /, **options: Any) -> pl.DataFrame:
        """Returns the named view's table for this job: `job.view("stragglers")`.

        A view of one trace is computed for each trace and the tables are stacked, with the columns
        rank (null if unknown) and label before the view's own.
        """
        from selftime.views import find_view, view_of_job  # noqa: PLC0415 - views are made of traces

        return view_of_job(self, find_view(name), options)

    def sql(self, query: str, /, **views: str) -> pl.DataFrame:
        """Returns the result of an SQL query; the column `trace` of each table names the trace."""
        return _query_result(self, query, views)

    def export(self, output: str | os.PathLike[str], /, *, to: str, **options: Any) -> None:
        """Writes all traces to one file: `job.export("job.pftrace", to="perfetto")`."""
        _export_to_file(self, output, to, options)

    def show(self, panel: str = "answer", /, **params: Any) -> Any:
        """Shows the page of all the job's traces in a notebook, at one of its panels."""
        return _notebook_module().show(self, panel, **params)

    def _repr_html_(self) -> str:
        return str(_notebook_module().notebook_html(self))


def _query_result(subject: Trace | Job, query: str, views: Mapping[str, str]) -> pl.DataFrame:
    """Returns the result of an SQL query over a trace or a job."""
    from selftime import sql  # noqa: PLC0415 - queries are asked of traces

    return sql.query(subject, query, views)


def _export_to_file(
    subject: Trace | Job, output: str | os.PathLike[str], to: str, options: Mapping[str, Any]
) -> None:
    """Writes a trace or a job to a file in another format, such as Perfetto's."""
    from selftime.reports import export  # noqa: PLC0415 - exports are made of traces

    export.export(subject, output, to=to, **options)


def _notebook_module() -> ModuleType:
    """Returns the module that shows traces in a notebook, imported on first use."""
    from selftime import notebook  # noqa: PLC0415 - a notebook shows traces

    return notebook


assert {f.name for f in fields(Trace)} >= set(schema.TABLES), "every table has a field"  # noqa: S101 - true at import or the package is broken

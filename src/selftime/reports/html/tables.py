"""Chooses the tables of a trace that a report may contain, and compresses them.

The timeline is stored at several resolutions. The page draws from the coarsest one that is fine
enough, else from the finest one in the report, and then says that the picture is incomplete.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
import polars as pl

from selftime.analysis.call_tree.flame_graph import NAME_OF_MERGED_SMALL_NODES
from selftime.reports.html.packing import compress_json, compress_page_columns
from selftime.reports.page_data.table_queries import PreparedTable, RowQuery, prepare_table
from selftime.trace import Trace
from selftime.views import VIEWS, View
from selftime.views.flame import flame
from selftime.views.kernels import kernels
from selftime.views.lines import lines
from selftime.views.operators import operators
from selftime.views.timeline import timeline
from selftime.views.view_declaration import TraceJobOrRanks

_PRIORITY_OF_SLICE_TABLES: Final = 8
"""Priority of tables that list single slices: they are included after all other tables."""
_PRIORITY_OF_SANDWICH_TABLES: Final = 7
"""Priority of tables with the callers or callees of one name."""
_MAX_NAMES_WITH_CALLERS: Final = 10
"""Largest number of names by self time, and by total time, of which the report has both."""
_MAX_ROWS_OF_TABLE_OF_ALL_SLICES: Final = 10_000
"""Largest number of rows of the table that lists all slices."""
_MAX_SLICES_PER_EXPANDED_ROW: Final = 50
"""Largest number of slices that the report lists for a table row which the reader expands."""
_GROUPINGS_OF_SLICES_IN_EXPANDED_ROW: Final = (
    "name",
    "duration",
    "line",
    "stack",
    "shape",
    "thread",
    "step",
)
"""Ways to group the slices of an expanded table row: values of the option `by` of `occurrences`."""
_MAX_OPERATORS_AND_KERNELS_WITH_SLICES: Final = 12
"""Largest number of operators, and of kernels, for which the report lists single slices."""
_MAX_SOURCE_LINES_WITH_SLICES: Final = 30
"""Largest number of source lines for which the report lists single slices."""
_MAX_TRACE_SLICES_FOR_SLICE_TABLES: Final = 500_000
"""Number of slices of a trace above which a report lists no slices for expanded table rows."""

VIEWS_OPENED_FIRST: Final = (
    "health",
    "overview",
    "steps",
    "lines",
    "operators",
    "idle",
    "run_summary",
    "run",
    "run_kinds",
    "run_lines",
    "run_curve",
)
"""Names of the views that readers open most; their tables are included first."""
VIEWS_OF_ONE_SELECTION: Final = ("timeline", "occurrences", "slice", "selection", "matches")
"""Names of views that need a selected slice, name or range; without one they are empty."""
_NON_DEFAULT_TEXT_OPTIONS_BY_VIEW: Final[dict[str, tuple[dict[str, Any], ...]]] = {
    "operators": tuple({"by": by} for by in ("shape", "line", "stack", "type")),
    "memory_peak": tuple({"by": by} for by in ("category", "operator", "module", "line")),
    "memory_holders": tuple({"by": by} for by in ("operator", "module", "line")),
    "memory_lifetimes": tuple(
        {"by": by} for by in ("category", "operator", "module", "category+operator+line")
    ),
    "idle": ({"by": "cause", "counted": True},),
    "critical_path": tuple(
        {"by": by, "step": "typical"} for by in ("kind", "name", "operator", "line")
    ),
    "critical_path_band": ({"step": "all"},),
    "off_path": ({"step": "typical"},),
}
"""Common values of view options that accept any text, by view; the report includes their tables."""
_MAX_ROWS_OF_TABLE_VERSIONS: Final = (300, 2_000, 20_000)
"""Largest number of rows in the small, medium and large version of a table."""
_MAX_UNCOMPRESSED_TABLE_BYTES: Final = 32 << 20
"""Largest size of an uncompressed table in bytes; the last rows of a larger one are left out."""


@dataclass(frozen=True, slots=True)
class PackedTable:
    """A compressed table of a view, in several versions that differ in their number of rows."""

    priority: int
    """Tables of lower priority number are included first."""
    view: str
    options: dict[str, Any]
    versions: tuple[str, ...] = field(repr=False)
    """Compressed table as base64 text, one per version; the version with the fewest rows comes
    first."""

    def to_dict(self, version: int) -> dict[str, Any]:
        """Returns one version of the table as an entry in the report's data."""
        return {"view": self.view, "options": self.options, "packed": self.versions[version]}


class TableRequest(NamedTuple):
    """A table that a report may include: its priority, the view, and the view's options."""

    priority: int
    view: View[Any]
    options: dict[str, Any]


def view_table_requests() -> list[TableRequest]:
    """Returns requests for every view's table, with default options and with common other ones."""
    views = [view for name, view in VIEWS.items() if name not in VIEWS_OF_ONE_SELECTION]
    default_requests = [
        TableRequest(1 if view.name in VIEWS_OPENED_FIRST else 3, view, {}) for view in views
    ]
    return default_requests + [
        TableRequest(5, view, options)
        for view in views
        for options in _options_differing_from_defaults(view)
    ]


def _options_differing_from_defaults(view: View[Any]) -> Iterator[dict[str, Any]]:
    """Yields option sets of a view, each with one option that differs from its default."""
    for name, option in view.options.items():
        for choice in option.choices:
            if choice != option.default:
                yield {name: choice}
        if option.default is False:
            yield {name: True}
    yield from _NON_DEFAULT_TEXT_OPTIONS_BY_VIEW.get(view.name, ())


def pack_table(subject: TraceJobOrRanks, request: TableRequest) -> PackedTable:
    """Returns the requested table, compressed, in versions of different numbers of rows."""
    priority, view, options = request
    prepared = prepare_table(view(subject, **options), view.columns, sums=view.sums)
    height = prepared.table.height
    row_counts = [size for size in _MAX_ROWS_OF_TABLE_VERSIONS if size < height]
    if height <= _MAX_ROWS_OF_TABLE_VERSIONS[-1]:
        row_counts.append(height)
    missing_data = view.missing_data(subject)
    versions = [
        pack_table_page(prepared, view, options, rows=rows, missing_data=missing_data)
        for rows in row_counts
    ]
    return PackedTable(priority, view.name, options, tuple(versions))


def pack_table_page(
    prepared: PreparedTable,
    view: View[Any],
    options: dict[str, Any],
    *,
    rows: int | None = None,
    missing_data: Sequence[str] = (),
) -> str:
    """Returns the first rows of a prepared table as compressed JSON for the web page."""
    defaults = {name: option.default for name, option in view.options.items()}
    page_json = prepared.page_json(
        RowQuery(rows=rows),
        view=view.name,
        options={**defaults, **options},
        missing_data=missing_data,
        max_bytes=_MAX_UNCOMPRESSED_TABLE_BYTES,
    )
    page = msgspec.json.decode(page_json)
    units = {column.name: column.unit for column in prepared.columns}
    return compress_json({**page, "columns": compress_page_columns(page["columns"], units)})


def slice_table_requests(trace: Trace) -> Iterator[TableRequest]:
    """Yields requests for tables of slices: of all slices, and of costly operators and lines."""
    view = VIEWS["occurrences"]
    yield TableRequest(_PRIORITY_OF_SLICE_TABLES, view, {"top": _MAX_ROWS_OF_TABLE_OF_ALL_SLICES})
    if trace.slices.height <= _MAX_TRACE_SLICES_FOR_SLICE_TABLES:
        yield from (
            TableRequest(priority, view, options)
            for priority, options in _priorities_and_options_of_slice_tables(trace)
        )


def _priorities_and_options_of_slice_tables(trace: Trace) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields (priority, view options) for slices of costly operators, kernels and lines."""
    rows = (
        operators(trace, top=_MAX_OPERATORS_AND_KERNELS_WITH_SLICES).select("name", "kind").rows()
    )
    costliest = [{"name": name, "kind": kind} for name, kind in rows if kind != "memory"]
    kernel_names = (
        kernels(trace, top=_MAX_OPERATORS_AND_KERNELS_WITH_SLICES)["name"].cast(str).to_list()
    )
    costliest += [{"name": name, "kind": "kernel"} for name in kernel_names]
    for selection in costliest:
        yield _PRIORITY_OF_SLICE_TABLES, {**selection, "top": _MAX_SLICES_PER_EXPANDED_ROW}
        yield from (
            (_PRIORITY_OF_SLICE_TABLES + 1, {**selection, "by": key})
            for key in _GROUPINGS_OF_SLICES_IN_EXPANDED_ROW
        )
    source_lines = (
        lines(trace)
        .drop_nulls(["file", "line"])
        .head(_MAX_SOURCE_LINES_WITH_SLICES)
        .select("file", "line")
    )
    for selection in source_lines.iter_rows(named=True):
        yield _PRIORITY_OF_SLICE_TABLES, {**selection, "by": "name"}


def sandwich_table_requests(trace: Trace) -> Iterator[TableRequest]:
    """Yields requests for the callers and the callees of the names with the largest times."""
    names = flame(trace, order="flat").filter(pl.col("name") != NAME_OF_MERGED_SMALL_NODES)
    heaviest = pl.concat(
        names.sort(time, descending=True, maintain_order=True).head(_MAX_NAMES_WITH_CALLERS)
        for time in ("self_time", "total_time")
    )
    for name, kind in heaviest.select("name", "kind").unique(maintain_order=True).iter_rows():
        for order in ("top_down", "bottom_up"):
            options = {"order": order, "of": name, "kind": kind}
            yield TableRequest(_PRIORITY_OF_SANDWICH_TABLES, flame, options)


TimelineResolution: TypeAlias = tuple[dict[str, Any], pl.DataFrame]
"""Options of the view `timeline` at one resolution (ns per pixel), and the table's rows."""

_MIN_PIXELS_AT_COARSEST_RESOLUTION: Final = 2048
"""Smallest width of the whole timeline at its coarsest resolution, in pixels."""
_LOG2_RATIO_BETWEEN_RESOLUTIONS: Final = 1
"""Each timeline resolution has 2 to this power as many pixels as the next coarser one."""
_MAX_TIMELINE_ROWS_PER_RESOLUTION: Final = 400_000
"""Number of rows above which no finer resolution of the timeline is computed."""
_TIMELINE_COLUMNS_LEFT_OUT_OF_REPORT: Final = (
    "to",
    "to_track",
    "to_row",
    "to_time",
    "rows",
    "process",
    "device",
)
"""Columns of the timeline that its drawing does not need, and the report leaves out."""


def packed_timeline_tables(trace: Trace) -> Iterator[PackedTable]:
    """Yields compressed tables: the list of tracks, then the timeline from coarse to fine."""
    view = VIEWS["timeline"]
    tracks = timeline(trace, what="tracks")
    prepared_tracks = prepare_table(tracks, view.columns)
    yield PackedTable(
        1,
        view.name,
        {"what": "tracks"},
        (pack_table_page(prepared_tracks, view, {"what": "tracks"}),),
    )
    columns = tuple(
        column for column in view.columns if column.name not in _TIMELINE_COLUMNS_LEFT_OUT_OF_REPORT
    )
    levels = _resolutions_with_doubling_row_counts(
        list(_timeline_resolutions(trace, *_begin_and_end_ns_of_tracks(tracks)))
    )
    for number, (options, rows) in enumerate(levels):
        page = pack_table_page(prepare_table(rows, columns), view, options)
        yield PackedTable(2 if number == 0 else 5 + number, view.name, options, (page,))


def _timeline_resolutions(trace: Trace, begin: int, end: int) -> Iterator[TimelineResolution]:
    """Yields (options, rows) of the timeline, ever finer, until each slice has its own row."""
    coarsest = max(0, ((end - begin) // _MIN_PIXELS_AT_COARSEST_RESOLUTION).bit_length() - 1)
    for level in range(
        coarsest, -_LOG2_RATIO_BETWEEN_RESOLUTIONS, -_LOG2_RATIO_BETWEEN_RESOLUTIONS
    ):
        first, last, pixels = _range_in_whole_pixels_and_pixel_count(begin, end, max(level, 0))
        rows = timeline(trace, start=first, end=last, pixels=pixels)
        if rows.height > _MAX_TIMELINE_ROWS_PER_RESOLUTION:
            return
        is_complete = not (rows["count"] > 1).any()
        yield {"start": first, "end": last, "pixels": last - first if is_complete else pixels}, rows
        if is_complete:
            return


def _resolutions_with_doubling_row_counts(
    levels: list[TimelineResolution],
) -> list[TimelineResolution]:
    """Returns the finest resolution, and coarser ones that each have at most half the rows."""
    distinct = levels[-1:]
    for options, rows in reversed(levels[:-1]):
        if rows.height * 2 <= distinct[0][1].height:
            distinct.insert(0, (options, rows))
    return distinct


def _begin_and_end_ns_of_tracks(tracks: pl.DataFrame) -> tuple[int, int]:
    """Returns when the first slice on the tracks begins, and 1 ns after the last ends, in ns."""
    end = pl.col("start") + pl.col("duration").fill_null(0)
    begin, last = tracks.select(begin=pl.col("start").min(), end=end.max()).row(0)
    return (0, 1) if begin is None else (begin, last + 1)


def _range_in_whole_pixels_and_pixel_count(
    begin: int, end: int, pixel_bits: int
) -> tuple[int, int, int]:
    """Returns (begin ns, end ns, pixels) of a range widened to pixels of `2**pixel_bits` ns."""
    first, last = begin >> pixel_bits, -(-end >> pixel_bits)
    return first << pixel_bits, last << pixel_bits, last - first

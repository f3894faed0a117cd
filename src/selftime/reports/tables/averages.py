"""Provides the table of operators with the attributes and layout of torch's `key_averages()`.

Rows have the attributes of `torch.autograd.profiler_util.FunctionEventAvg`, with times in
microseconds and memory in bytes, and the text has torch's layout, so existing code keeps working.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, SupportsIndex, overload

import polars as pl

from selftime.errors import UsageError
from selftime.reports.tables.averages_text import (
    MICROSECONDS_PER_UNIT,
    byte_count_text,
    cut_name_as_torch,
    cut_text_start,
    flops_factor_and_unit,
    limit_column_width,
    microseconds_text,
    percentage_text,
)

_TOP_LEVEL_EVENTS_NOTE: Final = "This report only displays what ran inside no other operator"
"""Note that torch prints above a table of top-level events only."""
_NS_PER_US: Final = 1_000
_MIN_NUMBER_COLUMN_WIDTH: Final = 12
"""Smallest width of a column of numbers, in characters."""
_COLUMN_SEPARATOR: Final = "  "
"""Text between two columns."""
_TIME_ATTRIBUTES_FOR_SORTING: Final = (
    "cpu_time",
    "cpu_time_total",
    "self_cpu_time_total",
    "device_time",
    "device_time_total",
    "self_device_time_total",
)
"""Attributes of a row that are times in us; with the suffix `_str` each is also available as
text."""
_DEVICE_NAMES_IN_SORT_BY: Final = ("cuda", "xpu", "privateuse1", "hip")
"""Device names in torch's attributes, such as `cuda_time`; in `sort_by` they mean `device`."""


@dataclass(frozen=True, slots=True)
class OperatorAverage:
    """One table row: sums over all calls of an operator or kernel; times in us, memory in bytes."""

    key: str
    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    device_time_total: float
    self_device_time_total: float
    cpu_memory_usage: int
    self_cpu_memory_usage: int
    device_memory_usage: int
    self_device_memory_usage: int
    flops: int
    input_shapes: list[Any] | str
    stack: list[str]
    overload_name: str
    is_user_annotation: bool
    is_device: bool
    """Whether the row is a kernel or copy, whose times are device times."""
    node_id: int = -1

    @property
    def cpu_time(self) -> float:
        """Mean CPU time of a call, in us."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """Mean device time of a call, in us."""
        return self.device_time_total / self.count if self.count else 0.0

    def __getattr__(self, name: str) -> str:
        """Returns times as text under torch's names: `cpu_time_str` is the text of `cpu_time`."""
        if name.removesuffix("_str") not in _TIME_ATTRIBUTES_FOR_SORTING or not name.endswith(
            "_str"
        ):
            raise AttributeError(f"an average has no attribute {name!r}")
        return microseconds_text(getattr(self, name.removesuffix("_str")), None)


_FIELDS_SUMMED_IN_TOTAL: Final = (
    "count",
    "cpu_time_total",
    "self_cpu_time_total",
    "device_time_total",
    "self_device_time_total",
    "cpu_memory_usage",
    "self_cpu_memory_usage",
    "device_memory_usage",
    "self_device_memory_usage",
    "flops",
)
"""Fields of a row that the row of totals sums up."""


class OperatorAverages(list[OperatorAverage]):
    """The rows of a table of operators, which print in the layout of `key_averages()`."""

    def __init__(
        self,
        rows: Iterable[OperatorAverage],
        *,
        device: str | None = None,
        with_memory: bool = False,
        with_flops: bool = False,
        top_level: Callable[[], "OperatorAverages"] | None = None,
    ) -> None:
        super().__init__(rows)
        self.device, self.with_memory, self.with_flops = device, with_memory, with_flops
        self._top_level = top_level

    @classmethod
    def of_view(cls, operators_table: pl.DataFrame, **options: Any) -> "OperatorAverages":
        """Returns the rows of a table of the view `operators` as averages."""
        if not options.get("with_flops"):  # torch counts none unless asked to
            operators_table = operators_table.with_columns(flops=None)
        return cls(
            (_average_of_view_row(row) for row in operators_table.iter_rows(named=True)), **options
        )

    @property
    def self_cpu_time_total(self) -> float:
        """Sum of the self CPU time of all rows, in us."""
        return sum(row.self_cpu_time_total for row in self)

    def total_average(self) -> OperatorAverage:
        """Returns the sums over all rows as one row with the key `Total`."""
        sums = {name: sum(getattr(row, name) for row in self) for name in _FIELDS_SUMMED_IN_TOTAL}
        empty_fields: dict[str, Any] = {"input_shapes": "", "stack": [], "overload_name": ""}
        return OperatorAverage(
            key="Total", is_user_annotation=False, is_device=False, **empty_fields, **sums
        )

    def __str__(self) -> str:
        return self.table()

    @overload
    def __getitem__(self, at: SupportsIndex) -> OperatorAverage: ...
    @overload
    def __getitem__(self, at: slice) -> "OperatorAverages": ...
    def __getitem__(self, at: Any) -> Any:
        chosen = super().__getitem__(at)
        return self._copy_with_rows(chosen) if isinstance(at, slice) else chosen

    def _copy_with_rows(self, chosen_rows: Iterable[OperatorAverage]) -> "OperatorAverages":
        """Returns a table of the given rows, with this table's device and column options."""
        return OperatorAverages(
            chosen_rows,
            device=self.device,
            with_memory=self.with_memory,
            with_flops=self.with_flops,
        )

    def table(  # noqa: PLR0913, PLR0917 - torch's own signature
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """Returns the table as text, sorted by any numeric attribute of the rows, largest first.

        `row_limit` of -1 prints all rows. `top_level_events_only` counts only events outside of all
        others; shares are still of the total. `time_unit` is `s`, `ms` or `us` for all times; None
        chooses a unit for each time.
        """
        if not self:
            return ""
        if time_unit is not None and time_unit not in MICROSECONDS_PER_UNIT:
            raise UsageError(f"`time_unit` is `{time_unit}`; choose one of s, ms, us")
        rows: list[OperatorAverage] = self
        if top_level_events_only and self._top_level is not None:
            rows = self._top_level()
        if sort_by is not None:
            rows = sorted(rows, key=_sort_key_for_attribute(sort_by), reverse=True)
        widths = (max_name_column_width, max_shapes_column_width, max_src_column_width)
        lines = _AveragesTextLayout(self, widths, time_unit).table_lines(
            rows if row_limit < 0 else rows[:row_limit]
        )
        rule = "=" * len(lines[0])
        above = [rule, header] if header is not None else []
        above += [rule, _TOP_LEVEL_EVENTS_NOTE] if top_level_events_only else []
        return "\n".join([*above, *lines]) + "\n"


def _average_of_view_row(view_row: dict[str, Any]) -> OperatorAverage:
    """Returns a row of the view `operators` as an `OperatorAverage`, in us and bytes."""
    shapes = view_row["input_shapes"]
    return OperatorAverage(
        key=str(view_row["name"]),
        count=view_row["count"],
        cpu_time_total=_nanoseconds_as_microseconds(view_row["cpu_time_total"]),
        self_cpu_time_total=_nanoseconds_as_microseconds(view_row["self_cpu_time_total"]),
        device_time_total=_nanoseconds_as_microseconds(view_row["device_time_total"]),
        self_device_time_total=_nanoseconds_as_microseconds(view_row["self_device_time_total"]),
        **{
            f"{own}{side}_memory_usage": view_row[f"{own}{side}_memory_usage"] or 0
            for own in ("", "self_")
            for side in ("cpu", "device")
        },
        flops=view_row["flops"] or 0,
        input_shapes=json.loads(shapes) if shapes else "",
        stack=view_row["stack"].split(";") if view_row["stack"] else [],
        overload_name=view_row["overload"] or "",
        is_user_annotation=view_row["kind"] == "annotation",
        is_device=view_row["kind"] in {"kernel", "copy"},
    )


def _nanoseconds_as_microseconds(nanoseconds: int | None) -> float:
    """Returns ns as us; None becomes 0, since torch's rows cannot hold unknown values."""
    return (nanoseconds or 0) / _NS_PER_US


def _sort_key_for_attribute(sort_by: str) -> Callable[[OperatorAverage], float]:
    """Returns a function that gets the attribute `sort_by` of a row, such as `cpu_time_total`."""
    name = sort_by
    for device in _DEVICE_NAMES_IN_SORT_BY:
        name = name.replace(device, "device")
    sortable = [
        n
        for n in (*OperatorAverage.__slots__, "cpu_time", "device_time")
        if n not in _UNSORTABLE_FIELDS
    ]
    if name not in sortable:
        raise UsageError(f"`sort_by` is `{sort_by}`; choose one of {', '.join(sortable)}")
    return lambda row: float(getattr(row, name))


_UNSORTABLE_FIELDS: Final = frozenset(
    {"key", "input_shapes", "stack", "overload_name", "is_user_annotation", "is_device", "node_id"}
)
"""Fields of a row that `sort_by` does not accept."""


class _AveragesTextLayout:
    """Layout of the table as text: columns, their widths in characters, and the cells' texts."""

    def __init__(
        self,
        rows: OperatorAverages,
        widths: tuple[int | None, int | None, int | None],
        unit: str | None,
    ) -> None:
        self.time_unit = unit
        self.device = (rows.device or "device").upper()
        self.has_device = any(row.self_device_time_total > 0 for row in rows)
        self.has_device_memory = any(row.self_device_memory_usage > 0 for row in rows)
        self.has_memory = rows.with_memory
        self.has_shapes = any(row.input_shapes not in ("", []) for row in rows)
        self.has_overloads = any(row.overload_name for row in rows)
        self.has_stacks = any(row.stack for row in rows)
        self.flops_scale = (
            flops_factor_and_unit(row.flops for row in rows) if rows.with_flops else None
        )
        self.host_total = rows.self_cpu_time_total
        self.device_total = sum(row.self_device_time_total for row in rows if row.is_device)
        self.name_limit = widths[0]
        limits = dict(zip(("name", "shapes", "stack"), widths, strict=True))
        self.name_width = limit_column_width(max(len(row.key) for row in rows) + 4, limits["name"])
        shapes = max(len(str(row.input_shapes)) for row in rows) + 4
        self.shapes_width = limit_column_width(shapes, limits["shapes"])
        entries = [len(entry) for row in rows for entry in row.stack]
        self.stack_width = limit_column_width(max(entries, default=0) + 4, limits["stack"])

    def table_lines(self, rows: Iterable[OperatorAverage]) -> list[str]:
        """Returns the lines of the table: headings, rows, and the total times below."""
        heads, widths = zip(*self._headings_and_widths(), strict=True)
        rule = _COLUMN_SEPARATOR.join("-" * width for width in widths)
        out = [rule, self._row_as_line(heads, widths), rule]
        for row in rows:
            out.append(self._row_as_line(self._cells_of_row(row), widths))
            if self.has_stacks:
                out += self._stack_lines_below_row(row, widths)
        out += [rule, f"Self CPU time total: {self._time_cell(self.host_total)}"]
        if self.has_device:
            out.append(f"Self {self.device} time total: {self._time_cell(self.device_total)}")
        return out

    def _headings_and_widths(self) -> Iterable[tuple[str, int]]:
        """Yields the heading and the width in characters of each column, in torch's order."""
        yield "Name", self.name_width
        if self.has_overloads:
            yield "Overload Name", self.name_width
        heads = ["Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
        if self.has_device:
            name = self.device
            heads += [f"Self {name}", f"Self {name} %", f"{name} total", f"{name} time avg"]
        if self.has_memory:
            heads += ["CPU Mem", "Self CPU Mem"]
            heads += [f"{self.device} Mem", f"Self {self.device} Mem"] * self.has_device_memory
        for head in [*heads, "# of Calls"]:
            yield head, max(_MIN_NUMBER_COLUMN_WIDTH, len(head))
        if self.has_shapes:
            yield "Input Shapes", self.shapes_width
        if self.flops_scale is not None:
            yield f"Total {self.flops_scale[1]}", _MIN_NUMBER_COLUMN_WIDTH
        if self.has_stacks:
            yield "Source Location", self.stack_width

    def _cells_of_row(self, row: OperatorAverage) -> list[str]:
        """Returns the text of each cell of a row."""
        cells = [cut_name_as_torch(row.key, self.name_limit)]
        if self.has_overloads:
            cells.append(cut_name_as_torch(row.overload_name, self.name_limit))
        cells += [
            percentage_text(row.self_cpu_time_total, self.host_total),
            self._time_cell(row.self_cpu_time_total),
            percentage_text(row.cpu_time_total, self.host_total),
            self._time_cell(row.cpu_time_total),
            self._time_cell(row.cpu_time),
        ]
        if self.has_device:
            cells += [
                self._time_cell(row.self_device_time_total),
                percentage_text(row.self_device_time_total, self.device_total),
                self._time_cell(row.device_time_total),
                self._time_cell(row.device_time),
            ]
        if self.has_memory:
            cells += [
                byte_count_text(row.cpu_memory_usage),
                byte_count_text(row.self_cpu_memory_usage),
            ]
            if self.has_device_memory:
                cells += [
                    byte_count_text(row.device_memory_usage),
                    byte_count_text(row.self_device_memory_usage),
                ]
        cells.append(str(row.count))
        if self.has_shapes:
            cells.append(str(row.input_shapes)[: self.shapes_width])
        if self.flops_scale is not None:
            cells.append(f"{row.flops * self.flops_scale[0]:.3f}" if row.flops > 0 else "--")
        if self.has_stacks:
            cells.append(cut_text_start(row.stack[0], self.stack_width) if row.stack else "")
        return cells

    def _stack_lines_below_row(self, row: OperatorAverage, widths: tuple[int, ...]) -> list[str]:
        """Returns one line for each further entry of a row's call stack, and an empty line."""
        indent = " " * (sum(widths[:-1]) + len(_COLUMN_SEPARATOR) * (len(widths) - 1))
        return [*(indent + cut_text_start(entry, self.stack_width) for entry in row.stack[1:]), ""]

    def _row_as_line(self, cells: Iterable[str], widths: tuple[int, ...]) -> str:
        """Returns the cells of a row, padded to the widths, as one line."""
        last = len(widths) - 1 if self.has_stacks else -1
        pairs = enumerate(zip(cells, widths, strict=True))
        return _COLUMN_SEPARATOR.join(
            c.ljust(w) if at == last else c.rjust(w) for at, (c, w) in pairs
        )

    def _time_cell(self, microseconds: float) -> str:
        """Returns a time as text in the table's unit."""
        return microseconds_text(microseconds, self.time_unit)

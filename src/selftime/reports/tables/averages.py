"""The operator table in the form of torch's `key_averages()`: rows with its attributes, its layout.

Rows carry the attribute names of `torch.autograd.profiler_util.FunctionEventAvg`, times in
microseconds, memory in bytes, so that code and eyes that know torch's table find theirs again.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, SupportsIndex, overload

import polars as pl

from selftime.errors import UsageError

_TOP_LEVEL: Final = "This report only displays what ran inside no other operator"
_NS: Final = 1_000
_WIDTH: Final = 12
_GAP: Final = "  "
_UNITS: Final = {"s": 1e6, "ms": 1e3, "us": 1.0}
_BINARY: Final = ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB"))
_FLOPS: Final = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")
_TIMES: Final = (
    "cpu_time",
    "cpu_time_total",
    "self_cpu_time_total",
    "device_time",
    "device_time_total",
    "self_device_time_total",
)
_DEVICES: Final = ("cuda", "xpu", "privateuse1", "hip")


@dataclass(frozen=True, slots=True)
class Average:
    """One row: all events of one key together. Times in us, memory in bytes."""

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
    """A kernel or copy: its time is the device's own."""
    node_id: int = -1

    @property
    def cpu_time(self) -> float:
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        return self.device_time_total / self.count if self.count else 0.0

    def __getattr__(self, name: str) -> str:
        """Times as text, under torch's names: `cpu_time_str` is `cpu_time` written out."""
        if name.removesuffix("_str") not in _TIMES or not name.endswith("_str"):
            raise AttributeError(f"an average has no attribute {name!r}")
        return _time(getattr(self, name.removesuffix("_str")), None)


_SUMMED: Final = (
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


class Averages(list[Average]):
    """The rows of an operator table, and ways to print them."""

    def __init__(
        self,
        rows: Iterable[Average],
        *,
        device: str | None = None,
        with_memory: bool = False,
        with_flops: bool = False,
        top_level: Callable[[], "Averages"] | None = None,
    ) -> None:
        super().__init__(rows)
        self.device, self.with_memory, self.with_flops = device, with_memory, with_flops
        self._top_level = top_level

    @classmethod
    def of_view(cls, table: pl.DataFrame, **options: Any) -> "Averages":
        """The rows of the view `operators`, whose columns have the same names."""
        if not options.get("with_flops"):  # torch counts none unless asked to
            table = table.with_columns(flops=None)
        return cls((_average(row) for row in table.iter_rows(named=True)), **options)

    @property
    def self_cpu_time_total(self) -> float:
        """Sum of all self CPU time, in us."""
        return sum(row.self_cpu_time_total for row in self)

    def total_average(self) -> Average:
        """All rows as one: sums over every operator, annotation, call and kernel."""
        sums = {name: sum(getattr(row, name) for row in self) for name in _SUMMED}
        plain: dict[str, Any] = {"input_shapes": "", "stack": [], "overload_name": ""}
        return Average(key="Total", is_user_annotation=False, is_device=False, **plain, **sums)

    def __str__(self) -> str:
        return self.table()

    @overload
    def __getitem__(self, at: SupportsIndex) -> Average: ...
    @overload
    def __getitem__(self, at: slice) -> "Averages": ...
    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        return self._with(found) if isinstance(at, slice) else found

    def _with(self, rows: Iterable[Average]) -> "Averages":
        return Averages(
            rows, device=self.device, with_memory=self.with_memory, with_flops=self.with_flops
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
        """The table as text; `sort_by` is any numeric attribute of the rows, largest first.

        `row_limit` of -1 prints all rows. `top_level_events_only` counts what ran inside no other;
        its shares are of the whole, too. `time_unit` is `s`, `ms` or `us` for all times, or None
        for each time's own.
        """
        if not self:
            return ""
        if time_unit is not None and time_unit not in _UNITS:
            raise UsageError(f"`time_unit` is `{time_unit}`; choose one of s, ms, us")
        rows: list[Average] = self
        if top_level_events_only and self._top_level is not None:
            rows = self._top_level()
        if sort_by is not None:
            rows = sorted(rows, key=_sort_key(sort_by), reverse=True)
        widths = (max_name_column_width, max_shapes_column_width, max_src_column_width)
        lines = _Layout(self, widths, time_unit).lines(rows if row_limit < 0 else rows[:row_limit])
        rule = "=" * len(lines[0])
        above = [rule, header] if header is not None else []
        above += [rule, _TOP_LEVEL] if top_level_events_only else []
        return "\n".join([*above, *lines]) + "\n"


def _average(row: dict[str, Any]) -> Average:
    shapes = row["input_shapes"]
    return Average(
        key=str(row["name"]),
        count=row["count"],
        cpu_time_total=_microseconds(row["cpu_time_total"]),
        self_cpu_time_total=_microseconds(row["self_cpu_time_total"]),
        device_time_total=_microseconds(row["device_time_total"]),
        self_device_time_total=_microseconds(row["self_device_time_total"]),
        **{
            f"{own}{side}_memory_usage": row[f"{own}{side}_memory_usage"] or 0
            for own in ("", "self_")
            for side in ("cpu", "device")
        },
        flops=row["flops"] or 0,
        input_shapes=json.loads(shapes) if shapes else "",
        stack=row["stack"].split(";") if row["stack"] else [],
        overload_name=row["overload"] or "",
        is_user_annotation=row["kind"] == "annotation",
        is_device=row["kind"] in {"kernel", "copy"},
    )


def _microseconds(nanoseconds: int | None) -> float:
    """Torch's rows have no unknown: a time that is not known is 0 there."""
    return (nanoseconds or 0) / _NS


def _sort_key(sort_by: str) -> Callable[[Average], float]:
    name = sort_by
    for device in _DEVICES:
        name = name.replace(device, "device")
    known = [n for n in (*Average.__slots__, "cpu_time", "device_time") if n not in _NOT_SORTED]
    if name not in known:
        raise UsageError(f"`sort_by` is `{sort_by}`; choose one of {', '.join(known)}")
    return lambda row: float(getattr(row, name))


_NOT_SORTED: Final = frozenset(
    {"key", "input_shapes", "stack", "overload_name", "is_user_annotation", "is_device", "node_id"}
)


class _Layout:
    """Columns of the table: which there are, how wide, and what stands in them."""

    def __init__(
        self, rows: Averages, widths: tuple[int | None, int | None, int | None], unit: str | None
    ) -> None:
        self.unit = unit
        self.device = (rows.device or "device").upper()
        self.has_device = any(row.self_device_time_total > 0 for row in rows)
        self.has_device_memory = any(row.self_device_memory_usage > 0 for row in rows)
        self.has_memory = rows.with_memory
        self.has_shapes = any(row.input_shapes not in ("", []) for row in rows)
        self.has_overloads = any(row.overload_name for row in rows)
        self.has_stacks = any(row.stack for row in rows)
        self.scale = _flops_scale(rows) if rows.with_flops else None
        self.host_total = rows.self_cpu_time_total
        self.device_total = sum(row.self_device_time_total for row in rows if row.is_device)
        self.name_limit = widths[0]
        limits = dict(zip(("name", "shapes", "stack"), widths, strict=True))
        self.name_width = _limited(max(len(row.key) for row in rows) + 4, limits["name"])
        shapes = max(len(str(row.input_shapes)) for row in rows) + 4
        self.shapes_width = _limited(shapes, limits["shapes"])
        entries = [len(entry) for row in rows for entry in row.stack]
        self.stack_width = _limited(max(entries, default=0) + 4, limits["stack"])

    def lines(self, rows: Iterable[Average]) -> list[str]:
        heads, widths = zip(*self._columns(), strict=True)
        rule = _GAP.join("-" * width for width in widths)
        out = [rule, self._line(heads, widths), rule]
        for row in rows:
            out.append(self._line(self._cells(row), widths))
            if self.has_stacks:
                out += self._stack_lines(row, widths)
        out += [rule, f"Self CPU time total: {self._time(self.host_total)}"]
        if self.has_device:
            out.append(f"Self {self.device} time total: {self._time(self.device_total)}")
        return out

    def _columns(self) -> Iterable[tuple[str, int]]:
        """Heads and widths, in torch's order."""
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
            yield head, max(_WIDTH, len(head))
        if self.has_shapes:
            yield "Input Shapes", self.shapes_width
        if self.scale is not None:
            yield f"Total {self.scale[1]}", _WIDTH
        if self.has_stacks:
            yield "Source Location", self.stack_width

    def _cells(self, row: Average) -> list[str]:
        cells = [_cut(row.key, self.name_limit)]
        if self.has_overloads:
            cells.append(_cut(row.overload_name, self.name_limit))
        cells += [
            _share(row.self_cpu_time_total, self.host_total),
            self._time(row.self_cpu_time_total),
            _share(row.cpu_time_total, self.host_total),
            self._time(row.cpu_time_total),
            self._time(row.cpu_time),
        ]
        if self.has_device:
            cells += [
                self._time(row.self_device_time_total),
                _share(row.self_device_time_total, self.device_total),
                self._time(row.device_time_total),
                self._time(row.device_time),
            ]
        if self.has_memory:
            cells += [_memory(row.cpu_memory_usage), _memory(row.self_cpu_memory_usage)]
            if self.has_device_memory:
                cells += [_memory(row.device_memory_usage), _memory(row.self_device_memory_usage)]
        cells.append(str(row.count))
        if self.has_shapes:
            cells.append(str(row.input_shapes)[: self.shapes_width])
        if self.scale is not None:
            cells.append(f"{row.flops * self.scale[0]:.3f}" if row.flops > 0 else "--")
        if self.has_stacks:
            cells.append(_tail(row.stack[0], self.stack_width) if row.stack else "")
        return cells

    def _stack_lines(self, row: Average, widths: tuple[int, ...]) -> list[str]:
        indent = " " * (sum(widths[:-1]) + len(_GAP) * (len(widths) - 1))
        return [*(indent + _tail(entry, self.stack_width) for entry in row.stack[1:]), ""]

    def _line(self, cells: Iterable[str], widths: tuple[int, ...]) -> str:
        last = len(widths) - 1 if self.has_stacks else -1
        pairs = enumerate(zip(cells, widths, strict=True))
        return _GAP.join(c.ljust(w) if at == last else c.rjust(w) for at, (c, w) in pairs)

    def _time(self, microseconds: float) -> str:
        return _time(microseconds, self.unit)


def _time(microseconds: float, unit: str | None) -> str:
    """A time in the unit, or in its own, as torch writes it."""
    if unit is None:
        unit = "s" if microseconds >= 1e6 else "ms" if microseconds >= 1e3 else "us"
    return f"{microseconds / _UNITS[unit]:.3f}{unit}"


def _limited(width: int, limit: int | None) -> int:
    return width if limit is None else min(width, limit)


def _cut(name: str, limit: int | None) -> str:
    """The name, cut as torch cuts it: where it would come within three letters of the limit."""
    return name if limit is None or len(name) < limit - 3 else name[: limit - 3] + "..."


def _tail(entry: str, width: int) -> str:
    return entry if len(entry) <= width else "..." + entry[len(entry) - width + 3 :]


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2f}%" if whole else "NaN"


def _memory(size: int) -> str:
    for step, unit in _BINARY:
        if abs(size) >= step:
            return f"{size / step:.2f} {unit}"
    return f"{size} B"


def _flops_scale(rows: Iterable[Average]) -> tuple[float, str] | None:
    """The factor and name of the unit in which the smallest count is at least 1."""
    counts = [row.flops for row in rows if row.flops > 0]
    if not counts:
        return None
    step = min((len(str(min(counts))) - 1) // 3, len(_FLOPS) - 1)
    return 10.0 ** (-3 * step), _FLOPS[step]

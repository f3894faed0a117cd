"""Reads the ledger of a run: a log with one JSON object per line, appended as the program runs.

The last line may be cut off, where the process was killed; it is left out. A line that is no JSON
object, or whose columns do not match, is left out and counted.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import msgspec
import polars as pl

from selftime.devices import cpu_peak_rates_from_json
from selftime.errors import UnreadableTrace
from selftime.ingest.notebook_cells import (
    cells_of_ledger,
    step_kind_with_cell_named,
    with_cells_named,
)
from selftime.ingest.open_segment import lines_of_open_segment
from selftime.ingest.superseded_steps import with_acting, with_superseded_steps
from selftime.ledger_format import (
    AFTER_LAST_STEP,
    BEFORE_FIRST_STEP,
    LEDGER_FORMAT,
    LEDGER_SUFFIX,
    UNCOUNTED_STEPS,
    UNCOUNTED_STEPS_NAME,
)
from selftime.names.recorded_cells import RecordedCells
from selftime.run import (
    COUNTED,
    PHASES,
    RUN_COMPILATIONS,
    RUN_ITERATORS,
    RUN_READINGS,
    RUN_SAMPLES,
    RUN_SEGMENTS,
    Run,
)

_NO_CELLS: Final = RecordedCells()


def ledger_beside(trace: str, facts: Mapping[str, Any]) -> Run:
    """Returns the run whose ledger file a local trace names; empty if there is no such file.

    A trace that names none, or was moved without it, has an empty one. So has one that names a link
    that leads out of its folder. If the trace is a link, its ledger may lie beside its target.
    """
    name = facts.get("ledger")
    if not isinstance(name, str) or not name.endswith(LEDGER_SUFFIX) or Path(name).name != name:
        return Run()
    with suppress(OSError, UnreadableTrace):
        for beside in (Path(trace), Path(trace).resolve()):
            path = beside.with_name(name)
            if path.exists() and path.resolve().parent == path.parent.resolve():
                cells = RecordedCells.from_facts(facts)
                return read_ledger(path.read_bytes(), str(path), cells)
    return Run()


def read_ledger(data: bytes, source: str, cells_of_trace: RecordedCells = _NO_CELLS) -> Run:
    """Parses the bytes of a ledger file, and returns the run that it records.

    Cells of a notebook that it does not know are named as those of its trace.

    Raises:
        UnreadableTrace: They are no ledger.
    """
    decoded = list(_decoded(data.split(b"\n")))
    if not decoded or decoded[0].get("format") != LEDGER_FORMAT:
        raise UnreadableTrace(
            f"`{source}` cannot be read: it is not the ledger (step log) of a run"
        )
    cells = cells_of_ledger(decoded, cells_of_trace)
    told = with_cells_named(decoded[1:], cells)
    lines = [*told, *lines_of_open_segment(decoded[0], told)]
    return _run(decoded[0], lines, source, cells)


def is_ledger(first: bytes) -> bool:
    """Returns whether a file that begins with these bytes is a ledger."""
    return first.lstrip().startswith(b'{"format":"selftime.ledger/')


def _decoded(lines: list[bytes]) -> Iterator[dict[str, Any]]:
    decoder = msgspec.json.Decoder()
    for line in lines:
        try:
            value = decoder.decode(line) if line.strip() else None
        except (msgspec.DecodeError, UnicodeDecodeError):  # cut off, where the process was killed
            continue
        if isinstance(value, dict):
            yield value


def _run(
    head: Mapping[str, Any], lines: list[dict[str, Any]], source: str, cells: RecordedCells
) -> Run:
    began = _number(head.get("process_began"), _number(head.get("began"), 0))
    kind_lines = [
        {**line, "name": step_kind_with_cell_named(line["name"], cells)}
        if isinstance(line["name"], str)
        else line
        for line in lines
        if "kind" in line and "name" in line
    ]
    kinds = {_number(line["kind"]): _kind_name(line) for line in kind_lines}
    kinds |= {UNCOUNTED_STEPS: UNCOUNTED_STEPS_NAME, BEFORE_FIRST_STEP: None, AFTER_LAST_STEP: None}
    loop_lines = _loop_lines(kind_lines)
    segments = _segments(lines, kinds, began, loop_lines)
    ends = [line for line in lines if "end" in line]
    facts = {key: head[key] for key in ("process", "command", "rank") if key in head}
    end_facts = {key: value for line in ends for key, value in line.items() if key != "end"}
    peaks = cpu_peak_rates_from_json(end_facts.pop("cpu_peaks", None))
    facts |= end_facts
    for key in ("cells", "results"):
        facts |= next(({key: line[key]} for line in lines if key in line), {})
    return Run(
        segments=segments,
        readings=_readings(lines, segments, began),
        samples=_samples(lines, segments, began),
        compilations=_compilations(lines, began),
        iterators=_iterators(lines, began),
        loop_lines=MappingProxyType(loop_lines),
        evaluation_nodes=tuple(
            told["nodes"]
            for line in lines
            if isinstance(told := line.get("evaluation"), dict)
            and _is_numbers([told.get("start"), told.get("nodes")])
        ),
        evaluates=any("evaluates" in line for line in lines),
        recorded_slow_steps=MappingProxyType(_recorded_slow_steps(lines, segments, began)),
        startup_ns=max(0, _number(head.get("began"), began) - began),
        began_at=_began_at(head, began),
        own_startup_ns=max(0, _number(head.get("own_start"), 0)),
        is_whole=bool(ends),
        cpu_peaks=peaks,
        facts=MappingProxyType(facts),
        source=source,
    )


def _kind_name(line: Mapping[str, Any]) -> str | None:
    """Returns the name of a kind of steps; None if these were found to be part of the setup."""
    name = line.get("name", "")
    return None if name is None else str(name)


def _began_at(head: Mapping[str, Any], began: int) -> int | None:
    """Returns the process's start in ns since the Unix epoch; None if the ledger lacks the time."""
    time, clock = (_number(head.get(name), 0) for name in ("time", "clock"))
    return time - (clock - began) if time > 0 and clock > 0 else None


def _loop_lines(kind_lines: list[dict[str, Any]]) -> dict[str, tuple[str, int]]:
    """Returns the file and line of each loop whose iterations are steps, by the kind of step."""
    return {
        str(line.get("name")): (file, number)
        for line in kind_lines
        if (file := _text(line.get("file"))) and (number := _int32(line.get("line")))
    }


def _segments(
    lines: list[dict[str, Any]],
    kinds: Mapping[int, str | None],
    began: int,
    loop_lines: Mapping[str, tuple[str, int]],
) -> pl.DataFrame:
    """Returns the segments; the kind named None is what was found to be part of the setup."""
    parts = [_segment_columns(line["segments"]) for line in lines if _is_table(line)]
    if not parts:
        return RUN_SEGMENTS.empty()
    table = with_superseded_steps(pl.concat(parts), lines, kinds, loop_lines)
    table = _with_device_times(with_acting(table, lines), lines)
    table = table.with_row_index("id").with_columns(pl.col("start") - began)
    names = pl.col("kind").replace_strict(kinds, default="other steps", return_dtype=pl.String)
    table = table.with_columns(names.alias("kind"))
    return table.select([c.name for c in RUN_SEGMENTS.columns]).cast(
        dict(RUN_SEGMENTS.dtypes)  # type: ignore[arg-type]  # dtypes by name
    )


def _with_device_times(segments: pl.DataFrame, lines: list[dict[str, Any]]) -> pl.DataFrame:
    """Returns the segments with the time that the device needed for each, null where unknown."""
    tables = [line["device"] for line in lines if _is_table(line, "device", ("start", "duration"))]
    known = pl.DataFrame(
        {
            "start": [start for told in tables for start in told["start"]],
            "device": [time for told in tables for time in told["duration"]],
        },
        schema={"start": pl.Int64, "device": pl.Int64},
    ).unique("start", keep="first", maintain_order=True)
    others = segments.drop("device")
    return others.join(known, on="start", how="left", maintain_order="left")


def _is_table(
    line: Mapping[str, Any],
    key: str = "segments",
    names: tuple[str, ...] = ("start", "duration", "kind"),
) -> bool:
    told = line.get(key)
    if not isinstance(told, dict):
        return False
    columns = [told.get(name) for name in names]
    return all(_is_numbers(column) for column in columns) and len({len(c) for c in columns}) == 1  # type: ignore[arg-type]  # lists


def _is_numbers(column: object) -> bool:
    return isinstance(column, list) and all(type(n) is int and abs(n) < 1 << 62 for n in column)


def _segment_columns(told: Mapping[str, Any]) -> pl.DataFrame:
    """Returns a table from one line of the ledger; times that the line does not have are 0."""
    size = len(told["start"])
    columns = {name: told[name] for name in ("start", "duration", "kind")}
    for name in (*COUNTED, "recorded"):
        column = told.get(name)
        fits = _is_numbers(column) and len(column) == size  # type: ignore[arg-type]  # a list
        columns[name] = column if fits else [0] * size
    for name in (*PHASES, "queued", "passes"):  # where it is 0, it was not seen
        column = told.get(name)
        fits = _is_numbers(column) and len(column) == size  # type: ignore[arg-type]  # a list
        columns[name] = [ns or None for ns in column] if fits else [None] * size  # type: ignore[union-attr]  # a list
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.Int64))


def _recorded_slow_steps(
    lines: list[dict[str, Any]], segments: pl.DataFrame, began: int
) -> dict[int, str]:
    """Returns the file name of the recording of each slow step that has one, by its segment."""
    numbers = dict(zip(segments["start"].to_list(), segments["id"].to_list(), strict=True))
    told = [one for line in lines if isinstance(one := line.get("recorded_slow_step"), dict)]
    starts = [(_number(one.get("start"), began - 1) - began, one.get("file")) for one in told]
    return {
        numbers[start]: name
        for start, name in starts
        if start in numbers and isinstance(name, str) and Path(name).name == name
    }


def _readings(lines: list[dict[str, Any]], segments: pl.DataFrame, began: int) -> pl.DataFrame:
    activities = _activities(lines)
    segment_at = _segment_finder(segments)
    rows = [
        _reading(number, activities[told[0]], told)
        for line in lines
        if type(line.get("segment")) is int
        and (number := segment_at(line["segment"] - began)) is not None
        for told in line.get("readings") or ()
        if _is_numbers(told) and len(told) == 3 and told[0] in activities
    ]
    return pl.DataFrame(rows, schema=dict(RUN_READINGS.dtypes), orient="row")


def _samples(lines: list[dict[str, Any]], segments: pl.DataFrame, began: int) -> pl.DataFrame:
    activities, segment_at = _activities(lines), _segment_finder(segments)
    tables = [line["samples"] for line in lines if _is_table(line, "samples", ("at", "activity"))]
    rows = [
        (segment, part, *place)
        for told in tables
        for at, number in zip(told["at"], told["activity"], strict=True)
        if number in activities and (segment := segment_at(at - began)) is not None
        for _, part, _, *place, _, _ in [_reading(segment, activities[number], [number, 0, 0])]
    ]
    return pl.DataFrame(rows, schema=dict(RUN_SAMPLES.dtypes), orient="row")


def _activities(lines: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Returns the ledger's lines that say what an activity is, by its number."""
    return {_number(line["activity"]): line for line in lines if type(line.get("activity")) is int}


def _segment_finder(segments: pl.DataFrame) -> Callable[[int], int | None]:
    """Returns the function that finds the number of the segment that runs at an instant, if any.

    A segment that was written may be part of a longer one, which it was joined to.
    """
    starts, ids, durations = (segments[name].to_list() for name in ("start", "id", "duration"))

    def segment_at(instant: int) -> int | None:
        row = bisect_right(starts, instant) - 1
        is_within = row >= 0 and (starts[row] == instant or instant < starts[row] + durations[row])
        return int(ids[row]) if is_within else None

    return segment_at


def _reading(segment: int, activity: Mapping[str, Any], told: list[int]) -> tuple[Any, ...]:
    place = (_text(activity.get("file")), _int32(activity.get("line")))
    what = (_text(activity.get("part")) or "program", _text(activity.get("what")))
    return (segment, *what, *place, _text(activity.get("function")), told[1], told[2])


def _compilations(lines: list[dict[str, Any]], began: int) -> pl.DataFrame:
    rows = [
        (
            None if type(told.get("start")) is not int else told["start"] - began,
            told.get("duration") if type(told.get("duration")) is int else None,
            _text(told.get("function")),
            _text(told.get("file")),
            _int32(told.get("line")),
            _text(told.get("reason")),
        )
        for line in lines
        if isinstance(told := line.get("compilation"), dict)
    ]
    return pl.DataFrame(rows, schema=dict(RUN_COMPILATIONS.dtypes), orient="row")


def _iterators(lines: list[dict[str, Any]], began: int) -> pl.DataFrame:
    rows = [
        (
            told["start"] - began,
            told["duration"],
            told["workers"],
            told.get("starts_workers") is True,
            _text(told.get("file")),
            _int32(told.get("line")),
            _text(told.get("function")),
            _int32(told.get("ahead")),
            told["cpu"] if _is_numbers([told.get("cpu")]) else None,
        )
        for line in lines
        if isinstance(told := line.get("iterator"), dict)
        and _is_numbers([told.get(name) for name in ("start", "duration", "workers")])
    ]
    return pl.DataFrame(rows, schema=dict(RUN_ITERATORS.dtypes), orient="row")


def _number(value: object, otherwise: int = 0) -> int:
    return value if type(value) is int and abs(value) < 1 << 62 else otherwise


def _int32(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < 1 << 31 else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None

"""`selftime cut`: writes an excerpt of a trace, small enough to send and to open anywhere."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from selftime.cli import output_writing, trace_reading
from selftime.cli.repair import SummaryFormat
from selftime.errors import UsageError

if TYPE_CHECKING:  # polars stays out until the command runs
    from selftime.rewrite.trace_part import HostTimeSpan
    from selftime.trace import Trace

_NS_PER_TIME_UNIT: Final = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


_StepRange: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--steps", metavar="FIRST:LAST", help="These steps, inclusive; or one step's number."
    ),
]
_TimeRange: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--time", metavar="BEGIN:END", help="This time range of the host, such as 1.2s:1.9s."
    ),
]
_Categories: TypeAlias = Annotated[
    str | None,
    typer.Option("--category", metavar="NAMES", help="Only these categories, separated by commas."),
]
_ExcludedCategories: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--without", metavar="NAMES", help="All categories but these, such as python_function."
    ),
]


def add_command(app: typer.Typer) -> None:
    app.command(
        "cut",
        short_help="Write some steps or a time range of a trace as a new trace.",
        epilog="Example: selftime cut trace.json.gz --steps 3:5 -o three_steps.json.gz",
    )(cut)


def cut(  # noqa: PLR0913, PLR0917 - the command's own options, of which Typer makes keywords
    path: Annotated[str, typer.Argument(metavar="PATH", help="A trace, or a folder of them.")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="The new trace; .gz compresses it."),
    ],
    step_range: _StepRange = None,
    time_range: _TimeRange = None,
    categories: _Categories = None,
    excluded_categories: _ExcludedCategories = None,
    rank: Annotated[int | None, typer.Option(help="In a folder: the trace of this rank.")] = None,
    trace_name: Annotated[
        str | None,
        typer.Option("--trace", metavar="NAME", help="The trace with this text in its name."),
    ] = None,
    summary_format: Annotated[
        SummaryFormat, typer.Option("--format", help="Format of the summary.")
    ] = SummaryFormat.text,
) -> None:
    """Write a part of a trace: the events that begin in it, and the device work they launched.

    Frames and annotations that extend beyond it are clipped. Events that overlap others of their
    thread are moved to additional threads, so that Perfetto and chrome://tracing show all events.
    """
    if step_range is not None and time_range is not None:
        raise UsageError("`--steps` and `--time` exclude each other; give one of them")
    trace_file = trace_reading.only_trace_file(path, name_part=trace_name, rank=rank)
    selection = _CutSelectionOptions(
        step_range,
        time_range,
        _split_text_at_commas(categories),
        _split_text_at_commas(excluded_categories),
    )
    summary = _write_selected_part(trace_file, output, selection)
    if summary_format is SummaryFormat.json:
        from selftime.reports import rewrite

        answer = rewrite.as_json("cut", **summary)
    else:
        answer = "\n".join(_cut_summary_lines(summary)) + "\n"
    output_writing.write_output(answer, to_stderr=output_writing.is_stdout(output))


@dataclass(frozen=True, slots=True)
class _CutSelectionOptions:
    """Options of `selftime cut`, as texts, that choose which events to write."""

    step_range: str | None
    time_range: str | None
    categories: list[str]
    excluded_categories: list[str]


def _write_selected_part(
    trace_file: str, output: Path, selection: _CutSelectionOptions
) -> dict[str, Any]:
    """Writes the selected part of a trace to a new file; returns a summary of what was written."""
    from selftime.ingest.text.event_positions import load_trace_with_event_positions
    from selftime.ingest.text.trace_text_stream import stream_trace_text
    from selftime.reports import rewrite
    from selftime.reports.trace_file import open_trace_writer
    from selftime.rewrite.event_cutting import EventCutter
    from selftime.rewrite.trace_part import select_trace_part

    with open_trace_writer(output, trace_file) as written:
        with trace_reading.progress_bar("Reading") as progress:
            placed = load_trace_with_event_positions(trace_file, progress)
        span = _parse_host_time_span(placed.trace, selection.step_range, selection.time_range)
        part = select_trace_part(
            placed.trace,
            span,
            only_categories=selection.categories,
            without_categories=selection.excluded_categories,
        )
        cutting = EventCutter(written, placed, part)
        with trace_reading.progress_bar("Cutting") as progress:
            found = stream_trace_text(trace_file, cutting, progress)
        cutting.write_end()
    return {
        "path": trace_file,
        "output": str(output),
        "begin_ns": span.begin,
        "end_ns": span.end,
        "steps": list(span.steps),
        "events": cutting.count,
        "events_before": found.event_count,
        "moved": cutting.moved_event_count,
        "clipped": int((part.clipped & part.kept).sum()),
        "mended": rewrite.fault_rows(found.faults),
    }


def _parse_host_time_span(
    trace: "Trace", step_range: str | None, time_range: str | None
) -> "HostTimeSpan":
    from selftime.rewrite.trace_part import span_of_steps, span_of_time

    if step_range is not None:
        first, last = _split_range_at_colon(step_range, "--steps", "3:5")
        return span_of_steps(trace, _parse_step_number(first), _parse_step_number(last))
    begin, end = _split_range_at_colon(time_range or ":", "--time", "1.2s:1.9s")
    return span_of_time(trace, _parse_time_ns(begin), _parse_time_ns(end))


def _split_range_at_colon(text: str, option: str, example: str) -> tuple[str, str]:
    first, colon, last = (part.strip() for part in text.partition(":"))
    if not colon and option == "--time":
        raise UsageError(f"`{option} {text}` has no end; write for example `{option} {example}`")
    return (first, last) if colon else (first, first)


def _parse_step_number(text: str) -> int | None:
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise UsageError(
            f"`{text}` is not a step number; write for example `--steps 3:5`"
        ) from None


def _parse_time_ns(text: str) -> int | None:
    """Returns a time such as `1.2s`, `300ms` or `1.2` (seconds) in ns; None if it is invalid."""
    if not text:
        return None
    unit = next((unit for unit in _NS_PER_TIME_UNIT if text.endswith(unit)), "")
    try:
        return round(float(text.removesuffix(unit)) * _NS_PER_TIME_UNIT[unit or "s"])
    except (ValueError, OverflowError):
        raise UsageError(f"`{text}` is not a time; write for example `--time 1.2s:1.9s`") from None


def _split_text_at_commas(text: str | None) -> list[str]:
    return [name for name in (text or "").split(",") if name.strip()]


def _cut_summary_lines(summary: dict[str, Any]) -> list[str]:
    from selftime.reports import rewrite
    from selftime.reports.plain import plain
    from selftime.units import count_text, instant_text, time_text

    steps = summary["steps"]
    which = f"steps {', '.join(map(str, steps))}; " if steps else ""
    length = time_text(summary["end_ns"] - summary["begin_ns"])
    events = f"{count_text(summary['events'])} of {count_text(summary['events_before'])} events"
    begin = instant_text(summary["begin_ns"])
    lines = [f"{summary['output']}: {which}{length}, starting at {begin}; {events}"]
    if clipped := summary["clipped"]:
        which = "event that extends" if clipped == 1 else "events that extend"
        verb = "is" if clipped == 1 else "are"
        lines.append(f"  {count_text(clipped)} {which} beyond it {verb} clipped")
    if moved := summary["moved"]:
        gets = "event that overlaps others gets an added thread"
        get = "events that overlap others were moved to added threads"
        lines.append(f"  {count_text(moved)} {gets if moved == 1 else get}")
    return [plain(line) for line in [*lines, *rewrite.fault_lines(summary["mended"])]]

"""`selftime cut`: a part of a trace, small enough to send and to open everywhere."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from selftime.cli import reading, writing
from selftime.cli.repair import Format
from selftime.errors import UsageError

if TYPE_CHECKING:  # polars stays out until the command runs
    from selftime.rewrite.part import Span
    from selftime.trace import Trace

_UNITS: Final = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


def join(app: typer.Typer) -> None:
    app.command(
        "cut",
        short_help="Write some steps of a trace, or a stretch of time, as a trace.",
        epilog="Example: selftime cut trace.json.gz --steps 3:5 -o three_steps.json.gz",
    )(cut)


def cut(  # noqa: PLR0913, PLR0917 - the command's own options, of which Typer makes keywords
    path: Annotated[str, typer.Argument(metavar="PATH", help="A trace, or a folder of them.")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="The new trace; .gz packs it."),
    ],
    steps: Annotated[
        str | None,
        typer.Option(metavar="FIRST:LAST", help="These steps, both included; one by its number."),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(metavar="BEGIN:END", help="This time of the host, such as 1.2s:1.9s."),
    ] = None,
    category: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Only these categories, joined by commas.")
    ] = None,
    without: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="All but these, such as python_function."),
    ] = None,
    rank: Annotated[
        int | None, typer.Option(help="Of a folder's traces the one of this rank.")
    ] = None,
    trace: Annotated[
        str | None, typer.Option(metavar="NAME", help="The one with this in its name.")
    ] = None,
    form: Annotated[
        Format, typer.Option("--format", help="How to say what was written.")
    ] = Format.text,
) -> None:
    """Write a part of a trace: what begins within, and the device work that it launched.

    Frames and annotations that reach beyond are clipped. Events that cross others of their thread
    go to threads of their own, so that Perfetto and chrome://tracing show every one.
    """
    if steps is not None and time is not None:
        raise UsageError("`--steps` and `--time` choose differently; give one of them")
    place = reading.file_of(path, choice=trace, rank=rank)
    told = _write(place, output, _Choice(steps, time, _names(category), _names(without)))
    if form is Format.json:
        from selftime.reports import rewrite

        said = rewrite.as_json("cut", **told)
    else:
        said = "\n".join(_lines(told)) + "\n"
    writing.write(said, err=writing.is_stdout(output))


@dataclass(frozen=True, slots=True)
class _Choice:
    """What is asked for, in the command's words."""

    steps: str | None
    time: str | None
    only: list[str]
    without: list[str]


def _write(place: str, output: Path, choice: _Choice) -> dict[str, Any]:
    """Write the part, and tell what it holds."""
    from selftime.ingest.text.parts import read_parts
    from selftime.ingest.text.trace_in_file import load_trace_in_file
    from selftime.reports import rewrite
    from selftime.reports.trace_file import new_trace
    from selftime.rewrite.cutting import EventCutter
    from selftime.rewrite.part import part_of

    with new_trace(output, place) as written:
        with reading.bar("Reading") as progress:
            placed = load_trace_in_file(place, progress)
        span = _span(placed.trace, choice.steps, choice.time)
        part = part_of(placed.trace, span, only=choice.only, without=choice.without)
        cutting = EventCutter(written, placed, part)
        with reading.bar("Cutting") as progress:
            found = read_parts(place, cutting, progress)
        cutting.end()
    return {
        "path": place,
        "output": str(output),
        "begin_ns": span.begin,
        "end_ns": span.end,
        "steps": list(span.steps),
        "events": cutting.count,
        "events_before": found.events,
        "moved": cutting.moved,
        "clipped": int((part.clipped & part.kept).sum()),
        "mended": rewrite.mended(found.faults),
    }


def _span(trace: "Trace", steps: str | None, time: str | None) -> "Span":
    from selftime.rewrite.part import span_of_steps, span_of_time

    if steps is not None:
        first, last = _ends(steps, "--steps", "3:5")
        return span_of_steps(trace, _step(first), _step(last))
    begin, end = _ends(time or ":", "--time", "1.2s:1.9s")
    return span_of_time(trace, _instant(begin), _instant(end))


def _ends(text: str, option: str, example: str) -> tuple[str, str]:
    first, colon, last = (part.strip() for part in text.partition(":"))
    if not colon and option == "--time":
        raise UsageError(f"`{option} {text}` has no end; write for example `{option} {example}`")
    return (first, last) if colon else (first, first)


def _step(text: str) -> int | None:
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"`{text}` is no step's number; write for example `--steps 3:5`") from None


def _instant(text: str) -> int | None:
    """An instant in ns from `1.2s`, `300ms`, or a number of seconds."""
    if not text:
        return None
    unit = next((unit for unit in _UNITS if text.endswith(unit)), "")
    try:
        return round(float(text.removesuffix(unit)) * _UNITS[unit or "s"])
    except (ValueError, OverflowError):
        raise UsageError(f"`{text}` is no time; write for example `--time 1.2s:1.9s`") from None


def _names(text: str | None) -> list[str]:
    return [name for name in (text or "").split(",") if name.strip()]


def _lines(told: dict[str, Any]) -> list[str]:
    from selftime.reports import rewrite
    from selftime.reports.plain import plain
    from selftime.units import count_text, time_text

    steps = told["steps"]
    which = f"steps {', '.join(map(str, steps))}; " if steps else ""
    length = time_text(told["end_ns"] - told["begin_ns"])
    events = f"{count_text(told['events'])} of {count_text(told['events_before'])} events"
    lines = [f"{told['output']}: {which}{length} from {time_text(told['begin_ns'])} on; {events}"]
    if told["clipped"]:
        lines.append(f"  {count_text(told['clipped'])} that reach beyond are clipped")
    if told["moved"]:
        lines.append(f"  {count_text(told['moved'])} that cross others lie on threads of their own")
    return [plain(line) for line in [*lines, *rewrite.mended_lines(told["mended"])]]

"""What a preflight found, as a terminal shows it and as JSON."""

import json
import linecache
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from itertools import groupby
from typing import Any, Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from selftime.capture.preflight.found import Site
from selftime.capture.preflight.program import Failure, Preflight
from selftime.capture.preflight.verify import Comparison
from selftime.reports.advice.wording import file_below
from selftime.reports.plain import cut_end, cut_middle, plain
from selftime.reports.terminal import sheet

FORMAT: Final = "selftime.preflight/1"
"""The name and version of the JSON form."""

_KINDS: Final = {
    "sync": "the host waits",
    "copy_to_host": "copy to the host",
    "copy_to_device": "copy to the device",
}
_STYLES: Final = {"sync": "red", "copy_to_host": "red", "copy_to_device": "yellow"}
_WORST: Final = ("backward", "forward", "other")
"""A wait in the middle of the backward pass drains a queue that is full; after the step, less."""
_INDENT: Final = 4


def as_json(flight: Preflight, *, program: str, root: str) -> str:
    """The answer for other programs; files below `root` are named as seen from there."""
    found = flight.found
    document = {
        "format": FORMAT,
        "program": program,
        "steps": {
            "counted": found.steps,
            "source": flight.source,
            "ended_early": flight.ended_early,
            "ended_at": _ended_at(flight, root),
        },
        "sites": [_seen(asdict(site), root) for site in found.sites],
        "outside": [_seen(asdict(site), root) for site in found.outside],
        "harmless": found.harmless,
        "not_checked": [_seen(asdict(part), root) for part in found.not_checked],
        "error": None if flight.error is None else _seen(asdict(flight.error), root),
    }
    return json.dumps(document, indent=1) + "\n"


def as_text(
    flight: Preflight, *, program: str, root: str, width: int = 80, colour: bool = False
) -> str:
    """The answer for people: the lines where the host would wait, the worst first."""
    parts = _parts(flight, program, root, width)
    return sheet(*parts, width=width, colour=colour)


def _ended_at(flight: Preflight, root: str) -> str | None:
    file, line = flight.ended_at
    return None if file is None else f"{file_below(file, root)}:{line}"


def _seen(entry: dict[str, Any], root: str) -> dict[str, Any]:
    if entry["file"] is not None:
        entry["file"] = file_below(entry["file"], root)
    return entry


def _parts(flight: Preflight, program: str, root: str, width: int) -> Iterator[RenderableType]:
    found = flight.found
    yield _header(flight, program, root)
    if flight.error is not None:
        yield Text()
        yield from _failure(flight.error, root)
    yield Text()
    lines = _lines(found.sites)
    yield Text(_title(len(lines), stepped=found.steps > 0), "bold")
    for sites in lines:
        yield Text()
        yield from _block(sites, found.steps, root, width)
    yield from _rest(flight, root)


def _header(flight: Preflight, program: str, root: str) -> Table:
    found = flight.found
    if found.steps:
        counted = f"{found.steps} after the first, told by {flight.source}"
    elif flight.source is None:
        counted = "none was found: the whole run is counted as one"
    else:
        counted = "too few to tell: the whole run is counted as one"
    place = _ended_at(flight, root)
    if flight.ended_early:
        counted += "" if place is None else f"; ended at {place}"
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_row(Text("Program", "bold"), Text(plain(program), overflow="fold"))
    table.add_row(Text("Device", "bold"), Text("cuda:0, pretended; the data stayed on the CPU"))
    table.add_row(Text("Steps", "bold"), Text(plain(counted), overflow="fold"))
    if flight.ended_early:
        table.add_row("", Text("`--to-the-end` shows what the program does after them"))
    return table


def _failure(error: Failure, root: str) -> Iterator[Text]:
    where = "" if error.file is None else f" at {file_below(error.file, root)}:{error.line}"
    yield Text(plain(f"THE PROGRAM FAILED{where}"), "bold red", overflow="fold")
    yield Text(plain(error.text), overflow="fold")
    yield Text("What follows was found until then.")


def _title(lines: int, *, stepped: bool) -> str:
    where = "in every step" if stepped else "in the run"
    if not lines:
        return f"NO LINE WOULD MAKE THE HOST WAIT {where.upper()}"
    counted = "1 LINE" if lines == 1 else f"{lines} LINES"
    return f"{counted} WOULD MAKE THE HOST WAIT FOR THE GPU"


def _lines(sites: Iterable[Site]) -> list[list[Site]]:
    """The sites of each line, the worst line first."""
    ordered = sorted(sites, key=_place)
    lines = [list(group) for _, group in groupby(ordered, key=_place)]
    return sorted(lines, key=_severity)


def _place(site: Site) -> tuple[str, int]:
    return site.file or "~", site.line or 0


def _severity(sites: list[Site]) -> tuple[bool, int, tuple[str, int]]:
    copies = all(site.kind == "copy_to_device" for site in sites)
    return copies, min(_WORST.index(site.phase) for site in sites), _place(sites[0])


def _block(sites: list[Site], steps: int, root: str, width: int) -> Iterator[RenderableType]:
    first = sites[0]
    yield Text(_named(first, root), "bold cyan", overflow="fold")
    source = _source(first)
    if source:
        yield Padding(Text(cut_end(plain(source), width - _INDENT)), (0, 0, 0, _INDENT))
    table = Table.grid(padding=(0, 2, 0, 0))
    for site in _joined(sites):
        what = Text(_KINDS[site.kind], _STYLES[site.kind])
        table.add_row(what, plain(site.op), site.phase, _often(site, steps))
    yield Padding(table, (0, 0, 0, _INDENT))
    for inside in dict.fromkeys(site.inside for site in sites if site.inside):
        where = cut_middle(plain(f"in {inside}"), width - _INDENT)
        yield Padding(Text(where, "dim"), (0, 0, 0, _INDENT))
    for fix in dict.fromkeys(site.fix for site in sites):
        arrow = Table.grid(padding=(0, 1, 0, 0))
        arrow.add_row(Text("→", "green"), Text(fix, overflow="fold"))
        yield Padding(arrow, (0, 0, 0, _INDENT))


def _joined(sites: Iterable[Site]) -> list[Site]:
    """One for each line, operator, kind and phase, however it got there."""
    joined: dict[tuple[object, ...], Site] = {}
    for site in sites:
        key = (*_place(site), site.op, site.kind, site.phase)
        before = joined.get(key)
        joined[key] = site if before is None else _sum(before, site)
    return list(joined.values())


def _sum(one: Site, other: Site) -> Site:
    return replace(one, times=one.times + other.times, in_steps=max(one.in_steps, other.in_steps))


def _named(site: Site, root: str) -> str:
    if site.file is None:
        return "line unknown"
    function = "" if site.function in (None, "<module>") else f" in {site.function}"
    return plain(f"{file_below(site.file, root)}:{site.line}{function}")


def _source(site: Site) -> str:
    if site.file is None or site.line is None:
        return ""
    return linecache.getline(site.file, site.line).strip()


def _often(site: Site, steps: int) -> str:
    if not steps:
        return f"{site.times} x"
    if site.in_steps == steps:
        return f"{site.times} x a step"
    return f"{site.times} x in {site.in_steps} of {steps} steps"


def _rest(flight: Preflight, root: str) -> Iterator[RenderableType]:
    found = flight.found
    if found.outside:
        yield Text()
        yield Text("ONLY BEFORE THE STEPS, IN THE FIRST, OR AFTER THE LAST", "bold")
        table = Table.grid(padding=(0, 2, 0, 0))
        for site in _joined(found.outside):
            table.add_row(
                Text(_named(site, root), overflow="fold"), plain(site.op), f"{site.times} x"
            )
        yield Padding(table, (0, 0, 0, 2))
    if found.harmless:
        when = " a step" if found.steps else ""
        copies = "1 copy" if found.harmless == 1 else f"{found.harmless} copies"
        yield Text()
        yield Text(f"Harmless: {copies}{when} of pinned memory that the host does not wait for.")
    if found.not_checked:
        yield Text()
        yield Text("NOT CHECKED", "bold")
        for part in found.not_checked:
            place = "" if part.file is None else f"{file_below(part.file, root)}:{part.line}: "
            yield Padding(Text(plain(f"{place}{part.why}"), overflow="fold"), (0, 0, 0, 2))


def compared(found: Comparison, *, root: str, width: int = 80) -> str:
    """Which lines wait on the pretended device, on the real one, and on both."""
    parts: list[RenderableType] = []
    groups = (
        ("BOTH SAY THAT THE HOST WAITS", found.both),
        ("ONLY THE PRETENDED DEVICE SAYS SO", found.pretended_only),
        ("ONLY THE REAL DEVICE SAYS SO", found.device_only),
    )
    for title, lines in groups:
        parts.append(Text(title, "bold"))
        rows = [plain(f"  {file_below(file, root)}:{line}") for file, line in lines]
        parts += [Text(row, overflow="fold") for row in rows or ["  no line"]]
    return sheet(*parts, width=width)

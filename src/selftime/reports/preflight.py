"""Writes the result of a preflight: the source lines at which the host would wait for a GPU."""

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

from selftime.capture.preflight.program import PreflightResult, ProgramError
from selftime.capture.preflight.real_device import GpuWaitComparison
from selftime.capture.preflight.results import PreflightWaitSite
from selftime.reports.advice.wording import file_and_line_text, relative_file
from selftime.reports.plain import cut_text_end, cut_text_middle, plain
from selftime.reports.terminal import render_as_text

FORMAT: Final = "selftime.preflight/1"
"""Name and version of the JSON form of a preflight's result."""

_WAIT_SITE_KIND_TEXT: Final = {
    "sync": "the host waits",
    "copy_to_host": "copy to the host",
    "copy_to_device": "copy to the device",
}
"""Text for each kind of operation that makes the host wait for the device, or copies data."""
_WAIT_SITE_KIND_STYLES: Final = {"sync": "red", "copy_to_host": "red", "copy_to_device": "yellow"}
"""Colour of each kind of operation in a terminal."""
_PHASES_OF_STEP_WORST_FIRST: Final = ("backward", "forward", "other")
"""Phases of a step; a wait costs most in the first one, where the device's queue is fullest."""
_INDENT_OF_CODE_IN_SPACES: Final = 4
"""Number of spaces before the text that follows below a source line's heading."""


def as_json(preflight: PreflightResult, *, program: str, root: str) -> str:
    """Returns a preflight's result as JSON; paths of files below `root` are relative to `root`."""
    results = preflight.found
    document = {
        "format": FORMAT,
        "program": program,
        "steps": {
            "counted": results.steps,
            "source": preflight.source,
            "ended_early": preflight.ended_early,
            "ended_at": _stopped_at_line_text(preflight, root),
        },
        "sites": [_with_relative_file(asdict(site), root) for site in results.sites],
        "outside": [
            _with_relative_file(asdict(site), root) for site in results.sites_outside_steps
        ],
        "harmless": results.harmless_copies,
        "not_checked": [_with_relative_file(asdict(part), root) for part in results.not_checked],
        "error": None
        if preflight.error is None
        else _with_relative_file(asdict(preflight.error), root),
    }
    return json.dumps(document, indent=1) + "\n"


def as_text(
    preflight: PreflightResult, *, program: str, root: str, width: int = 80, colour: bool = False
) -> str:
    """Returns a preflight's result as text: the lines where the host would wait, worst first."""
    parts = _preflight_text_blocks(preflight, program, root, width)
    return render_as_text(*parts, width=width, colour=colour)


def _stopped_at_line_text(preflight: PreflightResult, root: str) -> str | None:
    """Returns `file:line` at which the preflight stopped the program; None if the program ended."""
    file, line = preflight.ended_at
    return None if file is None else file_and_line_text(file, line, root)


def _with_relative_file(entry: dict[str, Any], root: str) -> dict[str, Any]:
    if entry["file"] is not None:
        entry["file"] = relative_file(entry["file"], root)
    return entry


def _preflight_text_blocks(
    preflight: PreflightResult, program: str, root: str, width: int
) -> Iterator[RenderableType]:
    """Yields the blocks of the text: program, failure, waiting source lines, and closing notes."""
    results = preflight.found
    yield _program_and_device_table(preflight, program, root)
    if preflight.error is not None:
        yield Text()
        yield from _failure_lines(preflight.error, root)
    yield Text()
    lines = _sites_by_line(results.sites)
    yield Text(_waiting_lines_title(len(lines), has_steps=results.steps > 0), "bold")
    for sites in lines:
        yield Text()
        yield from _text_blocks_of_source_line(sites, results.steps, root, width)
    yield from _text_blocks_below_lines(preflight, root)


def _program_and_device_table(preflight: PreflightResult, program: str, root: str) -> Table:
    """Returns a table with the program, the simulated device, and the number of steps found."""
    results = preflight.found
    if results.steps:
        steps_text = f"{results.steps} after the first, found by {preflight.source}"
    elif preflight.source is None:
        steps_text = "none found: the whole run counts as one step"
    else:
        steps_text = "too few: the whole run counts as one step"
    end_location = _stopped_at_line_text(preflight, root)
    if preflight.ended_early:
        steps_text += "" if end_location is None else f"; ended at {end_location}"
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_row(Text("Program", "bold"), Text(plain(program), overflow="fold"))
    table.add_row(Text("Device", "bold"), Text("cuda:0, simulated; the data stayed on the CPU"))
    table.add_row(Text("Steps", "bold"), Text(plain(steps_text), overflow="fold"))
    if preflight.ended_early:
        table.add_row("", Text("`--to-the-end` shows what the program does after them"))
    return table


def _failure_lines(error: ProgramError, root: str) -> Iterator[Text]:
    """Yields lines that say where and why the program failed."""
    location = (
        "" if error.file is None else f" at {file_and_line_text(error.file, error.line, root)}"
    )
    yield Text(f"THE PROGRAM FAILED{location}", "bold red", overflow="fold")
    yield Text(plain(error.text), overflow="fold")
    yield Text("The results below are from before the failure.")


def _waiting_lines_title(waiting_line_count: int, *, has_steps: bool) -> str:
    """Returns a title with the number of source lines that would make the host wait."""
    scope = "in every step" if has_steps else "in the run"
    if not waiting_line_count:
        return f"NO LINE WOULD MAKE THE HOST WAIT {scope.upper()}"
    count_text = "1 LINE" if waiting_line_count == 1 else f"{waiting_line_count} LINES"
    return f"{count_text} WOULD MAKE THE HOST WAIT FOR THE GPU"


def _sites_by_line(sites: Iterable[PreflightWaitSite]) -> list[list[PreflightWaitSite]]:
    """Groups waits by source line; returns the lines with the costliest waits first."""
    ordered_sites = sorted(sites, key=_file_and_line_of_site)
    lines = [list(group) for _, group in groupby(ordered_sites, key=_file_and_line_of_site)]
    return sorted(lines, key=_severity_sort_key_of_line)


def _file_and_line_of_site(site: PreflightWaitSite) -> tuple[str, int]:
    """Returns the (file, line) at which the host waits, as a sort key; unknown files come last."""
    return site.file or "~", site.line or 0


def _severity_sort_key_of_line(sites: list[PreflightWaitSite]) -> tuple[bool, int, tuple[str, int]]:
    """Returns a sort key for source lines; lines that only copy to the device come last."""
    only_copies_to_device = all(site.kind == "copy_to_device" for site in sites)
    return (
        only_copies_to_device,
        min(_PHASES_OF_STEP_WORST_FIRST.index(site.phase) for site in sites),
        _file_and_line_of_site(sites[0]),
    )


def _text_blocks_of_source_line(
    sites: list[PreflightWaitSite], steps: int, root: str, width: int
) -> Iterator[RenderableType]:
    """Yields the text about one source line: its code, the operators that wait, and fixes."""
    first = sites[0]
    yield Text(_site_location_text(first, root), "bold cyan", overflow="fold")
    source = _source_code_of_site(first)
    if source:
        yield Padding(
            Text(cut_text_end(plain(source), width - _INDENT_OF_CODE_IN_SPACES)),
            (0, 0, 0, _INDENT_OF_CODE_IN_SPACES),
        )
    table = Table.grid(padding=(0, 2, 0, 0))
    for site in _merge_sites_of_equal_line_and_operator(sites):
        operation = Text(_WAIT_SITE_KIND_TEXT[site.kind], _WAIT_SITE_KIND_STYLES[site.kind])
        table.add_row(operation, plain(site.op), site.phase, _waits_per_step_text(site, steps))
    yield Padding(table, (0, 0, 0, _INDENT_OF_CODE_IN_SPACES))
    for inside in dict.fromkeys(site.inside for site in sites if site.inside):
        context = cut_text_middle(plain(f"in {inside}"), width - _INDENT_OF_CODE_IN_SPACES)
        yield Padding(Text(context, "dim"), (0, 0, 0, _INDENT_OF_CODE_IN_SPACES))
    for fix in dict.fromkeys(site.fix for site in sites):
        arrow = Table.grid(padding=(0, 1, 0, 0))
        arrow.add_row(Text("→", "green"), Text(fix, overflow="fold"))
        yield Padding(arrow, (0, 0, 0, _INDENT_OF_CODE_IN_SPACES))


def _merge_sites_of_equal_line_and_operator(
    sites: Iterable[PreflightWaitSite],
) -> list[PreflightWaitSite]:
    """Merges waits of equal source line, operator, kind and phase of the step; adds up counts."""
    merged: dict[tuple[object, ...], PreflightWaitSite] = {}
    for site in sites:
        key = (*_file_and_line_of_site(site), site.op, site.kind, site.phase)
        earlier = merged.get(key)
        merged[key] = site if earlier is None else _add_site_counts(earlier, site)
    return list(merged.values())


def _add_site_counts(first: PreflightWaitSite, second: PreflightWaitSite) -> PreflightWaitSite:
    """Merges two records of the same wait: adds up the waits, keeps the larger number of steps."""
    return replace(
        first, times=first.times + second.times, in_steps=max(first.in_steps, second.in_steps)
    )


def _site_location_text(site: PreflightWaitSite, root: str) -> str:
    """Returns where the host waits, as text `file:line in function`."""
    if site.file is None:
        return "line unknown"
    function = "" if site.function in (None, "<module>") else f" in {site.function}"
    return f"{file_and_line_text(site.file, site.line, root)}{plain(function)}"


def _source_code_of_site(site: PreflightWaitSite) -> str:
    """Returns the code of the source line at which the host waits; empty if it is unknown."""
    if site.file is None or site.line is None:
        return ""
    return linecache.getline(site.file, site.line).strip()


def _waits_per_step_text(site: PreflightWaitSite, steps: int) -> str:
    """Returns as text how often an operator made the host wait, and in how many of the steps."""
    if not steps:
        return f"{site.times} x"
    if site.in_steps == steps:
        return f"{site.times} x a step"
    return f"{site.times} x in {site.in_steps} of {steps} steps"


def _text_blocks_below_lines(preflight: PreflightResult, root: str) -> Iterator[RenderableType]:
    """Yields closing notes: waits outside of steps, harmless copies, and what was not checked."""
    results = preflight.found
    if results.sites_outside_steps:
        yield Text()
        yield Text("ONLY BEFORE THE STEPS, IN THE FIRST, OR AFTER THE LAST", "bold")
        table = Table.grid(padding=(0, 2, 0, 0))
        for site in _merge_sites_of_equal_line_and_operator(results.sites_outside_steps):
            table.add_row(
                Text(_site_location_text(site, root), overflow="fold"),
                plain(site.op),
                f"{site.times} x",
            )
        yield Padding(table, (0, 0, 0, 2))
    if results.harmless_copies:
        when = " a step" if results.steps else ""
        copies = "1 copy" if results.harmless_copies == 1 else f"{results.harmless_copies} copies"
        yield Text()
        yield Text(f"Harmless: {copies}{when} of pinned memory that the host does not wait for.")
    if results.not_checked:
        yield Text()
        yield Text("NOT CHECKED", "bold")
        for part in results.not_checked:
            place = (
                "" if part.file is None else f"{file_and_line_text(part.file, part.line, root)}: "
            )
            yield Padding(Text(plain(f"{place}{part.why}"), overflow="fold"), (0, 0, 0, 2))


def comparison_text(comparison: GpuWaitComparison, *, root: str, width: int = 80) -> str:
    """Returns as text which lines wait on the simulated GPU only, the real GPU only, or both."""
    parts: list[RenderableType] = []
    sections = (
        ("THE HOST WAITS ON BOTH DEVICES", comparison.both),
        ("THE HOST WAITS ONLY ON THE SIMULATED DEVICE", comparison.simulated_only),
        ("THE HOST WAITS ONLY ON THE REAL DEVICE", comparison.device_only),
    )
    for title, lines in sections:
        parts.append(Text(title, "bold"))
        rows = [f"  {file_and_line_text(file, line, root)}" for file, line in lines]
        parts += [Text(row, overflow="fold") for row in rows or ["  no line"]]
    return render_as_text(*parts, width=width)

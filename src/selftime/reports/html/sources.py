"""The lines of the program that a report carries: those with a finding or a cost, and around them.

Whoever gets a report sees them, so that they can be left out.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from selftime.advice import Advice
from selftime.reports.html.packing import packed
from selftime.reports.page_data.snippets import snippet
from selftime.trace import Trace
from selftime.views.lines import lines

_AROUND: Final = 30
"""Lines before and after one that costs."""
_MOST_FILES: Final = 30
_MOST_PLACES: Final = 300
"""Lines of the view `lines` that are looked at, those that cost most."""
_WHOLE: Final = 20_000
"""Lines of a file that is carried whole."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of the program, in two versions: what is around the lines that cost, and all of it."""

    rank: int
    name: str
    versions: tuple[str, ...] = field(repr=False)


def sources(trace: Trace, advice: Advice) -> Iterator[SourceFile]:
    """The files at hand that a finding or a cost is in, the costliest first."""
    found = {f.where.file for f in advice.findings}
    for name, places in list(_places(trace, advice).items())[:_MOST_FILES]:
        file = snippet(trace, name, 1, _WHOLE)
        if file is None:
            continue
        around = _around(file, places)
        whole = {"count": file["count"], "parts": [{"from": 1, "lines": file["lines"]}]}
        versions = dict.fromkeys((packed(around), packed(whole)))
        yield SourceFile(1 if name in found else 3, name, tuple(versions))


def _places(trace: Trace, advice: Advice) -> dict[str, set[int]]:
    """The lines of interest by file: those of findings first, then those that cost most."""
    places: dict[str, set[int]] = {}
    named = [(f.where.file, f.where.line) for f in advice.findings]
    costly = lines(trace).head(_MOST_PLACES).select("file", "line").rows()
    for file, line in [*named, *costly]:
        if file is not None:
            places.setdefault(file, set()).add(line or 1)
    return places


def _around(file: Mapping[str, Any], places: set[int]) -> dict[str, Any]:
    """The file's lines around those places, in parts that do not touch."""
    last = len(file["lines"])
    parts: list[dict[str, Any]] = []
    end = 0
    for line in sorted(place for place in places if place <= last):
        first, end_of_line = max(1, line - _AROUND), min(last, line + _AROUND)
        if not parts or first > end + 1:
            parts.append({"from": first, "lines": []})
            end = first - 1
        parts[-1]["lines"].extend(file["lines"][end:end_of_line])
        end = max(end, end_of_line)
    return {"count": file["count"], "parts": parts}

"""What a report carries, chosen to fit: the most telling first, of all its traces."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePath
from typing import Any, Final, TypeAlias

from selftime.advice import Advice, advise, find
from selftime.errors import UsageError
from selftime.reports.advised import advised
from selftime.reports.described import described
from selftime.reports.html.budget import Offer, chosen
from selftime.reports.html.document import document
from selftime.reports.html.packing import inert, packed
from selftime.reports.html.sources import SourceFile, sources
from selftime.reports.html.tables import Table, table, wishes
from selftime.reports.html.tiles import tiles
from selftime.reports.listed import Listed, identified
from selftime.trace import Trace
from selftime.views import VIEWS

__all__ = ["FORMAT", "LIMIT", "as_html"]

FORMAT: Final = "selftime.report/1"
LIMIT: Final = 5_000_000
"""Bytes that a report stays below, whatever the traces."""

Progress: TypeAlias = Callable[[int, int], None]

_Packed: TypeAlias = Table | SourceFile


@dataclass(frozen=True, slots=True)
class _Held:
    """What is carried of one trace whatever the room, and what may be."""

    listed: Listed
    advice: Advice
    offered: list[_Packed]


def as_html(
    traces: Mapping[str, Trace],
    *,
    limit: int = LIMIT,
    shows_source: bool = True,
    start: str = "",
    framed: bool = False,
    progress: Progress | None = None,
) -> str:
    """The report on some traces, in fewer bytes than `limit`.

    Args:
        traces: The traces, by the names that readers choose them by.
        limit: Bytes.
        shows_source: Whether lines of the program go with it, where its files are at hand.
        start: The panel that is shown first, as its address in the page, such as `#/timeline`.
        framed: Whether it is for the `srcdoc` of a frame instead of a file.
        progress: Called with the tables that were made and those to make.

    Raises:
        UsageError: There are more traces than fit.
    """
    step = _counting(len(traces), progress)
    held = [_held(name, trace, step, shows_source) for name, trace in traces.items()]
    frame = _frame(held, start)
    title = next(iter(traces)) if len(traces) == 1 else f"{len(traces)} traces"
    made = partial(document, title=f"{title} · selftime", framed=framed)
    room = limit - len(made(frame).encode()) - 1
    if room < 0:
        raise UsageError(
            f"{len(traces)} traces are too many for a report of less than {limit:,} bytes; "
            "choose some with `--trace NAME`, or open all with `selftime serve`"
        )
    for one, item, version in _carried(held, room):
        _put(frame["held"][one.listed.id], item, version)
    return made(frame)


def _counting(count: int, progress: Progress | None) -> Callable[[], None]:
    """What is called after each part of each trace."""
    done, total = itertools.count(1), count * (len(wishes()) + 3)
    return lambda: None if progress is None else progress(next(done), total)


def _held(name: str, trace: Trace, step: Callable[[], None], shows_source: bool) -> _Held:
    found = advise(trace)
    step()
    offered: list[_Packed] = []
    for wish in wishes():
        offered.append(table(trace, wish))
        step()
    offered.extend(tiles(trace))
    step()
    offered.extend(sources(trace, found) if shows_source else ())
    step()
    run = PurePath(name).parent.name
    return _Held(replace(identified(trace.source or name, run=run), id=name), found, offered)


def _frame(held: list[_Held], start: str) -> dict[str, Any]:
    """The data without any table."""
    spoken = {rule for one in held for rule in _rules(one.advice)}
    pages = {name: f"# {name}\n\n{find(name).doc}" for name in sorted(spoken)}
    return {
        "format": FORMAT,
        "start": start,
        "traces": [one.listed.to_dict() for one in held],
        "views": packed([described(view) for view in VIEWS.values()]),
        "rules": packed(pages),
        "held": {
            one.listed.id: {"advice": packed(advised(one.advice)), "tables": [], "sources": {}}
            for one in held
        },
    }


def _rules(advice: Advice) -> set[str]:
    """The rules that have something to say, whose pages a reader may open."""
    weighed = {checked.rule for checked in advice.checked if not checked.is_absent}
    return {finding.rule for finding in advice.findings} | weighed


def _carried(held: list[_Held], room: int) -> Iterator[tuple[_Held, _Packed, int]]:
    """What there is room for, and in which version."""
    items = [(one, item) for one in held for item in one.offered]
    offers = [Offer(item.rank, tuple(map(_size, _versions(item)))) for _, item in items]
    for (one, item), version in zip(items, chosen(offers, room), strict=True):
        if version is not None:
            yield one, item, version


def _versions(item: _Packed) -> list[Any]:
    """What is added to the data for each version, with the comma after it."""
    if isinstance(item, Table):
        return [item.told(version) for version in range(len(item.versions))]
    return [{item.name: version} for version in item.versions]


def _size(told: Any) -> int:
    return len(inert(told)) + 1


def _put(place: dict[str, Any], item: _Packed, version: int) -> None:
    if isinstance(item, Table):
        place["tables"].append(item.told(version))
    else:
        place["sources"][item.name] = item.versions[version]

"""What a report carries, chosen to fit: the most telling first, of all its traces."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePath
from typing import Any, Final, TypeAlias
from urllib.parse import urlencode

from selftime.advice import Advice, advise, find
from selftime.errors import UsageError
from selftime.reports.html.document import document
from selftime.reports.html.packing import Offer, chosen, inert, packed
from selftime.reports.html.pair import Pair, comparisons
from selftime.reports.html.sources import SourceFile, sources
from selftime.reports.html.tables import Table, Wish, behind, table, wishes
from selftime.reports.html.tiles import tiles
from selftime.reports.page_data.advice import advised
from selftime.reports.page_data.jobs import Job, jobs_of, told
from selftime.reports.page_data.listing import Listed, identified
from selftime.reports.page_data.view_description import described
from selftime.trace import Trace
from selftime.views import VIEWS
from selftime.views.base import Subject
from selftime.views.timeline import timeline

FORMAT: Final = "selftime.report/1"
LIMIT: Final = 5_000_000
"""Bytes that a report stays below, whatever the traces."""

_OTHER_PARTS: Final = 4
"""Advice, timeline, slices and source, besides the tables."""

Progress: TypeAlias = Callable[[int, int], None]

_Packed: TypeAlias = Table | SourceFile


@dataclass(frozen=True, slots=True)
class _Held:
    """What is carried of one trace whatever the room, and what may be."""

    listed: Listed
    advice: Advice
    offered: list[_Packed]

    def place(self, data: dict[str, Any]) -> dict[str, Any]:
        """Where it stands in the data."""
        found: dict[str, Any] = data["held"][self.listed.id]
        return found


@dataclass(frozen=True, slots=True)
class _Shared:
    """What is carried of a job once for all of its traces."""

    number: int
    job: Job
    offered: list[_Packed]

    def place(self, data: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = data["jobs"][self.number]
        return found


@dataclass(frozen=True, slots=True)
class _Paired:
    """What is carried of two traces held against each other."""

    offered: list[_Packed]

    def place(self, data: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = data["compared"]
        return found


_Carrier: TypeAlias = _Held | _Shared | _Paired


@dataclass(frozen=True, slots=True)
class Frame:
    """The frame of a notebook that a report is drawn in, and the panel that it shows first."""

    panel: str
    params: Mapping[str, Any]

    @property
    def address(self) -> str:
        """The panel's address in the page."""
        words = urlencode({name: _word(value) for name, value in self.params.items()})
        return f"#/{self.panel}?{words}" if words else f"#/{self.panel}"

    def wishes(self) -> list[Wish]:
        """The table that is shown first, which is there whatever else is."""
        view = VIEWS.get(self.params.get("name", "") if self.panel == "view" else self.panel)
        if view is None or view is timeline:
            return []
        options = {name: value for name, value in self.params.items() if name in view.options}
        return [Wish(0, view, options)]


def as_html(  # noqa: PLR0913 - what is asked for by name
    traces: Mapping[str, Trace],
    *,
    limit: int = LIMIT,
    shows_source: bool = True,
    advice: Mapping[str, Advice] | None = None,
    frame: Frame | None = None,
    pair: Pair | None = None,
    progress: Progress | None = None,
) -> str:
    """The report on some traces, in fewer bytes than `limit`.

    Args:
        traces: The traces, by the names that readers choose them by.
        limit: Bytes.
        shows_source: Whether lines of the program go with it, where its files are at hand.
        advice: The advice on traces by name, where it is known already.
        frame: What it is drawn in; a file if not told.
        pair: Two of the traces that are held against each other, which is shown first.
        progress: Called with the parts that were made and those to make.

    Raises:
        UsageError: There are more traces than fit.
    """
    held = _all_held(traces, advice or {}, frame, pair, shows_source, progress)
    data = _told(held, frame.address if frame else "", pair)
    title = next(iter(traces)) if len(traces) == 1 else f"{len(traces)} traces"
    made = partial(document, title=f"{title} · selftime", framed=frame is not None)
    room = limit - len(made(data).encode()) - 1
    if room < 0:
        raise UsageError(
            f"a report of less than {limit:,} bytes has no room for {len(traces)} traces; "
            "choose some with `--trace NAME`, or open all with `selftime serve`"
        )
    for one, item, version in _carried(held, room):
        _put(one.place(data), item, version)
    return made(data)


def _all_held(
    traces: Mapping[str, Trace],
    advice: Mapping[str, Advice],
    frame: Frame | None,
    pair: Pair | None,
    shows_source: bool,
    progress: Progress | None,
) -> list[_Carrier]:
    """What may be carried of each trace, of their jobs, and of two that are compared."""
    wanted = [*(frame.wishes() if frame else ()), *wishes()]
    across = [wish for wish in wanted if wish.view.across]
    own = [wish for wish in wanted if not wish.view.across]
    named = {name: (_listed(name, trace), trace) for name, trace in traces.items()}
    jobs = jobs_of(named)
    parts = len(named) * (len(own) + _OTHER_PARTS) + len(jobs) * len(across)
    step = _counting(parts + (pair is not None), progress)
    held: list[_Carrier] = []
    for name, (listed, trace) in named.items():
        answer = advice.get(name) or advise(trace)
        step()
        offered = list(_offered(trace, own, step))
        offered.extend(sources(trace, answer) if shows_source else ())
        step()
        held.append(_Held(listed, answer, offered))
    shared = (list(_tables(job.ranks, across, step)) for job in jobs)
    held += map(_Shared, itertools.count(), jobs, shared)
    if pair is not None:
        sides = traces[pair.before], traces[pair.after]
        held.append(_Paired(list(comparisons(*sides, pair.metric))))
        step()
    return held


def _counting(total: int, progress: Progress | None) -> Callable[[], None]:
    """What is called after each part."""
    done = itertools.count(1)
    return lambda: None if progress is None else progress(next(done), total)


def _listed(name: str, trace: Trace) -> Listed:
    return replace(identified(trace.source or name, run=PurePath(name).parent.name), id=name)


def _offered(trace: Trace, wanted: list[Wish], step: Callable[[], None]) -> Iterator[_Packed]:
    yield from _tables(trace, wanted, step)
    yield from tiles(trace)
    step()
    yield from (table(trace, wish) for wish in behind(trace))
    step()


def _tables(subject: Subject, wanted: list[Wish], step: Callable[[], None]) -> Iterator[_Packed]:
    for wish in wanted:
        yield table(subject, wish)
        step()


def _told(held: list[_Carrier], start: str, pair: Pair | None) -> dict[str, Any]:
    """The data without any table."""
    traces = [one for one in held if isinstance(one, _Held)]
    jobs = [one.job for one in held if isinstance(one, _Shared)]
    spoken = {rule for one in traces for rule in _rules(one.advice)}
    pages = {name: f"# {name}\n\n{find(name).doc}" for name in sorted(spoken)}
    sides = pair and {"before": pair.before, "after": pair.after, "tables": []}
    return {
        "format": FORMAT,
        "start": start or ("#/compare" if pair else ""),
        "compared": sides,
        "traces": [one.listed.to_dict() for one in traces],
        "views": packed([described(view) for view in VIEWS.values()]),
        "rules": packed(pages),
        "held": {
            one.listed.id: {"advice": packed(advised(one.advice)), "tables": [], "sources": {}}
            for one in traces
        },
        "jobs": [
            {"traces": sorted(job.ids.values()), "job": packed(told(job)), "tables": []}
            for job in jobs
        ],
    }


def _rules(advice: Advice) -> set[str]:
    """The rules that have something to say, whose pages a reader may open."""
    weighed = {checked.rule for checked in advice.checked if not checked.is_absent}
    return {finding.rule for finding in advice.findings} | weighed


def _carried(held: list[_Carrier], room: int) -> Iterator[tuple[_Carrier, _Packed, int]]:
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


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

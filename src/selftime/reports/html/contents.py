"""Collects the data of an HTML report, and leaves out the least important to fit a size limit."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePath
from typing import Any, Final, TypeAlias
from urllib.parse import urlencode

from selftime.advice import Advice, advise, find
from selftime.analysis.concurrent_calls import BeginsCall, concurrent_calls
from selftime.errors import UsageError
from selftime.ingest.job_grouping import separate_jobs
from selftime.ingest.text.trace_start import trace_start_of_header
from selftime.ingest.trace_listing import ListedTrace, listed_trace
from selftime.progress import ProgressCallback
from selftime.reports.html.document import html_document
from selftime.reports.html.packing import (
    ReportItemSizes,
    choose_fitting_versions,
    compress_json,
    html_safe_json,
)
from selftime.reports.html.pair import Pair, packed_comparison_tables
from selftime.reports.html.sources import SourceFile, report_source_files
from selftime.reports.html.tables import (
    PackedTable,
    TableRequest,
    pack_table,
    packed_timeline_tables,
    sandwich_table_requests,
    slice_table_requests,
    view_table_requests,
)
from selftime.reports.page_data.advice import advice_data
from selftime.reports.page_data.jobs import PageJob, group_into_jobs, page_data_of_job
from selftime.reports.page_data.trace_contents import contents_data, contents_of_trace
from selftime.reports.page_data.views import view_description_data
from selftime.trace import Trace
from selftime.views import VIEWS
from selftime.views.timeline import timeline
from selftime.views.view_declaration import TraceJobOrRanks

FORMAT: Final = "selftime.report/1"
"""Name and version of the format of the JSON data in an HTML report."""
LIMIT: Final = 5_000_000
"""Default size limit of an HTML report in bytes, for all traces together."""

_PROGRESS_STEPS_PER_TRACE_BESIDES_TABLES: Final = 4
"""Number of progress steps per trace, in addition to one per table; advice, for example, is one."""


_ReportItem: TypeAlias = PackedTable | SourceFile


@dataclass(frozen=True, slots=True)
class _TraceReportParts:
    """What a report contains about one trace: list entry, advice, tables and source files."""

    listed: ListedTrace
    contents: dict[str, Any]
    advice: Advice
    candidates: list[_ReportItem]

    def data_of_items(self, data: dict[str, Any]) -> dict[str, Any]:
        """Returns the object, inside the report's data, that receives this trace's tables."""
        owner: dict[str, Any] = data["held"][self.listed.id]
        return owner


@dataclass(frozen=True, slots=True)
class _JobReportParts:
    """What a report contains about one job: its description, and tables if they fit the limit."""

    number: int
    job: PageJob
    candidates: list[_ReportItem]

    def data_of_items(self, data: dict[str, Any]) -> dict[str, Any]:
        """Returns the object, inside the report's data, that receives this job's tables."""
        owner: dict[str, Any] = data["jobs"][self.number]
        return owner


@dataclass(frozen=True, slots=True)
class _ComparisonReportParts:
    """Tables of a comparison of two traces, to be included if they fit the size limit."""

    candidates: list[_ReportItem]

    def data_of_items(self, data: dict[str, Any]) -> dict[str, Any]:
        """Returns the object, inside the report's data, that receives the comparison's tables."""
        owner: dict[str, Any] = data["compared"]
        return owner


_ReportParts: TypeAlias = _TraceReportParts | _JobReportParts | _ComparisonReportParts


@dataclass(frozen=True, slots=True)
class Frame:
    """What a report in a notebook cell opens with: a panel of the page, and its parameters."""

    panel: str
    params: Mapping[str, Any]

    @property
    def address(self) -> str:
        """URL fragment that opens the panel, such as `#/operators?top=10`."""
        query = urlencode(
            {name: _as_url_parameter_text(value) for name, value in self.params.items()}
        )
        return f"#/{self.panel}?{query}" if query else f"#/{self.panel}"

    def first_table_requests(self) -> list[TableRequest]:
        """Returns a request for the table that the panel shows; an empty list for no table."""
        view = VIEWS.get(self.params.get("name", "") if self.panel == "view" else self.panel)
        if view is None or view is timeline:
            return []
        options = {name: value for name, value in self.params.items() if name in view.options}
        return [TableRequest(0, view, options)]


def as_html(  # noqa: PLR0913 - keyword arguments
    traces: Mapping[str, Trace],
    *,
    limit: int = LIMIT,
    shows_source: bool = True,
    advice: Mapping[str, Advice] | None = None,
    frame: Frame | None = None,
    pair: Pair | None = None,
    progress: ProgressCallback | None = None,
) -> str:
    """Returns a report about the traces as one HTML document, in fewer bytes than `limit`.

    Args:
        traces: The traces by name, as the page lists them.
        limit: The size limit in bytes.
        shows_source: Whether to include source lines of files that exist here.
        advice: The advice by the trace's name, if already computed.
        frame: The notebook frame; None for a file.
        pair: Two of the traces to compare; the comparison is shown first.
        progress: Called with the number of finished parts and the total.

    Raises:
        UsageError: Too many traces for the limit.
    """
    parts = _collect_report_parts(traces, advice or {}, frame, pair, shows_source, progress)
    data = _report_data_without_tables(parts, frame.address if frame else "", pair)
    title = next(iter(traces)) if len(traces) == 1 else f"{len(traces)} traces"
    make_html = partial(html_document, title=f"{title} · selftime", is_framed=frame is not None)
    remaining_bytes = limit - len(make_html(data).encode()) - 1
    if remaining_bytes < 0:
        raise UsageError(
            f"a report of less than {limit:,} bytes has no room for {len(traces)} traces; "
            "choose some with `--trace NAME`, or open all with `selftime serve`"
        )
    for part, item, version in _items_and_versions_that_fit(parts, remaining_bytes):
        _add_item_version_to_report_data(part.data_of_items(data), item, version)
    return make_html(data)


def _collect_report_parts(
    traces: Mapping[str, Trace],
    advice: Mapping[str, Advice],
    frame: Frame | None,
    pair: Pair | None,
    shows_source: bool,
    progress: ProgressCallback | None,
) -> list[_ReportParts]:
    """Returns what the report contains about each trace, each job, and the compared traces."""
    requests = [*(frame.first_table_requests() if frame else ()), *view_table_requests()]
    job_requests = [request for request in requests if request.view.compares_ranks]
    trace_requests = [request for request in requests if not request.view.compares_ranks]
    entries = separate_jobs(
        [_list_entry_of_trace(name, trace) for name, trace in traces.items()],
        {name: trace_start_of_header(trace.metadata) for name, trace in traces.items()},
    )
    listed_traces = {listed.id: (listed, traces[listed.id]) for listed in entries}
    with concurrent_calls(*traces.values()) as begin:
        packed = {
            name: _begin_packing_tables_of_trace(trace, trace_requests, begin)
            for name, (_, trace) in listed_traces.items()
        }
        jobs = group_into_jobs(listed_traces)
        part_count = len(listed_traces) * (
            len(trace_requests) + _PROGRESS_STEPS_PER_TRACE_BESIDES_TABLES
        ) + len(jobs) * len(job_requests)
        count_part = _progress_counting_function(part_count + (pair is not None), progress)
        collected: list[_ReportParts] = [
            _collect_parts_of_trace(
                *listed_traces[name],
                jobs,
                known_advice=advice.get(name),
                packed=packed[name],
                shows_source=shows_source,
                count_part=count_part,
            )
            for name in listed_traces
        ]
    job_tables = (list(_pack_requested_tables(job.ranks, job_requests, count_part)) for job in jobs)
    collected += map(_JobReportParts, itertools.count(), jobs, job_tables)
    if pair is not None:
        pair_traces = traces[pair.before], traces[pair.after]
        collected.append(
            _ComparisonReportParts(list(packed_comparison_tables(*pair_traces, pair.metric)))
        )
        count_part()
    return collected


def _collect_parts_of_trace(  # noqa: PLR0913 - all that the report knows of it
    listed: ListedTrace,
    trace: Trace,
    jobs: list[PageJob],
    *,
    known_advice: Advice | None,
    packed: list[Callable[[], list[_ReportItem]]],
    shows_source: bool,
    count_part: Callable[[], None],
) -> _TraceReportParts:
    """Returns what the report contains about one trace, whose tables are being packed."""
    ranks = next(
        (
            job.ranks
            for job in jobs
            if listed.id in job.ids.values() and len(job.ranks.ranks_by_key()) > 1
        ),
        None,
    )
    advice = known_advice or advise(trace, ranks=ranks)
    count_part()
    candidates: list[_ReportItem] = []
    for items in packed:
        candidates.extend(items())
        count_part()
    candidates.extend(report_source_files(trace, advice) if shows_source else ())
    count_part()
    contents = contents_data(contents_of_trace(trace, listed), has_other_ranks=ranks is not None)
    return _TraceReportParts(listed, contents, advice, candidates)


def _progress_counting_function(
    part_count: int, progress: ProgressCallback | None
) -> Callable[[], None]:
    """Returns a function to call after each finished step; it reports (steps done, total)."""
    done = itertools.count(1)
    return lambda: None if progress is None else progress(next(done), part_count)


def _list_entry_of_trace(name: str, trace: Trace) -> ListedTrace:
    """Returns a trace's entry in the page's list of traces, with `name` as the entry's id."""
    return replace(
        listed_trace(trace.source or name, run_folder=PurePath(name).parent.name), id=name
    )


def _begin_packing_tables_of_trace(
    trace: Trace, requests: list[TableRequest], begin: BeginsCall
) -> list[Callable[[], list[_ReportItem]]]:
    """Begins to compress a trace's tables: those of views, of the timeline, and of slices.

    Each function that is returned waits for some of the tables, and returns them.
    """

    def packed(requests: Iterable[TableRequest]) -> list[_ReportItem]:
        return [pack_table(trace, request) for request in requests]

    return [
        *(begin(partial(packed, [request])) for request in requests),
        begin(lambda: [*packed_timeline_tables(trace)]),
        begin(lambda: packed([*sandwich_table_requests(trace), *slice_table_requests(trace)])),
    ]


def _pack_requested_tables(
    subject: TraceJobOrRanks, requests: list[TableRequest], count_part: Callable[[], None]
) -> Iterator[_ReportItem]:
    """Yields the requested tables of a trace or job, compressed."""
    for request in requests:
        yield pack_table(subject, request)
        count_part()


def _report_data_without_tables(
    parts: list[_ReportParts], first_panel: str, pair: Pair | None
) -> dict[str, Any]:
    """Returns the report's data, with empty objects to be filled with tables and source lines."""
    traces = [part for part in parts if isinstance(part, _TraceReportParts)]
    jobs = [part.job for part in parts if isinstance(part, _JobReportParts)]
    rule_names = {rule for part in traces for rule in _rules_mentioned_in_advice(part.advice)}
    rule_pages = {name: f"# {name}\n\n{find(name).doc}" for name in sorted(rule_names)}
    compared = pair and {"before": pair.before, "after": pair.after, "tables": []}
    return {
        "format": FORMAT,
        "start": first_panel or ("#/compare" if pair else ""),
        "compared": compared,
        "traces": [part.listed.to_dict() for part in traces],
        "views": compress_json([view_description_data(view) for view in VIEWS.values()]),
        "rules": compress_json(rule_pages),
        "held": {
            part.listed.id: {
                "contents": compress_json(part.contents),
                "advice": compress_json(advice_data(part.advice, _trace_file_name(part.advice))),
                "tables": [],
                "sources": {},
            }
            for part in traces
        },
        "jobs": [
            {
                "traces": sorted(job.ids.values()),
                "job": compress_json(page_data_of_job(job)),
                "tables": [],
            }
            for job in jobs
        ],
    }


def _trace_file_name(advice: Advice) -> str | None:
    """Returns the trace's file name without its folder, which is private; None if it is unknown."""
    return None if advice.trace is None else PurePath(advice.trace.source).name or None


def _rules_mentioned_in_advice(advice: Advice) -> set[str]:
    """Returns the names of the rules that the advice mentions; the report contains their pages."""
    checked_rules = {checked.rule for checked in advice.checked if not checked.is_absent}
    return {finding.rule for finding in advice.findings} | checked_rules


def _items_and_versions_that_fit(
    parts: list[_ReportParts], max_bytes: int
) -> Iterator[tuple[_ReportParts, _ReportItem, int]]:
    """Yields (owner, table or source file, index of the chosen size version) of what fits."""
    items = [(part, item) for part in parts for item in part.candidates]
    sizes = [
        ReportItemSizes(
            item.priority, tuple(map(_html_json_bytes, _report_data_of_item_versions(item)))
        )
        for _, item in items
    ]
    for (part, item), version in zip(items, choose_fitting_versions(sizes, max_bytes), strict=True):
        if version is not None:
            yield part, item, version


def _report_data_of_item_versions(item: _ReportItem) -> list[Any]:
    """Returns the report's data for a table or source file, in every size version."""
    if isinstance(item, PackedTable):
        return [item.to_dict(version) for version in range(len(item.versions))]
    return [{item.name: version} for version in item.versions]


def _html_json_bytes(value: Any) -> int:
    """Returns the size of a JSON value in the report, in bytes."""
    return len(html_safe_json(value)) + 1


def _add_item_version_to_report_data(
    owner: dict[str, Any], item: _ReportItem, version: int
) -> None:
    """Adds one size version of a table or source file to its owner's data in the report."""
    if isinstance(item, PackedTable):
        owner["tables"].append(item.to_dict(version))
    else:
        owner["sources"][item.name] = item.versions[version]


def _as_url_parameter_text(value: Any) -> str:
    """Returns a value as text in the page's URL; True and False become `true` and `false`."""
    return str(value).lower() if isinstance(value, bool) else str(value)

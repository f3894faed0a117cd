"""Builds the tables `events` and `repairs`, which count a file's events and faults."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import polars as pl

from selftime import schema
from selftime.ingest.damage.file_faults import FileFault
from selftime.ingest.events.chunk_merging import FileEventColumns
from selftime.ingest.links.slice_links import SliceLinks
from selftime.ingest.text.trace_parsing import ParsedTrace

_EVENT_PHASES_WITH_TABLE: Final = frozenset("XBEiIRCMbneSTpF")
_KNOWN_SCHEMA_VERSION: Final = 1
"""The `schemaVersion` of the trace format that is supported; Kineto has never changed it."""
_FLOW_PHASES: Final = frozenset("stf")
_CATEGORIES_OF_LAUNCH_FLOWS: Final = frozenset({"ac2g", "async", "async_gpu", "async_cpu_to_gpu"})
"""Categories of flow arrows from launches to device work. Some launches have no work, so starts may
outnumber ends.
"""


def event_count_table(phases: Counter[tuple[str, str]]) -> pl.DataFrame:
    """Returns the table `events`: the number of events of each phase and category."""
    rows = [
        (ph, cat, count, ph in _EVENT_PHASES_WITH_TABLE)
        for (ph, cat), count in sorted(phases.items())
    ]
    return pl.DataFrame(rows, schema=dict(schema.EVENTS.dtypes), orient="row")


def repair_table(
    parsed: ParsedTrace,
    columns: FileEventColumns,
    links: SliceLinks,
    container_faults: list[FileFault],
) -> pl.DataFrame:
    """Returns the table `repairs` with all faults of a file: one row for each distinct message."""
    twice = FileFault("`traceEvents` more than once: all are read")
    arrays = [twice] * parsed.event_list_count if parsed.event_list_count > 1 else []
    table = fault_table([*container_faults, *parsed.faults, *arrays])
    rows: list[tuple[str, int, int | None, int, str | None, bool, bool]] = []
    counted = columns.fault_counts + _unread_event_counts_by_message(
        columns.event_counts_by_phase_and_category
    )
    rows += [(what, count, None, 0, None, False, False) for what, count in (+counted).items()]
    ruins = (+columns.invalidating_fault_counts).items()
    rows += [(what, count, None, 0, None, False, True) for what, count in ruins]
    notes = (
        columns.oddity_counts
        + _unmatched_flow_counts_by_message(columns.event_counts_by_phase_and_category)
        + _newer_schema_count_by_message(parsed.metadata)
    )
    rows += [(what, count, None, 0, None, True, False) for what, count in notes.items()]
    odd_ones = [odd for odd in links.link_faults if odd.times]
    rows += [(odd.fault, odd.times, None, 0, None, odd.is_note, False) for odd in odd_ones]
    counts = pl.DataFrame(rows, schema=dict(schema.REPAIRS.dtypes), orient="row")
    return pl.concat([table, counts])


def fault_table(faults: list[FileFault]) -> pl.DataFrame:
    """Returns faults as rows of the table `repairs`: one row for each distinct message."""
    found: dict[str, list[FileFault]] = {}
    for fault in faults:
        found.setdefault(fault.fault, []).append(fault)
    rows = [
        (
            what,
            len(same),
            min((fault.offset for fault in same if fault.offset >= 0), default=None),
            sum(fault.lost for fault in same),
            same[0].example,
            all(fault.is_note for fault in same),
            any(fault.invalidates_trace for fault in same),
        )
        for what, same in found.items()
    ]
    return pl.DataFrame(rows, schema=dict(schema.REPAIRS.dtypes), orient="row")


def _unread_event_counts_by_message(phases: Counter[tuple[str, str]]) -> Counter[str]:
    """Returns how many events no table contains, by a message that names the events' phase."""
    found: Counter[str] = Counter()
    for (phase, _), count in phases.items():
        if phase not in _EVENT_PHASES_WITH_TABLE | _FLOW_PHASES:
            what = "objects" if phase in {"N", "O", "D"} else "an unknown phase"
            letter = repr(phase[:1])[1:-1] or "(none)"
            found[f"events of {what}, `{letter}`: left out"] += count
    return found


def _unmatched_flow_counts_by_message(phases: Counter[tuple[str, str]]) -> Counter[str]:
    """Returns how many flow arrows lack a start or an end, by the message shown to the user."""
    found: Counter[str] = Counter()
    for category in {category for phase, category in phases if phase in _FLOW_PHASES}:
        if category.lower() not in _CATEGORIES_OF_LAUNCH_FLOWS:
            odd = abs(phases["s", category] - phases["f", category])
            found["flow arrows without a start or an end: ids link rows instead"] += odd
    return +found


def _newer_schema_count_by_message(metadata: Mapping[str, Any]) -> Counter[str]:
    version = metadata.get("schemaVersion")
    is_newer = isinstance(version, int) and version > _KNOWN_SCHEMA_VERSION
    return Counter(
        {f"schemaVersion {version} is newer than known ({_KNOWN_SCHEMA_VERSION})": int(is_newer)}
    )

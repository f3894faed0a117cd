"""Tables of a file's events and faults: nothing is dropped without being counted."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import polars as pl

from selftime import schema
from selftime.ingest.damage.faults import Fault
from selftime.ingest.events.assemble import FileColumns
from selftime.ingest.links.link import Links
from selftime.ingest.text.document import Document

_READ_PHASES: Final = frozenset("XBEiIRCMbneSTpF")
_SCHEMA: Final = 1
"""The version of the format, which Kineto has never changed."""
_FLOWS: Final = frozenset("stf")
_OF_LAUNCHES: Final = frozenset({"ac2g", "async", "async_gpu", "async_cpu_to_gpu"})
"""Flow categories that also end on calls without device work, so that their counts may differ."""


def event_table(phases: Counter[tuple[str, str]]) -> pl.DataFrame:
    """Returns the number of events by phase and category, as written."""
    rows = [(ph, cat, count, ph in _READ_PHASES) for (ph, cat), count in sorted(phases.items())]
    return pl.DataFrame(rows, schema=dict(schema.EVENTS.dtypes), orient="row")


def repair_table(
    document: Document, columns: FileColumns, links: Links, container: list[Fault]
) -> pl.DataFrame:
    """Returns the faults of container, text, events and links; equal faults share a row."""
    twice = Fault("`traceEvents` more than once: all are read")
    arrays = [twice] * document.arrays if document.arrays > 1 else []
    table = fault_table([*container, *document.faults, *arrays])
    rows: list[tuple[str, int, int | None, int, str | None, bool, bool]] = []
    counted = columns.faults + _unread(columns.phases)
    rows += [(what, count, None, 0, None, False, False) for what, count in (+counted).items()]
    ruins = (+columns.ruins).items()
    rows += [(what, count, None, 0, None, False, True) for what, count in ruins]
    notes = columns.notes + _unmatched(columns.phases) + _newer(document.metadata)
    rows += [(what, count, None, 0, None, True, False) for what, count in notes.items()]
    odd_ones = [odd for odd in links.odd if odd.times]
    rows += [(odd.fault, odd.times, None, 0, None, odd.note, False) for odd in odd_ones]
    counts = pl.DataFrame(rows, schema=dict(schema.REPAIRS.dtypes), orient="row")
    return pl.concat([table, counts])


def fault_table(faults: list[Fault]) -> pl.DataFrame:
    """Returns faults as rows of the table `repairs`; equal faults share a row."""
    found: dict[str, list[Fault]] = {}
    for fault in faults:
        found.setdefault(fault.fault, []).append(fault)
    rows = [
        (
            what,
            len(same),
            min((fault.offset for fault in same if fault.offset >= 0), default=None),
            sum(fault.lost for fault in same),
            same[0].example,
            all(fault.note for fault in same),
            any(fault.ruin for fault in same),
        )
        for what, same in found.items()
    ]
    return pl.DataFrame(rows, schema=dict(schema.REPAIRS.dtypes), orient="row")


def _unread(phases: Counter[tuple[str, str]]) -> Counter[str]:
    """Returns the number of events that are in no table: objects and unknown phases."""
    found: Counter[str] = Counter()
    for (phase, _), count in phases.items():
        if phase not in _READ_PHASES | _FLOWS:
            what = "objects" if phase in {"N", "O", "D"} else "an unknown phase"
            letter = repr(phase[:1])[1:-1] or "(none)"
            found[f"events of {what}, `{letter}`: left out"] += count
    return found


def _unmatched(phases: Counter[tuple[str, str]]) -> Counter[str]:
    """Returns the number of flows without a partner; rows are not joined by flows."""
    found: Counter[str] = Counter()
    for category in {category for phase, category in phases if phase in _FLOWS}:
        if category.lower() not in _OF_LAUNCHES:
            odd = abs(phases["s", category] - phases["f", category])
            found["flows without a partner: rows are joined by ids, not by flows"] += odd
    return +found


def _newer(metadata: Mapping[str, Any]) -> Counter[str]:
    version = metadata.get("schemaVersion")
    is_newer = isinstance(version, int) and version > _SCHEMA
    return Counter({f"schemaVersion {version} is newer than known ({_SCHEMA})": int(is_newer)})

"""What the file holds and what was wrong with it, counted: nothing is dropped silently."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import polars as pl

from selftime import schema
from selftime.ingest.damage.faults import Fault
from selftime.ingest.events.assemble import FileColumns
from selftime.ingest.links.link import Links
from selftime.ingest.text.document import Document

_KEPT: Final = frozenset("XBEiIRCMbneSTpF")
_SCHEMA: Final = 1
"""The version of the format that Kineto writes since its begin."""
_FLOWS: Final = frozenset("stf")
_OF_LAUNCHES: Final = frozenset({"ac2g", "async", "async_gpu", "async_cpu_to_gpu"})
"""Flows that end on calls without device work too, so that their ends do not match in number."""


def event_table(phases: Counter[tuple[str, str]]) -> pl.DataFrame:
    """Events by phase and category, as written."""
    rows = [(ph, cat, count, ph in _KEPT) for (ph, cat), count in sorted(phases.items())]
    return pl.DataFrame(rows, schema=dict(schema.EVENTS.dtypes), orient="row")


def repair_table(
    document: Document, columns: FileColumns, links: Links, container: list[Fault]
) -> pl.DataFrame:
    """Faults of the container, the text, the events and the links, equal ones on one row."""
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
    """Faults as rows of repairs, equal ones on one."""
    found: dict[str, list[Fault]] = {}
    for fault in faults:
        found.setdefault(fault.fault, []).append(fault)
    rows = [
        (
            what,
            len(all_),
            min((fault.offset for fault in all_ if fault.offset >= 0), default=None),
            sum(fault.lost for fault in all_),
            all_[0].example,
            all(fault.note for fault in all_),
            any(fault.ruin for fault in all_),
        )
        for what, all_ in found.items()
    ]
    return pl.DataFrame(rows, schema=dict(schema.REPAIRS.dtypes), orient="row")


def _unread(phases: Counter[tuple[str, str]]) -> Counter[str]:
    """Events of objects, and of phases that no reader knows: they are in no table."""
    found: Counter[str] = Counter()
    for (phase, _), count in phases.items():
        if phase not in _KEPT | _FLOWS:
            what = "objects" if phase in {"N", "O", "D"} else "an unknown phase"
            letter = repr(phase[:1])[1:-1] or "(none)"
            found[f"events of {what}, `{letter}`: left out"] += count
    return found


def _unmatched(phases: Counter[tuple[str, str]]) -> Counter[str]:
    """Flows whose begins and ends do not match in number; nothing is joined by them."""
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

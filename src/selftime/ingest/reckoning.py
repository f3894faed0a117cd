"""What the file holds and what was wrong with it, counted: nothing is dropped silently."""

from collections import Counter
from typing import Final

import polars as pl

from selftime import schema
from selftime.ingest.assemble import FileColumns
from selftime.ingest.document import Document
from selftime.ingest.faults import Fault
from selftime.ingest.link import Links

__all__ = ["event_table", "repair_table"]

_KEPT: Final = frozenset("XBEiIRCM")


def event_table(phases: Counter[tuple[str, str]]) -> pl.DataFrame:
    """Events by phase and category, as written."""
    rows = [(ph, cat, count, ph in _KEPT) for (ph, cat), count in sorted(phases.items())]
    return pl.DataFrame(rows, schema=dict(schema.EVENTS.dtypes), orient="row")


def repair_table(
    document: Document, columns: FileColumns, links: Links, container: list[Fault]
) -> pl.DataFrame:
    """Faults of the container, the text, the events and the links, equal ones on one row."""
    found: dict[str, list[Fault]] = {}
    for fault in [*container, *document.faults]:
        found.setdefault(fault.fault, []).append(fault)
    if document.arrays > 1:
        twice = Fault("`traceEvents` more than once: all are read")
        found[twice.fault] = [twice] * document.arrays
    rows: list[tuple[str, int, int | None, int, str | None, bool]] = [
        (
            what,
            len(all_),
            min((fault.offset for fault in all_ if fault.offset >= 0), default=None),
            sum(fault.lost for fault in all_),
            all_[0].example,
            all(fault.note for fault in all_),
        )
        for what, all_ in found.items()
    ]
    counted = Counter(columns.faults)
    rows += [(what, count, None, 0, None, False) for what, count in (+counted).items()]
    rows += [(odd.fault, odd.times, None, 0, None, odd.note) for odd in links.odd if odd.times]
    return pl.DataFrame(rows, schema=dict(schema.REPAIRS.dtypes), orient="row")

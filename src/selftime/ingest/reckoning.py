"""What the file holds and what was wrong with it, counted: nothing is dropped silently."""

from collections import Counter
from typing import Final

import polars as pl

from selftime import schema
from selftime.ingest.assemble import FileColumns
from selftime.ingest.document import Document
from selftime.ingest.link import Links

__all__ = ["event_table", "repair_table"]

_KEPT: Final = frozenset("XBEiIRCM")


def event_table(phases: Counter[tuple[str, str]]) -> pl.DataFrame:
    """Events by phase and category, as written."""
    rows = [(ph, cat, count, ph in _KEPT) for (ph, cat), count in sorted(phases.items())]
    return pl.DataFrame(rows, schema=dict(schema.EVENTS.dtypes), orient="row")


def repair_table(
    document: Document,
    columns: FileColumns,
    links: Links,
    container: list[tuple[str, int]],
) -> pl.DataFrame:
    """Faults of the container, the text, the events and the links, equal ones on one row."""
    found: dict[str, list[tuple[int | None, int, str | None]]] = {}
    for what, offset in container:
        found.setdefault(what, []).append((offset, 0, None))
    for fault in document.faults:
        where = fault.offset if fault.offset >= 0 else None
        found.setdefault(fault.fault, []).append((where, fault.lost, fault.example))
    if document.arrays > 1:
        found["`traceEvents` more than once: all are read"] = [(None, 0, None)] * document.arrays
    rows: list[tuple[str, int, int | None, int, str | None]] = [
        (
            what,
            len(all_),
            min((o for o, _, _ in all_ if o is not None), default=None),
            sum(lost for _, lost, _ in all_),
            all_[0][2],
        )
        for what, all_ in found.items()
    ]
    counted = Counter(columns.faults)
    counted["launches that share a correlation: not linked"] = links.ambiguous
    counted["device work that starts before its launch"] = links.before_launch
    rows += [(what, count, None, 0, None) for what, count in (+counted).items()]
    return pl.DataFrame(rows, schema=dict(schema.REPAIRS.dtypes), orient="row")

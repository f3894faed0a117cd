"""Two of a report's traces held against each other, as the page asks for it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from selftime.compare import Metric, metrics
from selftime.reports.html.packing import packed, packed_columns
from selftime.reports.html.tables import Table
from selftime.reports.page_data.compare import MOST_NODES, Compared, compared
from selftime.trace import Trace

_NODES: Final = (2_000, MOST_NODES)
"""Rows of the tree in the least version, which has room before other tables, and the fullest."""
_MOST_BYTES: Final = 32 << 20
"""Of a table before it is packed."""
_RANKS: Final = (0, 3)
"""The comparison is what the report is made for; by the other metric it is one more table."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Which traces are compared, by their names in the report."""

    before: str
    after: str
    metric: Metric | None = None
    """Whose time the trees are compared by first; by default the device's if both used one."""


def comparisons(before: Trace, after: Trace, metric: Metric | None) -> Iterator[Table]:
    """The comparison by the metric that is asked for, then by the other."""
    known = metrics(before, after)
    first = metric or known[0]
    others = [one for one in known if one != first]
    for rank, one in zip(_RANKS, (first, *others), strict=False):
        found = compared(before, after, one)
        height = found.tables["tree"].table.height
        sizes = [*(nodes for nodes in _NODES if nodes < height), min(height, MOST_NODES)]
        versions = (_packed(found, nodes) for nodes in dict.fromkeys(sizes))
        yield Table(rank, "compare", {"metric": one}, tuple(versions))


def _packed(found: Compared, nodes: int) -> str:
    told = msgspec.json.decode(found.answer(nodes=nodes, limit=_MOST_BYTES))
    tables = {
        name: {**page, "columns": packed_columns(page["columns"], _units(told, name))}
        for name, page in told["tables"].items()
    }
    return packed({**told, "tables": tables})


def _units(told: dict[str, Any], name: str) -> dict[str, str]:
    return {column["name"]: column["unit"] for column in told["specs"][name]["columns"]}

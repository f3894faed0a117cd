"""A flame graph of the memory at a device's peak: what allocated the blocks that exist there."""

from typing import Literal

import polars as pl

from selftime.analysis.call_tree.flame_graph import FLAME_GRAPH_NODE_KINDS
from selftime.analysis.memory.memory_flame_graph import memory_flame_graph_rows
from selftime.analysis.memory.memory_peak import peak_search_range
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.view_declaration import MEMORY_DEVICE_COLUMNS, RowLimit, Share, view


@view(
    Column("name", pl.String, "name", "The name of the frame, module, annotation or operator."),
    Column("kind", pl.Enum(FLAME_GRAPH_NODE_KINDS), "name", "The kind of node, as in `flame`."),
    Column("depth", pl.Int64, "count", "The number of the node's ancestors."),
    Column("bytes", pl.Int64, "bytes", "Bytes allocated by the node and its descendants."),
    Column("share", pl.Float64, "ratio", "The node's bytes as a share of the device's."),
    Column("self_bytes", pl.Int64, "bytes", "Bytes allocated by the node itself."),
    Column("blocks", pl.Int64, "count", "The number of blocks that the node itself allocated."),
    Column("file", pl.String, "text", "The source file of a Python frame; null for others.", True),
    Column("line", pl.Int32, "id", "The line of a Python frame; null for others.", True),
    Column("origin", pl.String, "name", "Whose code a frame is: user, library or system.", True),
    Column("id", pl.Int64, "id", "The number of the row, to which `parent` refers."),
    Column("parent", pl.Int64, "id", "The `id` of the parent node's row; null for a root.", True),
    *MEMORY_DEVICE_COLUMNS,
    Column("time", pl.Int64, "instant", "When the device's allocated memory is at its peak."),
    needs=("memory",),
    sums=("self_bytes",),
)
def memory_flame(  # noqa: PLR0913 - keyword-only options of the command
    trace: Trace,
    *,
    by: Literal["stack", "module", "line"] = "stack",
    device: str = "",
    step: int = -1,
    at: int = -1,
    start: int = 0,
    end: int = 0,
    min_share: Share = 0.001,
    top: RowLimit = 0,
) -> pl.DataFrame:
    """The tree of what allocated the memory at each device's peak, the most bytes first.

    `by` stack has Python frames, modules and operators as they called each other, in an allocator's
    snapshot the stacks that it recorded; by module plain frames are left out, and backward
    operators are within the module of their forward operator; by line has files, their lines and
    the operators in these. Memory without an allocation in the recording is one root. A device's
    roots add up to its total, unless records contradict that: `unaccounted` in `memory_peak`. The
    peak is found as there: of one `step`, between the instants `start` and `end`, or else at the
    instant `at`, all in ns. `device` keeps one type, such as `cuda`.

    Nodes below `min_share` of a device's memory are merged into `(other)` below their parent; `top`
    keeps the largest nodes of a device; 0 keeps all. Totals stay complete.
    """
    rows = memory_flame_graph_rows(
        trace,
        device,
        peak_search_range(trace, start=start, end=end, step=step, at=at),
        by=by,
        min_share=min_share,
        max_nodes=top,
    )
    return memory_flame.table_of(
        rows.rename(
            {"total_time": "bytes", "self_time": "self_bytes", "count": "blocks"}, strict=False
        )
    )

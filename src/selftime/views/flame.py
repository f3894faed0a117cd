"""A flame graph: the tree of Python frames, modules, operators and kernels, with their times."""

from typing import Literal

import polars as pl

from selftime.analysis.call_tree.flame_graph import FLAME_GRAPH_NODE_KINDS, flame_graph
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.view_declaration import RowLimit, Share, view


@view(
    Column(
        "name",
        pl.String,
        "name",
        "The name of the frame, module, annotation, operator, call or kernel.",
    ),
    Column(
        "kind",
        pl.Enum(FLAME_GRAPH_NODE_KINDS),
        "name",
        f"The kind of node: {', '.join(FLAME_GRAPH_NODE_KINDS)}.",
    ),
    Column("depth", pl.Int64, "count", "The number of the node's ancestors."),
    Column("total_time", pl.Int64, "ns", "Time in the node, including its descendants."),
    Column(
        "share",
        pl.Float64,
        "ratio",
        "`total_time` of the node divided by the total time of all roots.",
    ),
    Column("self_time", pl.Int64, "ns", "Time in the node, excluding its descendants."),
    Column("count", pl.Int64, "count", "The number of slices that the node merges."),
    Column(
        "file",
        pl.String,
        "text",
        "The source file of a Python frame; null for other kinds of node.",
        True,
    ),
    Column(
        "line",
        pl.Int32,
        "id",
        "The line that defines a Python frame's function; null for other kinds of node.",
        True,
    ),
    Column(
        "id",
        pl.Int64,
        "id",
        "The number of the row, to which the column `parent` of other rows refers.",
    ),
    Column(
        "parent", pl.Int64, "id", "The `id` of the row of the parent node; null for a root.", True
    ),
    needs=("stacks",),
    sums=("self_time",),
)
def flame(  # noqa: PLR0913 - keyword-only options of the command
    trace: Trace,
    *,
    metric: Literal["auto", "host", "device"] = "auto",
    by: Literal["stack", "module"] = "stack",
    thread: str = "",
    counted: bool = False,
    min_share: Share = 0.001,
    top: RowLimit = 0,
) -> pl.DataFrame:
    """The tree of Python frames, modules, operators and kernels, with host or device times.

    Slices with the same path of names are one node. Each node comes before its descendants, the
    heaviest branch first. `metric` is the time that is summed: of the host, or of the device (auto)
    where there is any; then kernels are the leaves and calls are left out. `by` stack nests slices
    as they ran; by module plain frames are left out, and backward operators are within the module
    of their forward operator. `thread` keeps one host thread, by its number in the trace, and the
    work that it launched; `counted` keeps what began in the steps that count for medians.

    Nodes below `min_share` of the whole, less than a pixel of a screen, are merged into `(other)`
    below their parent; `top` keeps the largest nodes; 0 keeps all. Totals stay complete.
    """
    tree = flame_graph(
        trace,
        by_module=by == "module",
        on_device=metric == "device" or (metric == "auto" and trace.device_args.height > 0),
        thread=thread,
        counted=counted,
    )
    return flame.table_of(tree.rows(min_share=min_share, max_nodes=top))

"""A flame graph: the tree of Python frames, modules, operators and kernels, with their times."""

from typing import Literal

import polars as pl

from selftime.analysis.call_tree.flame_graph import (
    FLAME_GRAPH_NODE_KINDS,
    FlameGraphLimits,
    FlameGraphName,
    FlameGraphOrder,
    flame_graph_rows,
)
from selftime.analysis.call_tree.flame_graph_slices import FlameGraphSource
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
        "`total_time` of the node divided by the time of all names together.",
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
    Column(
        "start",
        pl.Int64,
        "instant",
        "When the slice began on the host or was launched; null but in order of time.",
        True,
    ),
    Column(
        "thread",
        pl.String,
        "text",
        "The number of the slice's thread, or of its launch; null but in order of time.",
        True,
    ),
    needs=("stacks",),
    sums=("self_time",),
)
def flame(  # noqa: PLR0913 - keyword-only options of the command
    trace: Trace,
    *,
    order: FlameGraphOrder = "top_down",
    of: str = "",
    kind: str = "",
    metric: Literal["auto", "host", "device"] = "auto",
    by: Literal["stack", "module"] = "stack",
    thread: str = "",
    counted: bool = False,
    step: str = "",
    min_share: Share = 0.001,
    top: RowLimit = 0,
) -> pl.DataFrame:
    """The tree of Python frames, modules, operators and kernels, with host or device times.

    Slices with the same path of names are one node. Each node comes before its descendants, the
    heaviest branch first. `metric` is the time that is summed: of the host, or of the device (auto)
    where there is any; then kernels are the leaves and calls are left out. `by` stack nests slices
    as they ran; by module plain frames are left out, and backward operators are within the module
    of their forward operator. `thread` keeps one host thread, by its number in the trace, and the
    work that it launched; `counted` keeps what began in the steps that count for medians, `step`
    what began in one step, by its number.

    `order` top_down goes from callers to callees. Bottom_up begins with each name, its self time as
    the total, and has callers below it: their `total_time` is the part of that self time that came
    through them, their `self_time` the part that has no further caller. Flat has a row for each
    name without a tree; a name that recurs within itself counts once in its total. Time keeps the
    slices apart, thread by thread, the main one first, in the order in which they began or were
    launched; host slices are cut where the step begins and ends.

    `of` makes one name the root, of one `kind` if that is given: top_down with what it called,
    bottom_up with what it was called from. The root has the total time of the name, recursion
    counted once.

    Nodes below `min_share` of the whole, less than a pixel of a screen, are merged into `(other)`
    below their parent, or beside each other in order of time; `top` keeps the largest nodes; 0
    keeps all. Totals stay complete.
    """
    source = FlameGraphSource(
        by_module=by == "module",
        on_device=metric == "device" or (metric == "auto" and trace.device_args.height > 0),
        thread=thread,
        counted=counted,
        step=step,
    )
    limits = FlameGraphLimits(min_share, top)
    return flame.table_of(flame_graph_rows(trace, source, order, FlameGraphName(of, kind), limits))

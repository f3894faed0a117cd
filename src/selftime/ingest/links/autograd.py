"""Join backward operators to the forward operators whose gradients they compute.

Autograd numbers the nodes of its graph. A backward operator carries its node's number and the
forward thread; operators that make no node carry the number of the next. So the forward operator is
the latest of that number before the backward one. `AccumulateGrad` has no number: it follows the
node whose gradient it stores.
"""

import numpy as np
from numpy.typing import NDArray

from selftime import names
from selftime.arrays import SignedInts
from selftime.ingest.events.assemble import FileColumns
from selftime.ingest.events.columns import Columns
from selftime.ingest.events.event import NO_INT
from selftime.ingest.links.arrange import Arranged
from selftime.nesting import NONE


def forward_of(slices: Arranged, ops: Columns, columns: FileColumns) -> SignedInts:
    """For each row of `ops`: the place of its forward slice, or NONE."""
    at = slices.place[ops["row"]]
    sequence, thread = ops["sequence"], ops["forward_thread"]
    numbered = (sequence != NO_INT) & (sequence >= 0) & (thread != NO_INT)
    forward, backward = numbered & (thread == 0), numbered & (thread != 0)
    found = _latest_before(at, sequence, forward, backward)
    return _follow(slices, columns, at, found)


def _latest_before(
    at: SignedInts, sequence: SignedInts, forward: NDArray[np.bool_], backward: NDArray[np.bool_]
) -> SignedInts:
    """The last forward slice of the same number before each backward slice; places are in time."""
    found = np.full(at.size, NONE, np.int64)
    rows = np.flatnonzero(forward | backward)
    rows = rows[np.lexsort((at[rows], sequence[rows]))]
    last = np.maximum.accumulate(np.where(forward[rows], np.arange(rows.size), NONE))
    ask = backward[rows] & (last != NONE)
    candidate = rows[last[ask]]
    same = sequence[candidate] == sequence[rows[ask]]
    found[rows[ask][same]] = at[candidate[same]]
    return found


def _follow(
    slices: Arranged, columns: FileColumns, at: SignedInts, found: SignedInts
) -> SignedInts:
    """Give nodes without a number the forward slice of the node before them on their track."""
    codes = np.unique(slices.name[at])
    texts = columns.text(codes).cast(str).to_list() if codes.size else []
    nodes = codes[[names.is_backward_node(text) for text in texts]] if texts else codes
    rows = np.flatnonzero(np.isin(slices.name[at], nodes))
    rows = rows[np.lexsort((at[rows], slices.track[at[rows]]))]
    last = np.maximum.accumulate(np.where(found[rows] != NONE, np.arange(rows.size), NONE))
    track = slices.track[at[rows]]
    follows = (found[rows] == NONE) & (last != NONE)
    follows[follows] = track[last[follows]] == track[follows]
    found[rows[follows]] = found[rows[last[follows]]]
    return found

"""What is around every slice, as arrays to climb by: parents, Python frames, their callers."""

import numpy as np
from numpy.typing import NDArray

from selftime.analysis.cached import cached_per_trace
from selftime.nesting import NONE
from selftime.trace import Trace


@cached_per_trace
def parents(trace: Trace) -> NDArray[np.int64]:
    """For each slice the innermost of its track around it, or NONE; to be read only."""
    untold = np.iinfo(np.uint32).max
    told = trace.slices["parent"].fill_null(untold).to_numpy()
    found = told.astype(np.int64)
    found[told == untold] = NONE
    found.flags.writeable = False
    return found


@cached_per_trace
def callers(trace: Trace) -> NDArray[np.int64]:
    """For each Python frame the frame that called it, NONE for all other slices; read only."""
    found = np.full(trace.slices.height, NONE, np.int64)
    known = trace.frame_args.select("id", "caller").drop_nulls()
    found[known["id"].to_numpy()] = known["caller"].to_numpy()
    found.flags.writeable = False
    return found


@cached_per_trace
def frames_around(trace: Trace) -> NDArray[np.int64]:
    """The Python frame around each slice, itself for a frame, NONE if none is told; read only."""
    found = np.full(trace.slices.height, NONE, np.int64)
    for table in (trace.call_args, trace.op_args):
        known = table.select("id", "frame").drop_nulls()
        found[known["id"].to_numpy()] = known["frame"].to_numpy()
    frames = trace.frame_args["id"].to_numpy()
    found[frames] = frames
    found.flags.writeable = False
    return found

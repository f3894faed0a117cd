"""Tells copies to the host that read the result of a step, which must be read once."""

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.wait_sites import WaitSite
from selftime.analysis.device.device_work import device_work
from selftime.analysis.slice_filters import filter_by_name
from selftime.analysis.steps.steady_steps import counted_step_windows
from selftime.trace import Trace

RESULT_TEXT = (
    "The step trains nothing and ends with this read: if it is the result that the step is made "
    "for, it must be read, and only reading it after the next step's launches hides the wait."
)
"""What a fix says of a wait that reads the result of the step."""


def reads_result(trace: Trace, site: WaitSite) -> bool:
    """Returns whether a line copies to the host once, at the end of steps without a backward pass.

    At the end of a step no kernel is launched after the wait.
    """
    if site.cause != "copy_to_host" or site.waits_per_step > 1:
        return False
    if filter_by_name(trace.slices, names.is_backward_node).height:
        return False
    waits = trace.slices["start"].gather(pl.Series(site.call_ids)).sort().to_numpy()
    launched = device_work(trace).filter(pl.col("kind") == "kernel")["launched"].drop_nulls()
    ends = counted_step_windows(trace)["end"].to_numpy()
    next_ends = np.append(ends, np.iinfo(np.int64).max)[np.searchsorted(ends, waits)]
    times = launched.sort().to_numpy()
    return bool((np.searchsorted(times, waits) == np.searchsorted(times, next_ends)).all())

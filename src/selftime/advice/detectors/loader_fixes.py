"""The fixes of DataLoaders that several rules propose."""

from typing import Final

from selftime.advice.detectors.exposed_loading import DataLoadingTimes
from selftime.advice.detectors.loader_workers import RECORD_WORKERS_HINT, LoaderWorkerRecord
from selftime.advice.detectors.recorded_facts import available_cores
from selftime.advice.rule_outcomes import Argument, Confidence, Fix
from selftime.trace import Trace

MIN_CORES_APART: Final = 4
"""Fewest logical cores of which one is surely no second thread of the core that the program uses:
a worker on such a thread takes as much from the program as it hides."""

KEEP_WORKERS_FIX: Final = Fix(
    "Keep the workers from epoch to epoch.",
    "DataLoader(..., persistent_workers=True)",
    Argument("loader", "persistent_workers", "True"),
)

LOAD_IN_WORKERS: Final = "Load in worker processes, and make a sample cheaper where it computes."

HAND_OVER_LESS_FIX: Final = Fix(
    "More workers gain nothing. Hand over less, and in fewer parts: one tensor for each field, "
    "which lies in shared memory, and no lists, arrays or bytes, which go through a pipe; and ask "
    "for more at once.",
    "DataLoader(..., prefetch_factor=8)",
    Argument("loader", "prefetch_factor", "8"),
)


def may_share_core(trace: Trace) -> bool:
    """Returns whether all cores that the program may use may be threads of one core."""
    cores = available_cores(trace.facts)
    return cores is not None and cores < MIN_CORES_APART


def confidence_in_new_workers(
    trace: Trace, loading: DataLoadingTimes, *, is_sure: bool
) -> Confidence:
    """Returns how sure it is that workers gain where the main thread loads.

    Loading that mostly waits needs no core. That which computes gains little from a second thread
    of the core that the step uses.
    """
    if may_share_core(trace) and 2 * loading.waiting_ms < loading.total_ms:
        return "low"
    return "high" if is_sure else "medium"


def worker_count_fix(text: str, code: str, count: str) -> Fix:
    """Returns a fix that sets the number of workers to `count`, a Python expression."""
    return Fix(text, code, Argument("loader", "num_workers", count))


def text_on_more_workers(record: LoaderWorkerRecord | None) -> str:
    """Returns what to do where workers are too slow; `record` is what they noted, if anything."""
    if record is not None and record.wait_for_other_than_core:
        return (
            "The workers wait for storage, or for another process, more than they compute: more of "
            "them help even where no core is free. Else read less: larger files, a local copy."
        )
    text = (
        "Give the loader more workers while there are free cores; else make a sample cheaper: "
        "decode and transform it once, in float32, or on the device."
    )
    return text if record is not None else f"{text} {RECORD_WORKERS_HINT}"

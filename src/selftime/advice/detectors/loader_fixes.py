"""The fixes of DataLoaders that several rules propose."""

from typing import Final

from selftime.advice.detectors.loader_workers import RECORD_WORKERS_HINT, LoaderWorkerRecord
from selftime.advice.rule_outcomes import Argument, Fix

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

"""Finds out at a program's end what its traces are later compared with: the machine, its rates.

A process that has come to the end of its program, by itself or by an exception, measures them
itself. One that a signal or `os._exit` ends is not held up: the process that waited for it has them
measured by another one; see `ended_program.py`.
"""

import os
import platform
import sys
from typing import TYPE_CHECKING, Any, Final

from selftime.capture.ledger.run_ledger import RunLedger

if TYPE_CHECKING:
    from selftime.capture.recorder.recorder import Recorder


_VERBOSE_VARIABLES: Final = ("MKL_VERBOSE", "ONEDNN_VERBOSE", "DNNL_VERBOSE")
"""Environment variables with which libraries print each product of matrices."""


def facts_at_end(
    recorder: "Recorder | None", ledger: RunLedger, rank: int | None
) -> dict[str, Any]:
    """Returns as JSON values what the CPU's peak rates are; measures them as work of selftime.

    Nothing is measured, and the result is empty, where the program recorded no step, worked on a
    device, has the products of matrices printed, or is not the first rank on this machine, and
    where Ctrl-C comes meanwhile.

    Args:
        recorder: What recorded the process; None without torch.
        ledger: The run's ledger, in which the time of the trials is counted.
        rank: The process's rank in its job; None if it has none.
    """
    if recorder is None or not recorder.traces or not _is_first_rank_on_machine(rank):
        return {}
    if cpu_thread_count() is None or _are_products_printed():
        return {}
    from selftime.capture.facts.cpu_peak_trials import cpu_peak_facts  # noqa: PLC0415 - imports torch

    with ledger.own_work():
        try:
            return cpu_peak_facts()
        except KeyboardInterrupt:  # the program is over, and is to end at once
            return {}


def machine_at_end(recorder: "Recorder | None") -> dict[str, Any]:
    """Returns as JSON values what has to be the same for the times of two runs to be compared.

    It is empty without torch, whose steps alone are timed.
    """
    if recorder is None:
        return {}
    from selftime.capture.facts import machine  # noqa: PLC0415 - imports torch

    torch = sys.modules["torch"]
    told = {
        "processor": machine.processor_name(),
        "cores": machine.usable_core_counts(),
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
    }
    return {"machine": told}


def cpu_thread_count() -> int | None:
    """Returns how many threads share an operator on the CPU; None if a device does the work."""
    torch = sys.modules["torch"]
    if any(getattr(torch, name).is_initialized() for name in ("cuda", "xpu")):
        return None
    count: int = torch.get_num_threads()
    return count


def _is_first_rank_on_machine(rank: int | None) -> bool:
    """Returns whether no other rank of the job is to measure this machine.

    Where the launcher does not tell the rank on the machine, that is the first rank of the job.
    """
    return os.environ.get("LOCAL_RANK", str(rank or 0)) == "0"


def _are_products_printed() -> bool:
    return any(os.environ.get(name, "0") not in {"", "0"} for name in _VERBOSE_VARIABLES)

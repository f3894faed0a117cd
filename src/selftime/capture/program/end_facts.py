"""Finds out at a program's end what its traces are later compared with: the rates of this CPU."""

import os
import sys
from typing import TYPE_CHECKING, Any

from selftime.capture.ledger.run_ledger import RunLedger

if TYPE_CHECKING:
    from selftime.capture.recorder.recorder import Recorder


def facts_at_end(
    reason: str | None, recorder: "Recorder | None", ledger: RunLedger, rank: int | None
) -> dict[str, Any]:
    """Returns as JSON values what the CPU's peak rates are; measures them as work of selftime.

    Nothing is measured, and the result is empty, where the program ended early, recorded no step,
    worked on a device, or is not the first rank on this machine.

    Args:
        reason: Why the program ended early; None for a normal end.
        recorder: What recorded the process; None without torch.
        ledger: The run's ledger, in which the time of the trials is counted.
        rank: The process's rank in its job; None if it has none.
    """
    if reason is not None or recorder is None or not recorder.traces:
        return {}
    if not _is_first_rank_on_machine(rank) or _uses_accelerator():
        return {}
    from selftime.capture.facts.cpu_peak_trials import (  # noqa: PLC0415 - imports torch
        TrialsFailed,
        measured_cpu_peak_rates,
    )

    with ledger.own_work():
        try:
            return {"cpu_peaks": measured_cpu_peak_rates().as_json()}
        except TrialsFailed as failure:
            return {"cpu_peaks": None, "cpu_peaks_unknown": str(failure)}


def _is_first_rank_on_machine(rank: int | None) -> bool:
    """Returns whether no other rank of the job is to measure this machine.

    Where the launcher does not tell the rank on the machine, that is the first rank of the job.
    """
    return os.environ.get("LOCAL_RANK", str(rank or 0)) == "0"


def _uses_accelerator() -> bool:
    torch = sys.modules["torch"]
    return any(getattr(torch, name).is_initialized() for name in ("cuda", "xpu"))

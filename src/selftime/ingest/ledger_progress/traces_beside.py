"""Finds the traces that the processes of some ledgers left beside them."""

from collections.abc import Iterable
from pathlib import Path

from selftime.ingest.trace_paths import folder_and_process
from selftime.ledger_format import TRACE_SUFFIX, is_slow_step_file


def traces_beside(ledgers: Iterable[Path]) -> list[Path]:
    """Returns for each process the newest trace beside its ledger, in the order of the ledgers.

    Processes without a trace, and recordings of slow steps, are left out.
    """
    ordered = list(ledgers)
    found: dict[tuple[Path, tuple[str, ...]], Path] = {}
    for folder in {ledger.parent for ledger in ordered}:
        traces = (path for path in folder.iterdir() if path.name.endswith(TRACE_SUFFIX))
        for path in sorted(traces, key=lambda path: path.name.rpartition("_")[2]):
            if not is_slow_step_file(path.name):
                found[folder_and_process(path)] = path
    processes = dict.fromkeys(folder_and_process(ledger) for ledger in ordered)
    return [found[process] for process in processes if process in found]

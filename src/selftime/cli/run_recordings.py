"""Reads the recordings of several runs of a program, one of each run, for commands."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from selftime.cli import trace_reading
from selftime.cli.answering_process import answering_recording, recordings_of_run
from selftime.errors import UsageError

if TYPE_CHECKING:  # polars stays out until a command runs
    from selftime.compare.check.baseline_files import Baseline
    from selftime.trace import Trace


def read_runs(
    paths: Iterable[str], *, name_part: str | None = None, runs: int | None = 1
) -> "list[Trace]":
    """Returns a recording of each run at the paths, the oldest of a folder first.

    Args:
        paths: Traces, ledgers, and folders of them.
        name_part: Only reads traces with this text in their name.
        runs: How many of the newest runs are read of a folder; None reads all.

    Raises:
        UsageError: A folder has fewer runs, or several ranks of a job.
    """
    found: list[Trace] = []
    for path in paths:
        if runs == 1 or not Path(path).is_dir():
            found.append(trace_reading.read_only_trace(path, name_part=name_part))
        else:
            found += _read_runs_of_folder(path, name_part, runs)
    return found


def _read_runs_of_folder(path: str, name_part: str | None, runs: int | None) -> "list[Trace]":
    from selftime.ingest.job_ranks import identity_of_trace

    left = trace_reading.read_traces(path, name_part=name_part, reads_all=True)
    left = {name: one for name, one in left.items() if not one.facts.get("slow_step")}
    if len({identity_of_trace(one).rank for one in left.values()} - {None}) > 1:
        raise UsageError(
            f"`{path}` holds traces of several ranks; choose one with `--trace`, such as "
            "`--trace rank0`"
        )
    found: list[Trace] = []
    ordered = trace_reading.names_from_oldest_to_newest(left)
    while ordered and (runs is None or len(found) < runs):
        own = recordings_of_run(left, ordered[-1])
        found.append(left[answering_recording(left, ordered[-1])])
        left = {name: one for name, one in left.items() if name not in own}
        ordered = [name for name in ordered if name in left]
    if runs is not None and len(found) < runs:
        raise UsageError(
            f"`{path}` holds {len(found)} run{'' if len(found) == 1 else 's'}, and `--runs {runs}` "
            "asks for more; record the program again"
        )
    return found[::-1]


def read_baseline(paths: "Iterable[str | Path]", *, name_part: str | None = None) -> "Baseline":
    """Returns one baseline of baseline files, traces, ledgers, and all runs of folders."""
    from selftime.compare.check.baseline_files import Baseline, is_baseline_file, joined_baselines

    found = []
    for path in map(str, paths):
        if is_baseline_file(path):
            found.append(Baseline.read(Path(path)))
        else:
            found.append(Baseline.from_traces(*read_runs([path], name_part=name_part, runs=None)))
    return joined_baselines(found)

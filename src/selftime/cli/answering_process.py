"""Chooses among recordings of one program's processes the one that `selftime run` answers from."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # polars stays out until a command runs
    from selftime.trace import Trace


def answering_recording(traces: "Mapping[str, Trace]", newest: str) -> str:
    """Returns which recording of the run that the `newest` is of the answer is made from.

    Processes without ranks whose ledgers tell of the same moment are of one run. Of these the one
    that trained longest answers, else the one with the most time in steps, as in `selftime run`: a
    parent that tests what its children have trained ends last.
    """
    return max(recordings_of_run(traces, newest), key=lambda name: _step_times_ns(traces[name]))


def recordings_of_run(traces: "Mapping[str, Trace]", newest: str) -> list[str]:
    """Returns the names of the recordings of one run: the `newest`, and what ran at its time."""
    last = _interval_ns(traces[newest])
    if last is None:
        return [newest]
    of_run = [newest]
    for name, trace in traces.items():
        own = _interval_ns(trace)
        if own is not None and name != newest and own[0] < last[1] and last[0] < own[1]:
            of_run.append(name)
    return of_run


def _interval_ns(trace: "Trace") -> tuple[int, int] | None:
    """Returns begin and end of a process in ns since 1970; None if they are not known."""
    began_at = trace.run.began_at
    return None if began_at is None else (began_at, began_at + trace.run.wall_ns)


def _step_times_ns(trace: "Trace") -> tuple[int, int]:
    """Returns the time in training steps and in all steps of the run, in ns."""
    import polars as pl  # noqa: PLC0415 - a command loads what it needs when it runs

    steps = trace.run.segments.filter(pl.col("kind").is_not_null())
    is_training = steps["kind"].cast(pl.String).str.starts_with("training")
    return int(steps.filter(is_training)["duration"].sum()), int(steps["duration"].sum())

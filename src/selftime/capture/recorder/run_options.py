"""Defines what is recorded of a program, within which limits, and where it is written."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of a recording: what is recorded, the limits, and the output folder."""

    warmup: int | None = None
    """Number of the program's first steps to skip before recording; None waits until step
    durations are steady."""
    active: int = 5
    """Number of steps to record."""
    seconds: float = 60.0
    """Longest time to record, in seconds."""
    max_bytes: int = 512 << 20
    """Largest size of a trace before compression, in bytes; the size is estimated before
    recording."""
    hold: float = 1.0
    """Longest time in seconds that the program may stop while the profiler ends a recording
    (estimated); at least one step is recorded in any case."""
    with_stack: bool = True
    record_shapes: bool = True
    profile_memory: bool = False
    folder: Path = Path("selftime-runs")
    notify: Callable[[str], None] | None = None
    """Function that is called with each message to the user, one sentence at a time."""
    workers: bool = False
    """Whether to measure what DataLoader worker processes do."""
    is_light: bool = False
    """Whether to keep only the wall-time ledger of the run, without recording steps."""
    records_slow_steps: bool = False
    """Whether to record a slow step of a kind that comes again, after the main recording."""
    keeps_results: bool = False
    """Whether to keep what the program computes in its first rounds, to be compared."""
    seed: int | None = None
    """What the random generators are seeded with before the program; None leaves them alone."""
    trigger: str | None = None
    """Text that names what requests recordings, such as `file` or `signal`; None records once,
    without requests."""
    ranks: str | None = None
    """Ranks of a job to record, such as `0,7-9`; None records all. Every rank has a ledger."""

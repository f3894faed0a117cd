"""What `selftime run` records, how much of it, and where it puts it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The limits of a recording; steps are counted from the program's first."""

    warmup: int | None = None
    """Steps before the recorder is prepared; None lets them pass until they are steady."""
    active: int = 5
    """Steps that are recorded."""
    seconds: float = 60.0
    """Longest time for which anything is recorded."""
    max_bytes: int = 512 << 20
    """Largest trace, in bytes before compression, as far as it can be foreseen."""
    hold: float = 1.0
    """Longest time, in seconds, for which the end of a recording may hold the program, as far as it
    can be foreseen and a few steps are recorded all the same."""
    with_stack: bool = True
    record_shapes: bool = True
    profile_memory: bool = False
    folder: Path = Path("selftime-runs")
    notify: Callable[[str], None] | None = None
    """Told what happens, a sentence at a time."""
    workers: bool = False
    """Whether workers of DataLoaders record what they do."""
    trigger: str | None = None
    """What asks for a recording, as often as wanted (see `triggers`); None records once, soon."""

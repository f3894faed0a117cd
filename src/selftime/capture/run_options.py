"""What `selftime run` records, how much of it, and where it puts it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["RunOptions"]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The limits of a recording; steps are counted from the program's first."""

    warmup: int = 3
    """Steps before the recorder is prepared."""
    active: int = 5
    """Steps that are recorded."""
    seconds: float = 60.0
    """Longest time for which anything is recorded."""
    max_bytes: int = 512 << 20
    """Largest trace, in bytes before compression, as far as it can be foreseen."""
    with_stack: bool = True
    record_shapes: bool = True
    profile_memory: bool = False
    folder: Path = Path("selftime-runs")
    notify: Callable[[str], None] | None = None
    """Told what happens, a sentence at a time."""

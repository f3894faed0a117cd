"""One recording: what is known of it beside what torch holds."""

import os
import shutil
import tempfile
import weakref
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from selftime.capture.lines.operator_lines import OpenFrame

_HELD: Final = ("profiler", "_monitor_trace_window")
"""Attributes in which torch's profiler holds what it recorded."""


@dataclass(eq=False)
class Recording:
    """From a profiler's preparation to its stop; it may be kept while the next one is made."""

    steps: int = 0
    """Whole steps in it, where the program marks them."""
    partial: str | None = None
    """Why it ended before its time, if it did."""
    opened: list[OpenFrame] = field(default_factory=list)
    """Frames that ran when it began."""
    settings: dict[str, Any] | None = None
    usage: dict[str, Any] | None = None
    paging: dict[str, Any] = field(default_factory=dict)
    body: Path | None = None
    """The recorder's own JSON, once it was asked for."""
    facts: dict[str, Any] | None = None
    """What the trace lacks, once it was asked for."""
    _held: dict[str, Any] = field(default_factory=dict)
    _results: Any = None

    def forget(self) -> None:
        """Drop what was made from it, files too."""
        if self.body is not None:
            shutil.rmtree(self.body.parent, ignore_errors=True)
        self.body = self.facts = self.partial = None

    def hold(self, profiler: Any) -> None:
        """Remember what torch's profiler has recorded: its next recording replaces that."""
        state = vars(profiler)
        self._held = {name: state[name] for name in _HELD if name in state}
        self._results = profiler.profiler.kineto_results

    def restore(self, profiler: Any) -> None:
        """Let torch's profiler answer of this recording again."""
        vars(profiler).update(self._held)
        # Where the events of all cycles are accumulated, one object holds one after the other.
        profiler.profiler.kineto_results = self._results

    def folder(self) -> Path:
        """A new folder that goes with this recording or with this process, if that ends first."""
        folder = Path(tempfile.mkdtemp(prefix="selftime-"))
        weakref.finalize(self, _remove, folder, os.getpid())
        return folder


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:  # a child that was forked ends without its parent's folders
        shutil.rmtree(folder, ignore_errors=True)

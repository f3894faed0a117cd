"""What the processes of a timed program are told, and the times that they leave.

The same start-up folder as under `selftime run` makes every Python process look for its order in
one variable of the environment; see `program/startup/sitecustomize.py`. Each process that makes
steps leaves a file in a folder: a line of JSON, then the times as they lie in memory.
"""

import json
import os
from array import array
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from selftime._version import __version__
from selftime.capture.program.job import STARTUP, VARIABLE

_ONLY: Final = "times"
"""What tells this order from one to record."""
_ENDING: Final = ".times"


@dataclass(frozen=True, slots=True)
class StepTimes:
    """How long the steps of one process took, in its order."""

    process: int
    rank: int | None
    """Its rank, where it is part of a distributed job."""
    source: str
    """What told where steps end."""
    is_of_device: bool
    """Whether the device's clock was read at each boundary; else the host's was."""
    profiler: str | None
    """What recorded the program while it was timed; None if nothing did."""
    is_cut: bool
    """Whether more steps came than are kept."""
    durations: "array[int]"
    """In nanoseconds; the step that sets the program up is not among them."""
    unlike: bytes
    """1 for each step in which something happened that happens in few, else 0."""

    def write(self, folder: Path) -> None:
        """Leave the times in a folder, whole or not at all; nobody may be waiting for them."""
        head = {
            "process": self.process,
            "rank": self.rank,
            "source": self.source,
            "is_of_device": self.is_of_device,
            "profiler": self.profiler,
            "is_cut": self.is_cut,
            "steps": len(self.durations),
        }
        draft = folder / f"{self.process}.draft"
        with suppress(OSError), draft.open("wb") as file:
            file.write(json.dumps(head).encode() + b"\n")
            self.durations.tofile(file)
            file.write(self.unlike)
            draft.replace(draft.with_suffix(_ENDING))

    @classmethod
    def read(cls, path: Path) -> "StepTimes":
        with path.open("rb") as file:
            head = json.loads(file.readline())
            durations = array("q")
            count = head.pop("steps")
            durations.fromfile(file, count)
            return cls(**head, durations=durations, unlike=file.read(count))

    def last(self, count: int) -> "StepTimes":
        """The same of the last steps alone."""
        first = len(self.durations) - count
        return replace(self, durations=self.durations[first:], unlike=self.unlike[first:])


def ordered(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The environment in which a program is timed; its processes leave their times in `folder`."""
    order = {"version": __version__, "only": _ONLY, "folder": str(folder)}
    path = environment.get("PYTHONPATH")
    others = [] if not path else [p for p in path.split(os.pathsep) if p != str(STARTUP)]
    return {
        **environment,
        VARIABLE: json.dumps(order),
        "PYTHONPATH": os.pathsep.join([str(STARTUP), *others]),
    }


def unordered(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment in which a program is left alone, by a run around it too."""
    return {name: value for name, value in environment.items() if name != VARIABLE}


def folder_of_order() -> Path | None:
    """Where this process leaves its times; None if it is not to be timed."""
    try:
        order: Any = json.loads(os.environ.get(VARIABLE, ""))
        if order["version"] != __version__ or order.get("only") != _ONLY:
            return None
        return Path(order["folder"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def read_times(folder: Path) -> tuple[StepTimes, ...]:
    """What processes have left: by rank, and where there is none, most steps first."""
    found = [StepTimes.read(path) for path in folder.glob(f"*{_ENDING}")]
    return tuple(sorted(found, key=_order))


def _order(times: StepTimes) -> tuple[bool, int, int, int]:
    return times.rank is None, times.rank or 0, -len(times.durations), times.process


def read_reasons(folder: Path) -> tuple[str, ...]:
    """Why processes could not be timed, where they say so."""
    told = (json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json")))
    return tuple(one["reason"] for one in told if one.get("reason"))

"""Makes a program's processes write their step times to files, and reads the files.

As under `selftime run`, a start-up folder on `PYTHONPATH` makes every Python process read its
request from an environment variable; see `program/startup/sitecustomize.py`. Each process that
runs steps writes one file: a line of JSON, then durations and flags in binary.
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
from selftime.capture.program.run_channel import RUN_ENVIRONMENT_VARIABLE, STARTUP_FOLDER

_REQUEST_VALUE_FOR_TIMES_ONLY: Final = "times"
"""Value of the key `only` in the environment's JSON that makes a process time its steps without
recording."""
_STEP_TIMES_FILE_SUFFIX: Final = ".times"


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Durations of the steps of one process, in the order of the steps."""

    process: int
    """Process id of the timed process."""
    rank: int | None
    """Rank of the process in a distributed job; None outside of one."""
    source: str
    """What marked the ends of steps, such as `optimizer steps`."""
    is_device_clock: bool
    """Whether the device's clock measured the durations; False for the host's clock."""
    profiler: str | None
    """Name of another profiler that recorded the program during the timing; None if none did."""
    is_truncated: bool
    """Whether the program made more steps than were stored."""
    durations: "array[int]"
    """Durations of the steps in ns, without the first step, which includes the setup."""
    unusual: bytes
    """One byte per step: 1 for an unusual step, such as one with an evaluation, else 0."""

    def write_file(self, folder: Path) -> None:
        """Writes the times to a file in `folder`, completely or not at all; ignores OS errors."""
        header = {
            "process": self.process,
            "rank": self.rank,
            "source": self.source,
            "is_device_clock": self.is_device_clock,
            "profiler": self.profiler,
            "is_truncated": self.is_truncated,
            "steps": len(self.durations),
        }
        draft = folder / f"{self.process}.draft"
        with suppress(OSError), draft.open("wb") as file:
            file.write(json.dumps(header).encode() + b"\n")
            self.durations.tofile(file)
            file.write(self.unusual)
            draft.replace(draft.with_suffix(_STEP_TIMES_FILE_SUFFIX))

    @classmethod
    def read_file(cls, path: Path) -> "StepTimes":
        with path.open("rb") as file:
            header = json.loads(file.readline())
            durations = array("q")
            count = header.pop("steps")
            durations.fromfile(file, count)
            return cls(**header, durations=durations, unusual=file.read(count))

    def last_steps(self, count: int) -> "StepTimes":
        """Returns a copy with only the last `count` steps."""
        first = len(self.durations) - count
        return replace(self, durations=self.durations[first:], unusual=self.unusual[first:])


def timing_environment(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Returns environment variables that make processes write their step times to `folder`."""
    request = {"version": __version__, "only": _REQUEST_VALUE_FOR_TIMES_ONLY, "folder": str(folder)}
    path = environment.get("PYTHONPATH")
    others = [] if not path else [p for p in path.split(os.pathsep) if p != str(STARTUP_FOLDER)]
    return {
        **environment,
        RUN_ENVIRONMENT_VARIABLE: json.dumps(request),
        "PYTHONPATH": os.pathsep.join([str(STARTUP_FOLDER), *others]),
    }


def untimed_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns `environment` without the variables that make processes record or time steps."""
    return {name: value for name, value in environment.items() if name != RUN_ENVIRONMENT_VARIABLE}


def requested_step_times_folder() -> Path | None:
    """Returns the folder to write this process's step times to; None if it is not timed."""
    try:
        request: Any = json.loads(os.environ.get(RUN_ENVIRONMENT_VARIABLE, ""))
        if (
            request["version"] != __version__
            or request.get("only") != _REQUEST_VALUE_FOR_TIMES_ONLY
        ):
            return None
        return Path(request["folder"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def read_step_times(folder: Path) -> tuple[StepTimes, ...]:
    """Returns the step times of all processes, sorted by rank, then by number of steps."""
    found = [StepTimes.read_file(path) for path in folder.glob(f"*{_STEP_TIMES_FILE_SUFFIX}")]
    return tuple(sorted(found, key=_sort_key_by_rank_and_step_count))


def _sort_key_by_rank_and_step_count(times: StepTimes) -> tuple[bool, int, int, int]:
    return times.rank is None, times.rank or 0, -len(times.durations), times.process


def read_failure_reasons(folder: Path) -> tuple[str, ...]:
    """Returns one sentence for each process that could not be timed, with the reason."""
    files = (json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json")))
    return tuple(content["reason"] for content in files if content.get("reason"))

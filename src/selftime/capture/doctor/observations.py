"""Defines the data that `selftime doctor` collects on a machine, and the results of its checks."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from selftime.capture.doctor.probe_process import ProbeResults


@dataclass(frozen=True, slots=True)
class ExaminedMachine:
    """Gives access to a machine's files, by names relative to `root`, and environment variables."""

    root: Path = Path("/")
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    working_folder: Path = field(default_factory=Path.cwd)
    """The folder in which `selftime doctor` was started; it usually contains the user's
    programs."""

    def read_text(self, name: str) -> str | None:
        """Returns the text of a file; None if it does not exist or may not be read."""
        try:
            return (self.root / name).read_text(encoding="utf-8", errors="replace").strip("\0\n")
        except OSError:
            return None

    def file_exists(self, name: str) -> bool:
        try:
            return (self.root / name).exists()
        except OSError:  # a parent folder may not be entered
            return False

    def is_file_accessible(self, name: str) -> bool:
        """Returns whether this process may read and write a file, such as a device file."""
        return os.access(self.root / name, os.R_OK | os.W_OK)

    def find_files(self, pattern: str) -> list[Path]:
        """Returns the files that match a pattern, sorted; empty if a folder may not be read."""
        try:
            return sorted(self.root.glob(pattern))
        except OSError:
            return []

    def read_named_values(self, name: str) -> dict[str, str]:
        """Returns {name: value} from a file with lines `name: value`; empty if it is unreadable."""
        lines = (line.partition(":") for line in (self.read_text(name) or "").splitlines())
        return {key.strip(): value.strip() for key, mark, value in lines if mark}

    def search_path_folders(self, variable: str) -> Iterator[Path]:
        """Yields the folders in an environment variable that is a search path, such as PATH."""
        for part in self.environment.get(variable, "").split(os.pathsep):
            if part:
                yield (
                    self.root / part.lstrip("/")
                    if part.startswith("/")
                    else self.working_folder / part
                )


class FindingState(str, Enum):
    """The outcome of one check of `selftime doctor`."""

    ok = "ok"
    warning = "warning"
    """Programs can be recorded, but recordings are slower, incomplete or may fail."""
    problem = "problem"
    """Programs cannot be recorded, or only without device work."""
    unknown = "unknown"
    """The check could not determine whether there is a problem."""


class FindingSubject(str, Enum):
    """The topic of a check of `selftime doctor`; the report groups the results by topic."""

    pytorch = "PyTorch"
    recording = "Recording"
    device = "Device"
    machine = "Machine"


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """The result of one check of `selftime doctor`: its outcome, what was found, what to do."""

    check: str
    subject: FindingSubject
    state: FindingState
    seen: str
    """What the check found, as a phrase for the user."""
    cure: str | None = None
    """What the user can do; None if there is nothing to do."""


@dataclass(frozen=True, slots=True)
class MachineObservations:
    """Data on a machine for the checks of `selftime doctor`, with results of test programs."""

    machine: ExaminedMachine
    host: ProbeResults = field(default_factory=ProbeResults)
    """Results of the test programs `build` (PyTorch's version) and `host` (a CPU recording)."""
    workers: ProbeResults = field(default_factory=ProbeResults)
    devices: ProbeResults = field(default_factory=ProbeResults)
    """Results of the test programs `devices` (list of devices) and `kernel` (a device
    recording)."""

"""All that the checks look at: the place, and what the trials told."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from selftime.capture.doctor.probing import Trial


@dataclass(frozen=True, slots=True)
class Place:
    """A machine as its files show it; `root` is the folder that they lie in."""

    root: Path = Path("/")
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    folder: Path = field(default_factory=Path.cwd)
    """Where the command was called, and programs are."""

    def text(self, name: str) -> str | None:
        """The text of a file; None if there is none, or it may not be read."""
        try:
            return (self.root / name).read_text(encoding="utf-8", errors="replace").strip("\0\n")
        except OSError:
            return None

    def is_there(self, name: str) -> bool:
        try:
            return (self.root / name).exists()
        except OSError:  # a folder on the way may not be entered
            return False

    def may_use(self, name: str) -> bool:
        """Whether this process may read and write a file, such as that of a device."""
        return os.access(self.root / name, os.R_OK | os.W_OK)

    def listed(self, pattern: str) -> list[Path]:
        """Files by a pattern, in alphabetical order; those that may not be seen are left out."""
        try:
            return sorted(self.root.glob(pattern))
        except OSError:
            return []

    def values(self, name: str) -> dict[str, str]:
        """The values of a file of lines `name: value`."""
        lines = (line.partition(":") for line in (self.text(name) or "").splitlines())
        return {key.strip(): value.strip() for key, mark, value in lines if mark}

    def folders(self, variable: str) -> Iterator[Path]:
        """The folders in an environment variable that holds a search path."""
        for part in self.environment.get(variable, "").split(os.pathsep):
            if part:
                yield self.root / part.lstrip("/") if part.startswith("/") else self.folder / part


class State(str, Enum):
    """Whether something stands in the way of a recording."""

    ok = "ok"
    warning = "warning"
    """Recordings work, and are slower, poorer or in danger."""
    problem = "problem"
    """Nothing can be recorded, or a device is there and cannot be."""
    unknown = "unknown"
    """It could not be found out."""


class Subject(str, Enum):
    """What a check looks at; text is grouped by it."""

    pytorch = "PyTorch"
    recording = "Recording"
    device = "Device"
    machine = "Machine"


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer of one check."""

    check: str
    subject: Subject
    state: State
    seen: str
    cure: str | None = None
    """What to do; None where there is nothing to."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A trial that was not made is empty."""

    place: Place
    host: Trial = field(default_factory=Trial)
    """Stages `build` and `host`."""
    workers: Trial = field(default_factory=Trial)
    devices: Trial = field(default_factory=Trial)
    """Stages `devices` and `kernel`."""

"""Where a program would run: the files by which Linux tells of itself, and the environment."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path


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

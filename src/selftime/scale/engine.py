"""Declares the interface of engines, which run a function on many files in several processes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

T = TypeVar("T")

MAX_READ_ATTEMPTS_PER_FILE: Final = 3
"""Number of times that a file is read if the reading process ends unexpectedly."""


@dataclass(frozen=True, slots=True)
class FileLostByReader:
    """Result for a file that could not be read: each process that read it ended unexpectedly."""

    path: str

    @property
    def why(self) -> str:
        """Returns a sentence that says why the file could not be read."""
        return (
            f"`{self.path}` was given up: the process that read it ended "
            f"{MAX_READ_ATTEMPTS_PER_FILE} times, perhaps out of memory; "
            "use fewer workers, or machines with more memory"
        )


class Engine(Protocol):
    """Interface of engines, which run a function on many files in processes that they start."""

    def map(
        self, task: Callable[[str], T], paths: Sequence[str]
    ) -> Iterator[tuple[str, "T | FileLostByReader"]]:
        """Runs the task on each file; yields (path, result) in order of completion.

        Args:
            task: A function that a fresh interpreter can import, or a `partial` of one. It is
                called again for a file whose process ended. Its exceptions are raised here.
            paths: Paths or addresses.
        """
        ...


def is_in_process_memory(path: str) -> bool:
    """Returns whether a path is a URL of data that exists only in the current process."""
    return path.startswith("memory://")

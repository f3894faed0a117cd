"""The interface of engines: a task is mapped over files, one file at a time in each process."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

T = TypeVar("T")

ATTEMPTS: Final = 3
"""Attempts at reading a file before it is given up."""


@dataclass(frozen=True, slots=True)
class LostFile:
    """A file whose reading process ended in every attempt."""

    place: str

    @property
    def why(self) -> str:
        return (
            f"`{self.place}` was given up: the process that read it ended {ATTEMPTS} times, "
            "perhaps out of memory; use fewer workers, or machines with more memory"
        )


class Engine(Protocol):
    """Maps a task over files."""

    def map(
        self, task: Callable[[str], T], places: Sequence[str]
    ) -> Iterator[tuple[str, "T | LostFile"]]:
        """Yields each file with the task's result, once, in order of completion.

        Args:
            task: A function that a fresh interpreter can import, or a `partial` of one. It is
                called again for a file whose process ended. Its exceptions are raised here.
            places: Paths or addresses.
        """
        ...


def is_in_process_memory(place: str) -> bool:
    """Returns whether an address is visible only to the current process."""
    return place.startswith("memory://")

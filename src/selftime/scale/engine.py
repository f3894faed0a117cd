"""What every engine is: a task, mapped over files, one file at a time in each of its processes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

T = TypeVar("T")

TRIES: Final = 3
"""How often a file is given to a process before it is given up."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A file at which the process that read it ended, each time."""

    place: str

    @property
    def why(self) -> str:
        return (
            f"`{self.place}` was given up: the process that read it ended {TRIES} times, perhaps "
            "for lack of memory; use fewer workers, or machines with more memory"
        )


class Engine(Protocol):
    """Maps a task over files."""

    def map(
        self, task: Callable[[str], T], places: Sequence[str]
    ) -> Iterator[tuple[str, "T | Lost"]]:
        """Each file with the task's answer, once, in the order in which they come.

        Args:
            task: A function that a fresh interpreter can import, or a `partial` of one. It is
                called again for a file whose process ended. What it raises is raised here.
            places: Paths or addresses.
        """
        ...


def is_private(place: str) -> bool:
    """Whether what lies at an address can be seen by the process alone that asks."""
    return place.startswith("memory://")

"""Arrows between events: kept where both of their ends are, wherever in the file they stand."""

from collections.abc import Iterator
from typing import Final

ENDS: Final = "stf"
"""Phases of an arrow's points: its begin, a step on the way, its end."""


class Arrows:
    """Holds back an arrow's points until it has a begin and an end."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, bytes], list[bytes]] = {}
        self._seen: dict[tuple[str, bytes], set[str]] = {}

    def add(self, group: tuple[str, bytes], phase: str, text: bytes) -> Iterator[bytes]:
        """Take a point; give those that can be written now."""
        seen = self._seen.setdefault(group, set())
        seen.add(phase)
        waiting = self._waiting.setdefault(group, [])
        waiting.append(text)
        if {"s", "f"} <= seen:
            yield from waiting
            waiting.clear()

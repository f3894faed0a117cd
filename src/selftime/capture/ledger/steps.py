"""Stores the segments of a run (setup, each step, end) as columns of numbers."""

from array import array
from typing import Any


class SegmentColumns:
    """Segments of a run not yet written: start, duration (ns), kind and times by activity."""

    def __init__(self) -> None:
        self.start = array("q")
        self.duration = array("q")
        self.kind = array("i")
        self.counted: dict[str, list[tuple[int, int]]] = {}
        """Maps each activity to pairs (row, time in ns) of the segments in which its time is not
        0."""

    def __len__(self) -> int:
        return len(self.start)

    def append(self, start: int, duration: int, kind: int, counted: dict[str, int]) -> None:
        """Adds a segment; `counted` holds {activity: time in ns} for times that are not 0."""
        if counted:
            row = len(self.start)
            for name, value in counted.items():
                self.counted.setdefault(name, []).append((row, value))
        self.start.append(start)
        self.duration.append(duration)
        self.kind.append(kind)

    def as_json(self) -> dict[str, Any]:
        """Returns {column name: list of values}, without columns in which all values are 0."""
        columns = {"start": self.start, "duration": self.duration, "kind": self.kind}
        told = {name: column.tolist() for name, column in columns.items()}
        for name, values in self.counted.items():
            column = array("q", bytes(8 * len(self)))
            for row, value in values:
                column[row] = value
            told[name] = column.tolist()
        return told

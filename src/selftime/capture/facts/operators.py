"""What only the recorder's own list of events knows of operators.

The trace lacks FLOPs, overload names and the threads on which an operator began and ended; torch's
tables need them.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from torch._C._autograd import _KinetoEvent


@dataclass(slots=True)
class Operators:
    """Properties of operators, by External id."""

    overloads: dict[int, str] = field(default_factory=dict)
    flops: dict[int, int] = field(default_factory=dict)
    changed_thread: list[int] = field(default_factory=list)
    forward: dict[int, int] = field(default_factory=dict)
    """The forward operator of each backward node and record."""

    def columns(self) -> dict[str, Any]:
        return {
            "id": list(self.overloads),
            "overload": list(self.overloads.values()),
            "async": self.changed_thread,
            "flops": {"id": list(self.flops), "value": list(self.flops.values())},
        }


def read_operators(events: Iterable[_KinetoEvent]) -> Operators:
    """Read each event once; the objects behind them are slow."""
    found = Operators()
    pairs = _Pairs()
    for event in events:
        number = event.correlation_id()
        if not number or event.is_python_function() or event.linked_correlation_id():
            continue
        thread = event.start_thread_id()
        if event.is_async() or thread != event.end_thread_id():
            found.changed_thread.append(number)
        if flops := event.flops():
            found.flops[number] = flops
        overload = event.overload_name()
        if overload and not event.name().endswith("." + overload):
            found.overloads[number] = overload
        sequence = event.sequence_nr()
        if sequence >= 0:
            pairs.add(event, number, sequence)
    found.forward = pairs.forward()
    return found


@dataclass(slots=True)
class _Pairs:
    """Operators and backward nodes by the forward thread and the number that they share."""

    made: dict[tuple[int, int], list[tuple[int, int]]] = field(default_factory=dict)
    nodes: list[tuple[tuple[int, int], int, int]] = field(default_factory=list)

    def add(self, event: _KinetoEvent, number: int, sequence: int) -> None:
        if forward_thread := event.fwd_thread_id():
            self.nodes.append(((forward_thread, sequence), event.start_ns(), number))
        else:
            row = (event.start_ns(), number)
            self.made.setdefault((event.start_thread_id(), sequence), []).append(row)

    def forward(self) -> dict[int, int]:
        for rows in self.made.values():
            rows.sort()
        found = {}
        for key, start, number in self.nodes:
            rows = self.made.get(key, [])
            # Operators that make no node carry the next number too: the last of them made it.
            at = bisect_left(rows, (start, -1))
            if at:
                found[number] = rows[at - 1][1]
        return found

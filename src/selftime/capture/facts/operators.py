"""Reads properties of operators, such as overload names, that the trace file lacks.

These are FLOPs, overload names, and whether an operator ended on another thread; torch's tables
need them.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from torch._C._autograd import _KinetoEvent


@dataclass(slots=True)
class OperatorFacts:
    """Properties of operators that the trace file lacks, by the trace's number `External id`."""

    overloads: dict[int, str] = field(default_factory=dict)
    flops: dict[int, int] = field(default_factory=dict)
    changed_thread: list[int] = field(default_factory=list)
    """External ids of operators that are asynchronous or that ended on a thread other than their
    first."""
    forward_operator: dict[int, int] = field(default_factory=dict)
    """Maps the External id of each autograd backward node to that of its forward operator."""

    def columns(self) -> dict[str, Any]:
        return {
            "id": list(self.overloads),
            "overload": list(self.overloads.values()),
            "async": self.changed_thread,
            "flops": {"id": list(self.flops), "value": list(self.flops.values())},
        }


def read_operator_facts(events: Iterable[_KinetoEvent]) -> OperatorFacts:
    """Returns the properties of all operators, from one pass over the profiler's events."""
    found = OperatorFacts()
    pairs = _ForwardOperatorMatching()
    for event in events:
        operator_id = event.correlation_id()
        if not operator_id or event.is_python_function() or event.linked_correlation_id():
            continue
        thread = event.start_thread_id()
        if event.is_async() or thread != event.end_thread_id():
            found.changed_thread.append(operator_id)
        if flops := event.flops():
            found.flops[operator_id] = flops
        overload = event.overload_name()
        if overload and not event.name().endswith("." + overload):
            found.overloads[operator_id] = overload
        sequence = event.sequence_nr()
        if sequence >= 0:
            pairs.add_operator(event, operator_id, sequence)
    found.forward_operator = pairs.forward_operator_id_by_backward_node_id()
    return found


@dataclass(slots=True)
class _ForwardOperatorMatching:
    """Matches backward nodes to forward operators by thread and autograd sequence number."""

    forward_operators: dict[tuple[int, int], list[tuple[int, int]]] = field(default_factory=dict)
    """Maps (thread, sequence number) to a list of (start in ns, External id) of forward
    operators."""
    backward_nodes: list[tuple[tuple[int, int], int, int]] = field(default_factory=list)
    """((forward thread, sequence number), start in ns, External id) of each backward node."""

    def add_operator(self, event: _KinetoEvent, operator_id: int, sequence: int) -> None:
        if forward_thread := event.fwd_thread_id():
            self.backward_nodes.append(((forward_thread, sequence), event.start_ns(), operator_id))
        else:
            row = (event.start_ns(), operator_id)
            self.forward_operators.setdefault((event.start_thread_id(), sequence), []).append(row)

    def forward_operator_id_by_backward_node_id(self) -> dict[int, int]:
        for rows in self.forward_operators.values():
            rows.sort()
        found = {}
        for key, start, operator_id in self.backward_nodes:
            rows = self.forward_operators.get(key, [])
            # Operators without a backward node carry the next sequence number too: the last
            # operator with the number created the node.
            position = bisect_left(rows, (start, -1))
            if position:
                found[operator_id] = rows[position - 1][1]
        return found

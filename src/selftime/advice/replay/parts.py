"""Which threads of the host take turns, so that they are one serial program, and which do not."""

from typing import Final

import numpy as np

from selftime import names
from selftime.intervals import Intervals, intersect, length, union
from selftime.trace import Trace
from selftime.views.accounts.named import is_named, of_kind

__all__ = ["serial_parts"]

_TURNS: Final = 0.1
"""Threads that work at once for less than this share of the lesser one's time take turns.

Autograd's thread works while the one that called `backward` waits for it.
"""


def serial_parts(trace: Trace, threads: list[int]) -> dict[int, int]:
    """The number of the serial part that each of the threads belongs to, 0 for the busiest."""
    host = of_kind(trace, "host", ended=True)
    working = host["category"].is_in(list(names.CALLS)).to_numpy() | is_named(host, _works)
    thread = trace.tracks["thread"].gather(host["track"]).to_numpy()[working]
    start = host["start"].to_numpy()[working]
    end = start + host["duration"].to_numpy()[working]
    busy = {t: union(start[mine], end[mine]) for t in threads for mine in [thread == t]}
    parts: list[Intervals] = []
    found: dict[int, int] = {}
    for t in sorted(threads, key=lambda t: (-length(busy[t]), t)):
        own = busy[t]
        for number, part in enumerate(parts):
            if length(intersect(own, part)) <= _TURNS * min(length(own), length(part)):
                found[t] = number
                starts = np.concatenate([part.starts, own.starts])
                parts[number] = union(starts, np.concatenate([part.ends, own.ends]))
                break
        else:
            found[t] = len(parts)
            parts.append(own)
    return found


def _works(name: str) -> bool:
    """Whether a slice is work of its thread, and not a mark around what others may do."""
    return names.is_library_operator(name) or names.is_backward_node(name)

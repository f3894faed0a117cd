"""What the segments of a critical path are, and what lets one begin."""

from typing import Final

KINDS: Final = (
    "compute",
    "communication",
    "copy",
    "latency",
    "data",
    "gc",
    "host",
    "unknown",
)
"""Kinds of segments: kernels; collectives; copies and fills; the time from a launch, or from the
end of what came before, to the begin of device work; waits for data; garbage collection; all else
that the host does; and waits of device work for what the trace does not tell."""
CODE: Final = {kind: code for code, kind in enumerate(KINDS)}

LINKS: Final = (
    "begin",
    "stream",
    "launch",
    "event",
    "inferred",
    "wait",
    "thread",
    "host",
    "unknown",
)
"""What let a segment begin: the recording; the work before it on its stream; its launch; work of
another stream, by an event that the trace records; such work, as its end alone shows; device work
that the host waited for; another thread; what its thread did before; or nothing that is known."""
LINK: Final = {link: code for code, link in enumerate(LINKS)}

SLACK: Final = 20_000
"""What waits for an end goes on within this of it, in ns: between kernels of one stream lie 1 us, a
launch onto an idle one takes 3 to 10, and the clocks of host and device agree to a few."""

NEVER: Final = -(1 << 62)
"""Before any instant of a trace: when what is not known to have been was."""

"""Names the kinds of critical path segments, and the reasons why a segment begins."""

from typing import Final

PATH_SEGMENT_KINDS: Final = (
    "compute",
    "communication",
    "copy",
    "latency",
    "data",
    "gc",
    "host",
    "unknown",
)
"""Kinds of critical path segments: kernels; collectives; copies and fills; the time from a launch,
or from the end of earlier work, to the begin of device work; waits for data; garbage collection;
everything else that the host does; and waits of device work whose cause the trace does not record.
"""
CODE_OF_SEGMENT_KIND: Final = {kind: code for code, kind in enumerate(PATH_SEGMENT_KINDS)}
"""Maps the kind of a critical path segment to its code in arrays."""

SEGMENT_LINK_KINDS: Final = (
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
"""Why a critical path segment began: the recording began; the previous work of its stream ended; it
was launched; work of another stream ended, by a recorded event, or inferred from its end; device
work ended that the host waited for; another thread continued; its thread finished earlier work; or
unknown.
"""
CODE_OF_SEGMENT_LINK: Final = {link: code for code, link in enumerate(SEGMENT_LINK_KINDS)}
"""Maps the reason why a critical path segment began to its code in arrays."""

MAX_REACTION_AFTER_WAIT_NS: Final = 20_000
"""Longest normal delay, in ns, between the end of work and the begin of what waited for it. Kernels
of one stream are 1 us apart, a launch onto an idle stream takes 3 to 10 us, and the clocks of host
and device agree within a few us.
"""

TIME_BEFORE_RECORDING_NS: Final = -(1 << 62)
"""Time in ns that lies before any trace; it stands for events that are not known to have happened.
"""

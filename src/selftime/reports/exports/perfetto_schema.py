"""The numbers of the fields of Perfetto's trace format that are written.

Format: `perfetto_trace.proto`, package perfetto.protos. Numbers never change.
"""

from typing import Final

PACKET: Final = 1
"""Of Trace."""

CLOCK_SNAPSHOT: Final = 6
TIMESTAMP: Final = 8
SEQUENCE_ID: Final = 10
TRACK_EVENT: Final = 11
INTERNED: Final = 12
FLAGS: Final = 13
TRACK: Final = 60
"""Of TracePacket."""

CLEARED: Final = 1
NEEDS_STATE: Final = 2
"""Flags: what was interned before holds no more; what was interned is referred to."""

CATEGORY_IID: Final = 3
ANNOTATION: Final = 4
TYPE: Final = 9
NAME_IID: Final = 10
TRACK_UUID: Final = 11
COUNTER_VALUE: Final = 30
DOUBLE_COUNTER_VALUE: Final = 44
FLOW: Final = 47
FLOW_END: Final = 48
"""Of TrackEvent."""

BEGIN: Final = 1
END: Final = 2
INSTANT: Final = 3
COUNTER: Final = 4
"""Types of a TrackEvent."""

INTERNED_CATEGORY: Final = 1
INTERNED_NAME: Final = 2
INTERNED_ANNOTATION: Final = 3
INTERNED_TEXT: Final = 29
"""Of InternedData; each has an iid, 1, and a name or text, 2."""

ANNOTATION_NAME: Final = 1
ANNOTATION_INT: Final = 4
ANNOTATION_DOUBLE: Final = 5
ANNOTATION_LISTED: Final = 12
ANNOTATION_TEXT: Final = 17
"""Of DebugAnnotation."""

UUID: Final = 1
NAME: Final = 2
PROCESS: Final = 3
THREAD: Final = 4
PARENT: Final = 5
COUNTERS: Final = 8
MERGING: Final = 15
"""Of TrackDescriptor."""

APART: Final = 2
"""Of its behaviours towards siblings: one of the same name stays a track of its own."""

PROCESS_ID: Final = 1
PROCESS_NAME: Final = 6
"""Of ProcessDescriptor."""

THREAD_PROCESS: Final = 1
THREAD_ID: Final = 2
THREAD_NAME: Final = 5
"""Of ThreadDescriptor."""

COUNTER_UNIT: Final = 3
SIZE_BYTES: Final = 3
"""Of CounterDescriptor, and one of its units."""

CLOCK: Final = 1
CLOCK_ID: Final = 1
CLOCK_TIME: Final = 2
"""Of ClockSnapshot and of its clocks."""

REALTIME: Final = 1
BOOTTIME: Final = 6
"""Clocks: since the epoch; the one that timestamps are of."""

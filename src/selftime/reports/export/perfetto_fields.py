"""Numbers of fields and enum values in the protocol-buffer messages of Perfetto's trace format.

See <https://perfetto.dev/docs/reference/trace-packet-proto>.
"""

from typing import Final

TRACE_PACKET_FIELD: Final = 1
"""Number of the field `packet` of Perfetto's message `Trace`."""


class TracePacketField:
    """Field numbers of Perfetto's message `TracePacket`."""

    CLOCK_SNAPSHOT: Final = 6
    TIMESTAMP: Final = 8
    SEQUENCE_ID: Final = 10
    TRACK_EVENT: Final = 11
    INTERNED: Final = 12
    FLAGS: Final = 13
    TRACK: Final = 60


class SequenceFlags:
    """Bits of a packet's `sequence_flags`: whether it clears, or uses, interned texts."""

    STATE_CLEARED: Final = 1
    """Texts that earlier packets of the sequence defined are invalid from here on."""
    NEEDS_STATE: Final = 2
    """The packet refers to texts that earlier packets of the sequence defined."""


class TrackEventField:
    """Field numbers of Perfetto's message `TrackEvent`."""

    CATEGORY_IID: Final = 3
    ANNOTATION: Final = 4
    TYPE: Final = 9
    NAME_IID: Final = 10
    TRACK_UUID: Final = 11
    COUNTER_VALUE: Final = 30
    DOUBLE_COUNTER_VALUE: Final = 44
    FLOW: Final = 47
    FLOW_END: Final = 48


class TrackEventType:
    """Values of the field `type` of Perfetto's message `TrackEvent`."""

    BEGIN: Final = 1
    END: Final = 2
    INSTANT: Final = 3
    COUNTER: Final = 4


class InternedDataField:
    """Field numbers of Perfetto's message `InternedData`, which gives numbers to texts.

    Each entry has an id, field 1, and a text, field 2.
    """

    CATEGORY: Final = 1
    NAME: Final = 2
    ANNOTATION: Final = 3
    TEXT: Final = 29


class DebugAnnotationField:
    """Field numbers of Perfetto's message `DebugAnnotation`, an argument of an event."""

    NAME: Final = 1
    INT: Final = 4
    DOUBLE: Final = 5
    ARRAY: Final = 12
    TEXT: Final = 17


class TrackDescriptorField:
    """Field numbers of Perfetto's message `TrackDescriptor`."""

    UUID: Final = 1
    NAME: Final = 2
    PROCESS: Final = 3
    THREAD: Final = 4
    PARENT: Final = 5
    COUNTER: Final = 8
    SIBLING_MERGE_BEHAVIOR: Final = 15
    NEVER_MERGE: Final = 2
    """Value of the field `sibling_merge_behavior`: tracks of equal names stay separate."""


class ProcessDescriptorField:
    """Field numbers of Perfetto's message `ProcessDescriptor`."""

    ID: Final = 1
    NAME: Final = 6


class ThreadDescriptorField:
    """Field numbers of Perfetto's message `ThreadDescriptor`."""

    PROCESS_ID: Final = 1
    ID: Final = 2
    NAME: Final = 5


class CounterDescriptorField:
    """Field numbers of Perfetto's message `CounterDescriptor`."""

    UNIT: Final = 3
    BYTES: Final = 3
    """Value of the field `unit` for counters in bytes."""


class ClockSnapshotField:
    """Field numbers of Perfetto's message `ClockSnapshot`."""

    CLOCK: Final = 1


class ClockField:
    """Field numbers of Perfetto's message `ClockSnapshot.Clock`."""

    CLOCK_ID: Final = 1
    CLOCK_TIMESTAMP: Final = 2


class ClockId:
    """Ids of the clocks that Perfetto defines."""

    REALTIME: Final = 1
    """Id of the clock that counts the time since the epoch."""
    BOOTTIME: Final = 6
    """Id of the clock that the packets' timestamps are read from."""

"""Declares every table of a trace, column by column.

Documentation, the terminal, JSON and the page are generated from these declarations, and a test
checks the tables against them. `nullable` columns are null where the trace has no value: unknown is
never zero.
"""

from dataclasses import dataclass
from typing import Final

import polars as pl

from selftime.units import Unit


@dataclass(frozen=True, slots=True)
class Column:
    """Declares a table's column: name, polars dtype, unit, description, and whether nulls occur."""

    name: str
    dtype: pl.DataType | type[pl.DataType]
    unit: Unit
    doc: str
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Declares one table: its name, its description, and its columns in order."""

    name: str
    doc: str
    columns: tuple[Column, ...]

    @property
    def dtypes(self) -> dict[str, pl.DataType | type[pl.DataType]]:
        """Returns {column name: polars dtype} for all columns of the table."""
        return {column.name: column.dtype for column in self.columns}

    def empty(self) -> pl.DataFrame:
        """Returns a DataFrame with all columns of the table and no rows."""
        return pl.DataFrame(schema=self.dtypes)


NameType: Final = pl.Categorical()
"""The polars dtype of columns with names: text, each distinct value stored once."""

UNKNOWN_TIME_FAULT: Final = "no time: kept, but not in totals"
"""Text in the repair report for events without a known time; they are put at the start of the
trace and not added to total times."""

TRACK_KINDS: Final = (
    "host",
    "python",
    "device",
    "device annotation",
    "device sync",
    "profiler",
    "other",
)
"""Kinds of timeline tracks: host operators and calls, Python frames, device work, device
annotations, and others."""

SLICES: Final = Table(
    "slices",
    "One row for each event with a duration, on the host or on a device, ordered by start.",
    (
        Column("id", pl.UInt32, "id", "The slice's number: slices are ordered by start."),
        Column("category", NameType, "name", "Event category, by its current lower-case name."),
        Column("name", NameType, "name", "The event's name as the trace writes it."),
        Column("track", pl.UInt32, "id", "The id of the track that shows the slice."),
        Column("start", pl.Int64, "instant", "The start of the event, since the trace's origin."),
        Column("duration", pl.Int64, "ns", "The event's duration; null if end unknown.", True),
        Column("parent", pl.UInt32, "id", "The id of the innermost enclosing slice.", True),
        Column("depth", pl.UInt16, "count", "The number of enclosing slices on its track."),
        Column("self", pl.Int64, "ns", "Time in the slice outside the slices within it.", True),
        Column("launch", pl.UInt32, "id", "For device work: slice id of its host launch.", True),
    ),
)

TRACKS: Final = Table(
    "tracks",
    "One row for each track: a host thread's operators, its Python frames, a stream.",
    (
        Column("id", pl.UInt32, "id", "The number of the track."),
        Column("kind", pl.Enum(TRACK_KINDS), "name", "The kind of slices on the track."),
        Column("thread", pl.UInt32, "id", "Number shared by all tracks of a process's thread."),
        Column("process", pl.String, "text", "The process's id as the trace writes it."),
        Column("tid", pl.String, "text", "The thread's or stream's id, as the trace writes it."),
        Column("name", pl.String, "text", "The thread's name, if the trace gives one.", True),
        Column("process_name", pl.String, "text", "The process's name or label.", True),
        Column("device", pl.Int32, "id", "Number of the device; null for a host track.", True),
        Column("stream", pl.Int64, "id", "Number of the stream; null for a host track.", True),
    ),
)

OP_ARGS: Final = Table(
    "op_args",
    "Arguments of operators and annotations.",
    (
        Column("id", pl.UInt32, "id", "The slice id of the operator or annotation."),
        Column("external_id", pl.Int64, "id", "The operator's id in the recording.", True),
        Column("sequence", pl.Int64, "id", "Autograd's sequence number of the operator.", True),
        Column(
            "forward_thread", pl.Int64, "id", "Thread of the forward operator; 0 if forward.", True
        ),
        Column("forward", pl.UInt32, "id", "For backward operators: the forward slice id.", True),
        Column("frame", pl.UInt32, "id", "Innermost Python frame around the operator.", True),
        Column("module", pl.UInt32, "id", "Slice id of the innermost nn.Module frame.", True),
        Column("input_shapes", NameType, "text", "Sizes of operator inputs, as JSON text.", True),
        Column("input_types", NameType, "text", "Dtypes of operator inputs, as JSON text.", True),
        Column("input_strides", NameType, "text", "Strides of operator inputs, as JSON.", True),
        Column("concrete_inputs", NameType, "text", "Values of scalar inputs, as JSON.", True),
        Column("call_stack", NameType, "text", "Python stack as text, innermost first.", True),
        Column("overload", NameType, "name", "The operator's overload, if recorded.", True),
        Column("asynchronous", pl.Boolean, "flag", "Whether start and end threads differ.", True),
        Column("flops", pl.Int64, "flops", "Floating-point operations as recorded.", True),
    ),
)

COMPILED_ARGS: Final = Table(
    "compiled_args",
    "Arguments of launches of compiled (Triton, Inductor) kernels.",
    (
        Column("id", pl.UInt32, "id", "The slice id of the launch of the compiled kernel."),
        Column("backend", NameType, "name", "Compiler of the kernel, such as triton.", True),
        Column("kernel_file", NameType, "text", "Path of the kernel's generated source.", True),
        Column("kernel_hash", NameType, "text", "Hash of the kernel's generated source.", True),
        Column("kernel_arguments", NameType, "text", "Compile-time arguments, as text.", True),
        Column("grid", NameType, "text", "Launch grid in blocks, as the trace's text.", True),
        Column("warps", pl.Int32, "count", "Warps in a block of the launched kernel.", True),
        Column("stages", pl.Int32, "count", "Software pipeline stages of the kernel.", True),
    ),
)

CALL_ARGS: Final = Table(
    "call_args",
    "Arguments of calls of the device runtime and driver.",
    (
        Column("id", pl.UInt32, "id", "The slice id of the runtime or driver call."),
        Column("correlation", pl.Int64, "id", "Number shared by call and device work.", True),
        Column("external_id", pl.Int64, "id", "Raw id of an operator; see `operator`.", True),
        Column("operator", pl.UInt32, "id", "Slice id of the operator around the call.", True),
        Column("frame", pl.UInt32, "id", "Slice id of the Python frame around the call.", True),
        Column("bytes", pl.Int64, "bytes", "Bytes that the call moved or allocated.", True),
    ),
)

FRAME_ARGS: Final = Table(
    "frame_args",
    "Arguments of Python frames.",
    (
        Column("id", pl.UInt32, "id", "The slice id of the Python frame."),
        Column("python_id", pl.Int64, "id", "The frame's id in the recording.", True),
        Column("caller", pl.UInt32, "id", "Slice id of the frame that called the frame.", True),
        Column("module_id", pl.Int64, "id", "For nn.Module frames: the instance's number.", True),
    ),
)

DEVICE_ARGS: Final = Table(
    "device_args",
    "Arguments of kernels, copies and memsets.",
    (
        Column("id", pl.UInt32, "id", "The slice id of the kernel, copy or fill."),
        Column("device", pl.Int32, "id", "Device number of the work, from the trace.", True),
        Column("properties", pl.UInt32, "id", "Id of the device's row in `devices`.", True),
        Column("stream", pl.Int64, "id", "Number of the stream that ran the work.", True),
        Column("correlation", pl.Int64, "id", "Number shared by work and launch call.", True),
        Column("external_id", pl.Int64, "id", "Raw operator id; see `operator`.", True),
        Column("operator", pl.UInt32, "id", "Slice id of the operator around the launch.", True),
        Column("grid", pl.Array(pl.Int32, 3), "count", "Grid size in blocks: x, y, z.", True),
        Column("block", pl.Array(pl.Int32, 3), "count", "Block size in threads: x, y, z.", True),
        Column("registers", pl.Int32, "count", "Registers per thread of the kernel.", True),
        Column("shared_memory", pl.Int64, "bytes", "Shared memory in bytes per block.", True),
        Column("blocks_per_sm", pl.Float64, "count", "Thread blocks of the grid per SM.", True),
        Column("warps_per_sm", pl.Float64, "count", "Warps of the launch grid per SM.", True),
        Column("occupancy", pl.Float64, "percent", "Estimated achieved occupancy of SMs.", True),
        Column("bytes", pl.Int64, "bytes", "Bytes that the copy or fill wrote.", True),
        Column("bandwidth", pl.Float64, "gb/s", "Copy bandwidth, from the trace.", True),
        Column("graph", pl.Int64, "id", "Number of the CUDA graph that ran the work.", True),
        Column("graph_node", pl.Int64, "id", "Number of the work's CUDA graph node.", True),
        Column("kind", NameType, "name", "Direction of a copy or kind of a dispatch.", True),
    ),
)

COLLECTIVE_ARGS: Final = Table(
    "collective_args",
    "Arguments of collectives, of the host's record and of the kernel.",
    (
        Column("id", pl.UInt32, "id", "Slice id of a collective's host record or kernel."),
        Column("collective", NameType, "name", "Kind of collective, e.g. allreduce.", True),
        Column("dtype", NameType, "name", "Data type of the collective's elements.", True),
        Column("in_elements", pl.Int64, "count", "Number of elements the rank puts in.", True),
        Column("out_elements", pl.Int64, "count", "Number of elements the rank gets out.", True),
        Column("group_size", pl.Int64, "count", "Number of ranks in the group.", True),
        Column("group", NameType, "name", "The process group's name.", True),
        Column("group_description", NameType, "name", "The process group's description.", True),
        Column("group_ranks", NameType, "text", "Ranks in the group, as the trace's text.", True),
        Column("sequence", pl.Int64, "id", "The collective's number in its group.", True),
        Column("rank", pl.Int64, "id", "Number of the rank that made the record.", True),
        Column("source", pl.Int64, "id", "Sending rank of a point-to-point transfer.", True),
        Column("destination", pl.Int64, "id", "Receiving rank, point-to-point transfer.", True),
        Column("record", pl.UInt32, "id", "Slice id of a kernel's host record.", True),
    ),
)

SYNC_ARGS: Final = Table(
    "sync_args",
    "Arguments of the device's synchronisation records.",
    (
        Column("id", pl.UInt32, "id", "The slice id of the synchronisation record."),
        Column("kind", NameType, "name", "Stream, Context or Event Sync; Stream Wait.", True),
        Column("device", pl.Int32, "id", "The number of the synchronised device.", True),
        Column("stream", pl.Int64, "id", "Number of the stream; null if several.", True),
        Column("correlation", pl.Int64, "id", "Number shared by record and host call.", True),
        Column("event", pl.Int64, "id", "Id of the event waited for or recorded.", True),
        Column("waits_on_stream", pl.Int64, "id", "Number of the stream waited for.", True),
        Column("recorded_by", pl.Int64, "id", "`correlation` of the recording call.", True),
    ),
)

MEMORY: Final = Table(
    "memory",
    "One row for each allocation, release, or failed allocation, ordered by time.",
    (
        Column("time", pl.Int64, "instant", "Time since the origin; negative: before recording."),
        Column("track", pl.UInt32, "id", "The host track on which the event was recorded."),
        Column("operator", pl.UInt32, "id", "Innermost operator around the event.", True),
        Column("bytes", pl.Int64, "bytes", "Bytes allocated; negative if released.", True),
        Column("address", pl.UInt64, "id", "The address of the memory block.", True),
        Column("allocated", pl.Int64, "bytes", "Total allocated bytes after the event.", True),
        Column("reserved", pl.Int64, "bytes", "Total reserved bytes after the event.", True),
        Column("device_type", pl.Int16, "id", "0 CPU, 1 CUDA, 6 HIP, 12 XPU, 13 MPS.", True),
        Column("device", pl.Int32, "id", "The device's number; -1 for the CPU.", True),
        Column("failed", pl.Boolean, "flag", "Whether the allocation failed: memory was full."),
        Column(
            "call_stack", NameType, "text", "Innermost frame first; empty if not recorded.", True
        ),
    ),
)

INSTANTS: Final = Table(
    "instants",
    "One row for each event without a duration, other than memory.",
    (
        Column("time", pl.Int64, "instant", "The time of the event, since the trace's origin."),
        Column("track", pl.UInt32, "id", "The id of the track that shows the event."),
        Column("category", NameType, "name", "The category of the event in the trace."),
        Column("name", NameType, "name", "The event's name as the trace writes it."),
    ),
)

COUNTERS: Final = Table(
    "counters",
    "One row for each sample of a counter.",
    (
        Column("time", pl.Int64, "instant", "The time of the sample, since the trace's origin."),
        Column("track", pl.UInt32, "id", "The id of the track that shows the counter."),
        Column("name", NameType, "name", "The counter's name."),
        Column("series", NameType, "name", "The name of the value within the counter."),
        Column("value", pl.Float64, "count", "The counter's value, from the trace.", True),
    ),
)

DEVICES: Final = Table(
    "devices",
    "One row for each device that the trace describes.",
    (
        Column("id", pl.UInt32, "id", "The number of the device's row in the table."),
        Column("index", pl.Int32, "id", "The device's number in the trace's description.", True),
        Column("name", pl.String, "text", "The device's name.", True),
        Column("memory", pl.Int64, "bytes", "The device's total memory in bytes.", True),
        Column("compute_major", pl.Int32, "id", "Major number of compute capability.", True),
        Column("compute_minor", pl.Int32, "id", "Minor number of compute capability.", True),
        Column("multiprocessors", pl.Int32, "count", "SMs (or AMD's CUs) of the device.", True),
        Column("warp_size", pl.Int32, "count", "Threads in a warp.", True),
        Column("threads_per_sm", pl.Int32, "count", "Maximum of threads on an SM.", True),
        Column("threads_per_block", pl.Int32, "count", "Maximum of threads in a block.", True),
        Column("registers_per_sm", pl.Int64, "count", "Number of registers in an SM.", True),
        Column("shared_memory_per_sm", pl.Int64, "bytes", "Bytes of shared memory per SM.", True),
    ),
)

LINES: Final = Table(
    "lines",
    "The source line of an operator, as the recording saved it.",
    (
        Column("id", pl.UInt32, "id", "The id of the slice whose source line is known."),
        Column("file", NameType, "text", "The source file that the slice belongs to."),
        Column("line", pl.Int32, "id", "The source line, from 1; null if not known.", True),
        Column("function", NameType, "name", "The function that contains the source line."),
        Column("how", NameType, "name", "How the line is known: stack, stamp or definition."),
    ),
)

CLIPPED: Final = Table(
    "clipped",
    "Original times of slices shortened because rounding made them overlap by up to 1 us.",
    (
        Column("id", pl.UInt32, "id", "The id of the shortened slice."),
        Column("start", pl.Int64, "instant", "Start before the shortening, as in the trace."),
        Column("duration", pl.Int64, "ns", "Duration before the shortening, as in the trace."),
    ),
)

EVENTS: Final = Table(
    "events",
    "The number of events in the file, by their phase letter and category.",
    (
        Column("phase", pl.String, "name", "The phase letter of the trace's events."),
        Column("category", pl.String, "name", "The events' category; empty if absent."),
        Column("count", pl.UInt64, "count", "Events with this phase and category."),
        Column("kept", pl.Boolean, "flag", "Whether the events are in a table (flows are not)."),
    ),
)

REPAIRS: Final = Table(
    "repairs",
    "Faults of the file and how they were handled; one row for each kind of fault.",
    (
        Column("fault", pl.String, "sentence", "The fault in the file, and how it was handled."),
        Column("count", pl.UInt64, "count", "Number of occurrences of the fault."),
        Column("offset", pl.Int64, "count", "Byte offset where the fault first occurs.", True),
        Column("events_lost", pl.UInt64, "count", "Number of events lost through the fault."),
        Column("example", pl.String, "text", "Text where the fault first occurs.", True),
        Column("note", pl.Boolean, "flag", "Whether the fault is a note, not damage to data."),
        Column("ruin", pl.Boolean, "flag", "Whether the fault makes all conclusions invalid."),
    ),
)

TABLES: Final[dict[str, Table]] = {
    table.name: table
    for table in (
        SLICES,
        TRACKS,
        OP_ARGS,
        COMPILED_ARGS,
        CALL_ARGS,
        FRAME_ARGS,
        DEVICE_ARGS,
        COLLECTIVE_ARGS,
        SYNC_ARGS,
        MEMORY,
        INSTANTS,
        COUNTERS,
        DEVICES,
        LINES,
        CLIPPED,
        EVENTS,
        REPAIRS,
    )
}
"""Every table of a trace, by name."""

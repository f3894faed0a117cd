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
        Column("id", pl.UInt32, "id", "The row's number: slices are ordered by start, then file."),
        Column("category", NameType, "name", "The kind of event, by its current lower-case name."),
        Column("name", NameType, "name", "The name as the trace writes it."),
        Column("track", pl.UInt32, "id", "The track of the slice."),
        Column("start", pl.Int64, "instant", "The start of the event, since the trace's origin."),
        Column("duration", pl.Int64, "ns", "The duration; null if the end is unknown.", True),
        Column("parent", pl.UInt32, "id", "The innermost enclosing slice on its track.", True),
        Column("depth", pl.UInt16, "count", "The number of enclosing slices on its track."),
        Column("self", pl.Int64, "ns", "Time in which no other slice was inside this one.", True),
        Column("launch", pl.UInt32, "id", "For device work: the host call that launched it.", True),
    ),
)

TRACKS: Final = Table(
    "tracks",
    "One row for each track: a host thread's operators, its Python frames, a stream.",
    (
        Column("id", pl.UInt32, "id", "The row's number."),
        Column("kind", pl.Enum(TRACK_KINDS), "name", "The kind of its slices."),
        Column("thread", pl.UInt32, "id", "Equal for all tracks of one process and thread."),
        Column("process", pl.String, "text", "The process as the trace writes it."),
        Column("tid", pl.String, "text", "The thread or stream as the trace writes it."),
        Column("name", pl.String, "text", "The thread's name, if the trace gives one.", True),
        Column("process_name", pl.String, "text", "The process's name or label.", True),
        Column("device", pl.Int32, "id", "For device tracks: the device's number.", True),
        Column("stream", pl.Int64, "id", "For device tracks: the stream's number.", True),
    ),
)

OP_ARGS: Final = Table(
    "op_args",
    "Arguments of operators and annotations.",
    (
        Column("id", pl.UInt32, "id", "The slice."),
        Column("external_id", pl.Int64, "id", "The operator's id in the recording.", True),
        Column("sequence", pl.Int64, "id", "Autograd's sequence number.", True),
        Column(
            "forward_thread", pl.Int64, "id", "0 if forward; if backward, its forward thread.", True
        ),
        Column("forward", pl.UInt32, "id", "For a backward operator: its forward slice.", True),
        Column("frame", pl.UInt32, "id", "The innermost Python frame around it.", True),
        Column("module", pl.UInt32, "id", "The innermost nn.Module frame around it.", True),
        Column("input_shapes", NameType, "text", "Sizes of the inputs, as JSON text.", True),
        Column("input_types", NameType, "text", "Dtypes of the inputs, as JSON text.", True),
        Column("input_strides", NameType, "text", "Strides of the inputs, as JSON text.", True),
        Column("concrete_inputs", NameType, "text", "Values of scalar inputs, as JSON text.", True),
        Column("call_stack", NameType, "text", "Stack as written, innermost first.", True),
        Column("overload", NameType, "name", "The operator's overload, if recorded.", True),
        Column("asynchronous", pl.Boolean, "flag", "Whether it ended on another thread.", True),
        Column("flops", pl.Int64, "flops", "Floating-point operations, as recorded.", True),
    ),
)

COMPILED_ARGS: Final = Table(
    "compiled_args",
    "Arguments of launches of compiled (Triton, Inductor) kernels.",
    (
        Column("id", pl.UInt32, "id", "The slice."),
        Column("backend", NameType, "name", "The compiler, such as triton.", True),
        Column("kernel_file", NameType, "text", "The generated source.", True),
        Column("kernel_hash", NameType, "text", "The generated kernel's hash.", True),
        Column("kernel_arguments", NameType, "text", "Compile-time arguments, as written.", True),
        Column("grid", NameType, "text", "The launch grid, as written.", True),
        Column("warps", pl.Int32, "count", "Warps in a block.", True),
        Column("stages", pl.Int32, "count", "Software pipeline stages.", True),
    ),
)

CALL_ARGS: Final = Table(
    "call_args",
    "Arguments of calls of the device runtime and driver.",
    (
        Column("id", pl.UInt32, "id", "The slice."),
        Column("correlation", pl.Int64, "id", "Links the call to its device work.", True),
        Column("external_id", pl.Int64, "id", "As written; see `operator` for the link.", True),
        Column("operator", pl.UInt32, "id", "The innermost operator around the call.", True),
        Column("frame", pl.UInt32, "id", "The innermost Python frame around it.", True),
        Column("bytes", pl.Int64, "bytes", "Bytes moved or allocated, if recorded.", True),
    ),
)

FRAME_ARGS: Final = Table(
    "frame_args",
    "Arguments of Python frames.",
    (
        Column("id", pl.UInt32, "id", "The slice."),
        Column("python_id", pl.Int64, "id", "The frame's id in the recording.", True),
        Column("caller", pl.UInt32, "id", "The frame that called it.", True),
        Column("module_id", pl.Int64, "id", "For nn.Module frames: which instance.", True),
    ),
)

DEVICE_ARGS: Final = Table(
    "device_args",
    "Arguments of kernels, copies and memsets.",
    (
        Column("id", pl.UInt32, "id", "The slice."),
        Column("device", pl.Int32, "id", "The device as the trace numbers it.", True),
        Column("properties", pl.UInt32, "id", "The row of `devices` that describes it.", True),
        Column("stream", pl.Int64, "id", "The stream.", True),
        Column("correlation", pl.Int64, "id", "Links the work to its launch.", True),
        Column("external_id", pl.Int64, "id", "As written.", True),
        Column("operator", pl.UInt32, "id", "The innermost operator around the launch.", True),
        Column("grid", pl.Array(pl.Int32, 3), "count", "Blocks in x, y, z.", True),
        Column("block", pl.Array(pl.Int32, 3), "count", "Threads of a block in x, y, z.", True),
        Column("registers", pl.Int32, "count", "Registers of a thread.", True),
        Column("shared_memory", pl.Int64, "bytes", "Shared memory of a block.", True),
        Column("blocks_per_sm", pl.Float64, "count", "Blocks of the grid for each SM.", True),
        Column("warps_per_sm", pl.Float64, "count", "Warps of the grid for each SM.", True),
        Column("occupancy", pl.Float64, "percent", "Estimated achieved occupancy.", True),
        Column("bytes", pl.Int64, "bytes", "Bytes copied or filled.", True),
        Column("bandwidth", pl.Float64, "gb/s", "Bandwidth as written.", True),
        Column("graph", pl.Int64, "id", "The CUDA graph that launched it.", True),
        Column("graph_node", pl.Int64, "id", "The node of that graph.", True),
        Column("kind", NameType, "name", "Direction of a copy or kind of a dispatch.", True),
    ),
)

COLLECTIVE_ARGS: Final = Table(
    "collective_args",
    "Arguments of collectives, of the host's record and of the kernel.",
    (
        Column("id", pl.UInt32, "id", "The slice: a host record or a kernel."),
        Column("collective", NameType, "name", "The collective, such as allreduce.", True),
        Column("dtype", NameType, "name", "The elements' dtype.", True),
        Column("in_elements", pl.Int64, "count", "Elements in.", True),
        Column("out_elements", pl.Int64, "count", "Elements out.", True),
        Column("group_size", pl.Int64, "count", "Ranks in the group.", True),
        Column("group", NameType, "name", "The process group's name.", True),
        Column("group_description", NameType, "name", "The process group's description.", True),
        Column("group_ranks", NameType, "text", "Ranks of the process group, as written.", True),
        Column("sequence", pl.Int64, "id", "The collective's number in its group.", True),
        Column("rank", pl.Int64, "id", "The rank, if recorded.", True),
        Column("source", pl.Int64, "id", "Source rank, point to point.", True),
        Column("destination", pl.Int64, "id", "Destination rank, point to point.", True),
        Column("record", pl.UInt32, "id", "For a kernel: its host record's slice.", True),
    ),
)

SYNC_ARGS: Final = Table(
    "sync_args",
    "Arguments of the device's synchronisation records.",
    (
        Column("id", pl.UInt32, "id", "The slice."),
        Column("kind", NameType, "name", "Stream, Context or Event Sync; Stream Wait.", True),
        Column("device", pl.Int32, "id", "The device.", True),
        Column("stream", pl.Int64, "id", "The stream; null if not one stream.", True),
        Column("correlation", pl.Int64, "id", "Links the record to its host call.", True),
        Column("event", pl.Int64, "id", "The event waited for or recorded.", True),
        Column("waits_on_stream", pl.Int64, "id", "The stream waited for.", True),
        Column("recorded_by", pl.Int64, "id", "Correlation of the event's record.", True),
    ),
)

MEMORY: Final = Table(
    "memory",
    "One row for each allocation, release, or failed allocation, ordered by time.",
    (
        Column("time", pl.Int64, "instant", "Since the origin; negative before the recording."),
        Column("track", pl.UInt32, "id", "The host track on which the event was recorded."),
        Column("operator", pl.UInt32, "id", "The innermost operator around it.", True),
        Column("bytes", pl.Int64, "bytes", "Positive if allocated, negative if released.", True),
        Column("address", pl.UInt64, "id", "The block's address.", True),
        Column("allocated", pl.Int64, "bytes", "Allocated on the device afterwards.", True),
        Column("reserved", pl.Int64, "bytes", "Reserved on the device afterwards.", True),
        Column("device_type", pl.Int16, "id", "0 CPU, 1 CUDA, 6 HIP, 12 XPU, 13 MPS.", True),
        Column("device", pl.Int32, "id", "The device's number; -1 for the CPU.", True),
        Column("failed", pl.Boolean, "flag", "Whether the allocation failed for lack of memory."),
        Column("call_stack", NameType, "text", "Stack, innermost first; empty: no frame.", True),
    ),
)

INSTANTS: Final = Table(
    "instants",
    "One row for each event without a duration, other than memory.",
    (
        Column("time", pl.Int64, "instant", "The time of the event, since the trace's origin."),
        Column("track", pl.UInt32, "id", "The track of the slice."),
        Column("category", NameType, "name", "The kind of event."),
        Column("name", NameType, "name", "The name as the trace writes it."),
    ),
)

COUNTERS: Final = Table(
    "counters",
    "One row for each sample of a counter.",
    (
        Column("time", pl.Int64, "instant", "The time of the sample, since the trace's origin."),
        Column("track", pl.UInt32, "id", "The track of the slice."),
        Column("name", NameType, "name", "The counter's name."),
        Column("series", NameType, "name", "The series within the counter."),
        Column("value", pl.Float64, "count", "The value as written.", True),
    ),
)

DEVICES: Final = Table(
    "devices",
    "One row for each device that the trace describes.",
    (
        Column("id", pl.UInt32, "id", "The row's number."),
        Column("index", pl.Int32, "id", "The device's number in the description.", True),
        Column("name", pl.String, "text", "The device's name.", True),
        Column("memory", pl.Int64, "bytes", "Its total memory.", True),
        Column("compute_major", pl.Int32, "id", "Compute capability, major.", True),
        Column("compute_minor", pl.Int32, "id", "Compute capability, minor.", True),
        Column("multiprocessors", pl.Int32, "count", "SMs or CUs.", True),
        Column("warp_size", pl.Int32, "count", "Threads in a warp.", True),
        Column("threads_per_sm", pl.Int32, "count", "Most threads on an SM.", True),
        Column("threads_per_block", pl.Int32, "count", "Most threads in a block.", True),
        Column("registers_per_sm", pl.Int64, "count", "Registers of an SM.", True),
        Column("shared_memory_per_sm", pl.Int64, "bytes", "Shared memory of an SM.", True),
    ),
)

LINES: Final = Table(
    "lines",
    "The source line of an operator, as the recording saved it.",
    (
        Column("id", pl.UInt32, "id", "The slice."),
        Column("file", NameType, "text", "The source file."),
        Column("line", pl.Int32, "id", "The line, from 1; null if only the file is known.", True),
        Column("function", NameType, "name", "The function the line is in."),
        Column("how", NameType, "name", "How it is known: stack, stamp or definition; see views."),
    ),
)

CLIPPED: Final = Table(
    "clipped",
    "Original times of slices shortened because rounding made them overlap by up to 1 us.",
    (
        Column("id", pl.UInt32, "id", "The slice."),
        Column("start", pl.Int64, "instant", "The start as written."),
        Column("duration", pl.Int64, "ns", "The duration as written."),
    ),
)

EVENTS: Final = Table(
    "events",
    "The number of events in the file, by their phase letter and category.",
    (
        Column("phase", pl.String, "name", "The phase letter."),
        Column("category", pl.String, "name", "The category as written; empty if absent."),
        Column("count", pl.UInt64, "count", "Events of that phase and category."),
        Column("kept", pl.Boolean, "flag", "Whether they are in a table (flows are not)."),
    ),
)

REPAIRS: Final = Table(
    "repairs",
    "Faults of the file and how they were handled; one row for each kind of fault.",
    (
        Column("fault", pl.String, "sentence", "The fault, and how it was handled."),
        Column("count", pl.UInt64, "count", "Number of occurrences of the fault."),
        Column("offset", pl.Int64, "count", "Byte offset of the first occurrence.", True),
        Column("events_lost", pl.UInt64, "count", "Number of events lost through the fault."),
        Column("example", pl.String, "text", "The text at its first occurrence.", True),
        Column("note", pl.Boolean, "flag", "Whether it is only a note, not damage to data."),
        Column("ruin", pl.Boolean, "flag", "Whether it makes all conclusions invalid."),
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

RUN_SEGMENTS: Final = Table(
    "run_segments",
    "The time segments of a run in order: before the first step, each step, after the last.",
    (
        Column("id", pl.UInt32, "id", "The row's number; rows with a kind are steps."),
        Column("start", pl.Int64, "instant", "The start, since the start of the process."),
        Column("duration", pl.Int64, "ns", "The duration of the segment."),
        Column("kind", NameType, "name", "Kind of step; null before the first, after the last."),
        Column("data_wait", pl.Int64, "ns", "Time spent waiting for a batch of a DataLoader."),
        Column("epoch_boundary", pl.Int64, "ns", "Time starting a DataLoader's iterator."),
        Column("evaluation", pl.Int64, "ns", "Time from `model.eval()` to `model.train()`."),
        Column("compile", pl.Int64, "ns", "Time spent compiling by `torch.compile`."),
        Column("garbage_collection", pl.Int64, "ns", "Time of Python's garbage collections."),
        Column("recording", pl.Int64, "ns", "Time that selftime itself took."),
        Column("recorded", pl.Boolean, "flag", "Whether a profiler recorded the segment."),
    ),
)

RUN_READINGS: Final = Table(
    "run_readings",
    "What the program was doing in slow segments, from samples of its Python stack.",
    (
        Column("segment", pl.UInt32, "id", "The id of the segment in `run_segments`."),
        Column("part", NameType, "name", "The activity; `program` is the user's own code."),
        Column("what", pl.String, "text", "The imported package, or checkpoint function.", True),
        Column("file", pl.String, "text", "The user's source file.", True),
        Column("line", pl.Int32, "id", "The user's source line.", True),
        Column("function", pl.String, "name", "The user's function.", True),
        Column("duration", pl.Int64, "ns", "Estimated from the time between stack samples."),
        Column("count", pl.UInt32, "count", "The number of stack samples that showed it."),
    ),
)

RUN_COMPILATIONS: Final = Table(
    "run_compilations",
    "Compilations by `torch.compile`, in order.",
    (
        Column("start", pl.Int64, "instant", "The start, since the start of the process.", True),
        Column("duration", pl.Int64, "ns", "The duration of the compilation.", True),
        Column("function", pl.String, "name", "The function that was compiled.", True),
        Column("file", pl.String, "text", "The source file of the function.", True),
        Column("line", pl.Int32, "id", "The first line of the function.", True),
        Column(
            "reason", pl.String, "text", "Why it was compiled again; null the first time.", True
        ),
    ),
)

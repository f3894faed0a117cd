"""Declares the types to which events of the Chrome trace-event format are decoded.

Format: the trace-event format of Chrome's tracing, "JSON Array Format" and "JSON Object Format".
Only the fields that a table holds are declared; msgspec skips the rest without building it. The
phase of an event (`ph`) selects its type, so that little is built for flow arrows and counters.
Arguments stay raw until `event_arguments` reads those of the event's kind. So do values whose text
matters (decimals of microseconds since the epoch, shapes).
"""

from functools import reduce
from operator import or_
from typing import Any, ClassVar, Final, TypeAlias

import msgspec
from msgspec import Raw, Struct, field

NO_INT: Final = -(2**63)
"""The value that stands for an absent integer."""

NO_TEXT: Final = Raw(b"")
"""The value that stands for an absent JSON value."""

NO_FLOAT: Final = float("nan")


EMPTY_ARGS: Final = Raw(b"{}")
"""The JSON text used as the arguments of an event without arguments."""


class EventArguments(Struct, gc=False):
    """The event arguments that are read; `name=` gives an argument's key in the trace's JSON.

    For each event, `event_arguments` reads those of the event's kind.
    """

    external_id: int | str = field(name="External id", default=NO_INT)
    external_id_2021: int | str = field(name="external id", default=NO_INT)
    external_id_titled: int | str = field(name="External Id", default=NO_INT)
    correlation: int | str = NO_INT
    is_finished: bool = field(name="finished", default=True)

    sequence_number: int = field(name="Sequence number", default=NO_INT)
    forward_thread: int = field(name="Fwd thread id", default=NO_INT)
    input_shapes: Raw = field(name="Input Dims", default=NO_TEXT)
    input_shapes_2021: Raw = field(name="Input dims", default=NO_TEXT)
    input_types: Raw = field(name="Input type", default=NO_TEXT)
    input_strides: Raw = field(name="Input Strides", default=NO_TEXT)
    concrete_inputs: Raw = field(name="Concrete Inputs", default=NO_TEXT)
    call_stack: Raw = field(name="Call stack", default=NO_TEXT)

    kernel_backend: Raw = NO_TEXT
    kernel_file: Raw = NO_TEXT
    kernel_hash: Raw = NO_TEXT
    kernel_arguments: Raw = field(name="kernel_kwargs", default=NO_TEXT)
    warp_count: int = field(name="num_warps", default=NO_INT)
    pipeline_stage_count: int = field(name="num_stages", default=NO_INT)

    python_id: int | None = field(name="Python id", default=NO_INT)
    python_parent: int | None = field(name="Python parent id", default=NO_INT)
    module_id: int | None = field(name="Python module id", default=NO_INT)

    device: int = NO_INT
    stream: int | str = NO_INT
    grid: Raw = NO_TEXT
    block: Raw = NO_TEXT
    registers_per_thread: int = field(name="registers per thread", default=NO_INT)
    shared_memory_bytes: int = field(name="shared memory", default=NO_INT)
    blocks_per_sm: float = field(name="blocks per SM", default=NO_FLOAT)
    warps_per_sm: float = field(name="warps per SM", default=NO_FLOAT)
    occupancy_percent: float = field(name="est. achieved occupancy %", default=NO_FLOAT)
    bytes: int | str = NO_INT
    size: int | str = NO_INT
    bandwidth_gb_per_s: float = field(name="memory bandwidth (GB/s)", default=NO_FLOAT)
    graph_id: int = field(name="graph id", default=NO_INT)
    graph_node_id: int = field(name="graph node id", default=NO_INT)
    copy_or_dispatch_kind: Raw = field(name="kind", default=NO_TEXT)

    collective: Raw = field(name="Collective name", default=NO_TEXT)
    dtype: Raw = NO_TEXT
    in_elements: int = field(name="In msg nelems", default=NO_INT)
    out_elements: int = field(name="Out msg nelems", default=NO_INT)
    group_size: int = field(name="Group size", default=NO_INT)
    group_name: Raw = field(name="Process Group Name", default=NO_TEXT)
    group_description: Raw = field(name="Process Group Description", default=NO_TEXT)
    group_ranks: Raw = field(name="Process Group Ranks", default=NO_TEXT)
    group_sequence_number: int = field(name="Seq", default=NO_INT)
    rank: int = field(name="Rank", default=NO_INT)
    source_rank: int = field(name="Src Rank", default=NO_INT)
    destination_rank: int = field(name="Dst Rank", default=NO_INT)

    sync_kind: Raw = field(name="cuda_sync_kind", default=NO_TEXT)
    awaited_event_id: int = field(name="wait_on_cuda_event_id", default=NO_INT)
    event_id: int = NO_INT
    waits_on_stream: int = field(name="wait_on_stream", default=NO_INT)
    event_record_correlation: int = field(name="wait_on_cuda_event_record_corr_id", default=NO_INT)

    memory_bytes: int = field(name="Bytes", default=NO_INT)
    address: int = field(name="Addr", default=-1)
    total_allocated_bytes: int = field(name="Total Allocated", default=NO_INT)
    total_reserved_bytes: int = field(name="Total Reserved", default=NO_INT)
    device_type: int = field(name="Device Type", default=NO_INT)
    device_id: int = field(name="Device Id", default=NO_INT)

    labels: str = ""
    name: Any = None


class CompleteEvent(Struct, tag="X", tag_field="ph", gc=False):
    """A complete event (`ph` is `X`), whose start and duration are exact to the ns as doubles."""

    phase: ClassVar[str] = "X"
    cat: str | None = None
    name: str | None = None
    pid: int | str | None = None
    tid: int | str | None = None
    ts: float = NO_FLOAT
    dur: float = NO_FLOAT
    args: Raw = EMPTY_ARGS


class ExactCompleteEvent(CompleteEvent, tag="X", tag_field="ph", gc=False):
    """A complete event whose start is kept as decimal text, since a double would be inexact."""

    ts: Raw = NO_TEXT  # type: ignore[assignment]  # the same field, kept as text


class InstantEvent(Struct, gc=False):
    """An event without a duration: a begin, an end, an instant, a counter sample, or metadata."""

    phase: ClassVar[str] = ""
    cat: str | None = None
    name: str | None = None
    pid: int | str | None = None
    tid: int | str | None = None
    ts: float = NO_FLOAT
    id: Raw = NO_TEXT
    """The id that all events of one asynchronous span share."""
    args: Raw = EMPTY_ARGS


class ExactInstantEvent(InstantEvent, gc=False):
    """An event without a duration whose time is kept as text, since a double would be inexact."""

    ts: Raw = NO_TEXT  # type: ignore[assignment]  # the same field, kept as text


class CountedOnlyEvent(Struct, gc=False):
    """An event that is only counted by phase and category, such as the start of a flow arrow."""

    phase: ClassVar[str] = ""
    cat: str | None = None


class UnknownEvent(Struct, gc=False):
    """An event whose phase (`ph`) is not one of the trace-event format."""

    phase: str = ""
    cat: str | None = None


Event: TypeAlias = CompleteEvent | InstantEvent | CountedOnlyEvent | UnknownEvent

_INSTANT_EVENT_PHASES: Final = "BEMbneSTpFiIRC"
_COUNTED_ONLY_PHASES: Final = "stfPNODvVc()"
"""Phases (`ph`) of events that are only counted: flow arrows, samples, objects, memory dumps,
clocks and contexts.
"""


def _event_types_by_phase(base: type[Any], phases: str) -> dict[str, type[Any]]:
    """Returns, by phase letter, a subclass of `base` that decodes the events with that `ph`."""
    return {
        phase: msgspec.defstruct(
            base.__name__,
            [],
            bases=(base,),
            tag_field="ph",
            tag=phase,
            namespace={"phase": phase, "__doc__": base.__doc__},
            gc=False,
        )
        for phase in phases
    }


_COUNTED_ONLY_EVENT_TYPES: Final = _event_types_by_phase(CountedOnlyEvent, _COUNTED_ONLY_PHASES)
_EVENT_TYPES_BY_PHASE: Final[dict[str, type[Any]]] = {
    "X": CompleteEvent,
    **_event_types_by_phase(InstantEvent, _INSTANT_EVENT_PHASES),
    **_COUNTED_ONLY_EVENT_TYPES,
}
_EXACT_EVENT_TYPES_BY_PHASE: Final[dict[str, type[Any]]] = {
    "X": ExactCompleteEvent,
    **_event_types_by_phase(ExactInstantEvent, _INSTANT_EVENT_PHASES),
    **_COUNTED_ONLY_EVENT_TYPES,
}


def exact_event_type_of_phase(phase: str) -> type[Any] | None:
    """Returns the type that decodes a phase's events with times as text; None if unknown."""
    return _EXACT_EVENT_TYPES_BY_PHASE.get(phase)


def _event_list_decoder(types_by_phase: dict[str, type[Any]]) -> msgspec.json.Decoder[list[Any]]:
    """Returns a decoder of a JSON list of events that picks each event's type by its phase."""
    return msgspec.json.Decoder(list[reduce(or_, types_by_phase.values())])  # type: ignore[misc]  # made above


plain_event_list_decoder = _event_list_decoder(_EVENT_TYPES_BY_PHASE)
exact_event_list_decoder = _event_list_decoder(_EXACT_EVENT_TYPES_BY_PHASE)
untyped_decoder = msgspec.json.Decoder(list[Any], float_hook=str)
"""Decodes a list of any JSON values; floats stay text, so that no digit is lost."""
value_decoder = msgspec.json.Decoder(Any, float_hook=str)
"""Decodes one JSON value; floats stay text, so that no digit is lost."""

MALFORMED_JSON_ERRORS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The exceptions that a decoder raises for text that is not JSON, not UTF-8, or nested too deep."""

"""Typed events of the trace-event format, as Kineto and similar writers use it.

Format: the trace-event format of Chrome's tracing, "JSON Array Format" and "JSON Object Format".
Only the fields that a table holds are declared; msgspec skips the rest without building it. The
phase of an event (`ph`) selects its type, so that little is built for flow arrows and counters.
Arguments stay raw until `arguments` reads those of the event's kind. So do values whose text
matters (decimals of microseconds since the epoch, shapes).
"""

from functools import reduce
from operator import or_
from typing import Any, ClassVar, Final, TypeAlias

import msgspec
from msgspec import Raw, Struct, field

NO_INT: Final = -(2**63)
"""The sentinel for an absent integer."""

NO_TEXT: Final = Raw(b"")
"""The sentinel for an absent value."""

NAN: Final = float("nan")


EMPTY_ARGS: Final = Raw(b"{}")
"""The arguments of an event without arguments."""


class Args(Struct, gc=False):
    """Every argument that is read; `name=` has the trace's own spelling.

    For each event, `arguments` reads those of the event's kind.
    """

    external_id: int | str = field(name="External id", default=NO_INT)
    external_id_2021: int | str = field(name="external id", default=NO_INT)
    external_id_titled: int | str = field(name="External Id", default=NO_INT)
    correlation: int | str = NO_INT
    finished: bool = True

    sequence: int = field(name="Sequence number", default=NO_INT)
    forward_thread: int = field(name="Fwd thread id", default=NO_INT)
    input_shapes: Raw = field(name="Input Dims", default=NO_TEXT)
    input_shapes_2021: Raw = field(name="Input dims", default=NO_TEXT)
    input_types: Raw = field(name="Input type", default=NO_TEXT)
    input_strides: Raw = field(name="Input Strides", default=NO_TEXT)
    concrete_inputs: Raw = field(name="Concrete Inputs", default=NO_TEXT)
    call_stack: Raw = field(name="Call stack", default=NO_TEXT)

    backend: Raw = field(name="kernel_backend", default=NO_TEXT)
    kernel_file: Raw = NO_TEXT
    kernel_hash: Raw = NO_TEXT
    kernel_arguments: Raw = field(name="kernel_kwargs", default=NO_TEXT)
    warps: int = field(name="num_warps", default=NO_INT)
    stages: int = field(name="num_stages", default=NO_INT)

    python_id: int | None = field(name="Python id", default=NO_INT)
    python_parent: int | None = field(name="Python parent id", default=NO_INT)
    module_id: int | None = field(name="Python module id", default=NO_INT)

    device: int = NO_INT
    stream: int | str = NO_INT
    grid: Raw = NO_TEXT
    block: Raw = NO_TEXT
    registers: int = field(name="registers per thread", default=NO_INT)
    shared_memory: int = field(name="shared memory", default=NO_INT)
    blocks_per_sm: float = field(name="blocks per SM", default=NAN)
    warps_per_sm: float = field(name="warps per SM", default=NAN)
    occupancy: float = field(name="est. achieved occupancy %", default=NAN)
    bytes: int | str = NO_INT
    size: int | str = NO_INT
    bandwidth: float = field(name="memory bandwidth (GB/s)", default=NAN)
    graph: int = field(name="graph id", default=NO_INT)
    graph_node: int = field(name="graph node id", default=NO_INT)
    kind: Raw = NO_TEXT

    collective: Raw = field(name="Collective name", default=NO_TEXT)
    dtype: Raw = NO_TEXT
    in_elements: int = field(name="In msg nelems", default=NO_INT)
    out_elements: int = field(name="Out msg nelems", default=NO_INT)
    group_size: int = field(name="Group size", default=NO_INT)
    group: Raw = field(name="Process Group Name", default=NO_TEXT)
    group_description: Raw = field(name="Process Group Description", default=NO_TEXT)
    group_ranks: Raw = field(name="Process Group Ranks", default=NO_TEXT)
    group_sequence: int = field(name="Seq", default=NO_INT)
    rank: int = field(name="Rank", default=NO_INT)
    source: int = field(name="Src Rank", default=NO_INT)
    destination: int = field(name="Dst Rank", default=NO_INT)

    sync_kind: Raw = field(name="cuda_sync_kind", default=NO_TEXT)
    event: int = field(name="wait_on_cuda_event_id", default=NO_INT)
    event_id: int = NO_INT
    waits_on_stream: int = field(name="wait_on_stream", default=NO_INT)
    recorded_by: int = field(name="wait_on_cuda_event_record_corr_id", default=NO_INT)

    memory_bytes: int = field(name="Bytes", default=NO_INT)
    address: int = field(name="Addr", default=-1)
    allocated: int = field(name="Total Allocated", default=NO_INT)
    reserved: int = field(name="Total Reserved", default=NO_INT)
    device_type: int = field(name="Device Type", default=NO_INT)
    device_id: int = field(name="Device Id", default=NO_INT)

    labels: str = ""
    name: Any = None


class Complete(Struct, tag="X", tag_field="ph", gc=False):
    """An event with a start and a duration that a double represents to the nanosecond."""

    phase: ClassVar[str] = "X"
    cat: str | None = None
    name: str | None = None
    pid: int | str | None = None
    tid: int | str | None = None
    ts: float = NAN
    dur: float = NAN
    args: Raw = EMPTY_ARGS


class ExactComplete(Complete, tag="X", tag_field="ph", gc=False):
    """A complete event whose time needs its decimal text: fractions of epoch microseconds."""

    ts: Raw = NO_TEXT  # type: ignore[assignment]  # the same field, kept as text


class Instant(Struct, gc=False):
    """An event at one instant: a begin, an end, an instant, a counter sample, or metadata."""

    phase: ClassVar[str] = ""
    cat: str | None = None
    name: str | None = None
    pid: int | str | None = None
    tid: int | str | None = None
    ts: float = NAN
    id: Raw = NO_TEXT
    """The id that the events of one asynchronous span share."""
    args: Raw = EMPTY_ARGS


class ExactInstant(Instant, gc=False):
    """An event at one instant whose time needs its decimal text."""

    ts: Raw = NO_TEXT  # type: ignore[assignment]  # the same field, kept as text


class CountedOnly(Struct, gc=False):
    """An event that is only counted."""

    phase: ClassVar[str] = ""
    cat: str | None = None


class Unknown(Struct, gc=False):
    """An event of a phase that is not part of the format."""

    phase: str = ""
    cat: str | None = None


Event: TypeAlias = Complete | Instant | CountedOnly | Unknown

_MOMENTS: Final = "BEMbneSTpFiIRC"
_COUNTED: Final = "stfPNODvVc()"
"""Phases of flow arrows, samples, objects, memory dumps, clocks and contexts."""


def _typed(base: type[Any], phases: str) -> dict[str, type[Any]]:
    """Returns an event type for each phase."""
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


_counted: Final = _typed(CountedOnly, _COUNTED)
_plain: Final[dict[str, type[Any]]] = {"X": Complete, **_typed(Instant, _MOMENTS), **_counted}
_exact: Final[dict[str, type[Any]]] = {
    "X": ExactComplete,
    **_typed(ExactInstant, _MOMENTS),
    **_counted,
}


def exact_type_of_phase(phase: str) -> type[Any] | None:
    """Returns the exact event type of a phase; None for an unknown phase."""
    return _exact.get(phase)


def _decoder(types: dict[str, type[Any]]) -> msgspec.json.Decoder[list[Any]]:
    """Returns a decoder of a list of events, each as the type of its phase."""
    return msgspec.json.Decoder(list[reduce(or_, types.values())])  # type: ignore[misc]  # made above


plain_decoder = _decoder(_plain)
exact_decoder = _decoder(_exact)
loose_decoder = msgspec.json.Decoder(list[Any], float_hook=str)
"""Decodes a list of any JSON values; floats stay text so that no digit is lost."""
value_decoder = msgspec.json.Decoder(Any, float_hook=str)
"""Decodes one JSON value; floats stay text."""

MALFORMED: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The exceptions of a decoder for text that is not JSON, not UTF-8, or nested too deep."""

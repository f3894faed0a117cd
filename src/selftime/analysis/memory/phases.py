"""Finds the program's phase at each memory record: loading, forward, backward, optimizer.

It is determined by the nearest enclosing slice that shows a phase: the loader's annotation, a copy
of host memory to a device, a node of autograd's backward pass, the optimizer's step. Without any of
these it is forward if an operator of the program ran, else outside.

Records with stacks of their own, as in an allocator's snapshot, have the phase of the stack. A
stack without a Python frame is of a thread on which no Python runs, which is autograd's.
"""

from dataclasses import dataclass, fields
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.slice_arguments import parent_of_every_slice
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.array_types import Ints
from selftime.nesting import NO_SLICE, nearest_ancestor
from selftime.trace import Trace

CODE_OF_NO_PHASE: Final = 0
"""Code of the phase of memory records outside all operators."""
CODE_OF_FORWARD_PHASE: Final = 1
CODE_OF_LOADING_PHASE: Final = 2
CODE_OF_BACKWARD_PHASE: Final = 3
CODE_OF_OPTIMIZER_PHASE: Final = 4
_CODE_OF_UPLOAD_PHASE: Final = 5
"""Code of a host-to-device copy: it counts as loading, except inside a backward pass or an
optimizer's step.
"""


_PHASE_CODE_BY_STACK_PHASE: Final = {
    "loading": CODE_OF_LOADING_PHASE,
    "optimizing": CODE_OF_OPTIMIZER_PHASE,
    "backward": CODE_OF_BACKWARD_PHASE,
    "building": CODE_OF_FORWARD_PHASE,
    "forward": CODE_OF_FORWARD_PHASE,
}
"""Maps the phase name that a Python stack shows to the code of the phase."""


@dataclass(frozen=True, slots=True)
class PhasesOfMemoryRecords:
    """The program's phase at each memory record; arrays with one element per record."""

    phase: Ints
    phase_end_ns: Ints
    """When the outermost operator, the data loading or the optimizer's step around each record
    ends, in ns.
    """
    is_accumulating_gradient: NDArray[np.bool_]
    """Whether each record lies in an autograd node that accumulates a parameter's gradient."""
    is_building_module: NDArray[np.bool_]
    """Whether each record's stack shows that torch.nn builds or moves a module."""
    is_known: NDArray[np.bool_]
    """Whether each record's phase is known. A snapshot's record without a stack has none."""

    def part(self, begin: int, end: int | None) -> "PhasesOfMemoryRecords":
        """Returns the phases of the memory records from index `begin` to before `end`."""
        return PhasesOfMemoryRecords(
            *(getattr(self, field.name)[begin:end] for field in fields(self))
        )


def program_phases_of_memory_records(trace: Trace, record_rows: pl.Series) -> PhasesOfMemoryRecords:
    """Returns the program's phase at each given row of `memory`; no phase where the row is null."""
    phase, ends, accumulates = _phases_by_enclosing_slices(
        trace, trace.memory["operator"].gather(record_rows)
    )
    every = trace.memory["call_stack"]
    shown = _phase_names_of_stacks(every.gather(record_rows))
    told = shown.replace_strict(
        _PHASE_CODE_BY_STACK_PHASE, default=CODE_OF_NO_PHASE, return_dtype=pl.Int64
    ).to_numpy()
    has_stacks = every.null_count() < every.len()
    return PhasesOfMemoryRecords(
        np.where(phase == CODE_OF_NO_PHASE, told, phase),
        ends,
        accumulates,
        (shown == "building").fill_null(value=False).to_numpy(),
        shown.is_not_null().to_numpy() | (not has_stacks),
    )


def _phase_names_of_stacks(stacks: pl.Series) -> pl.Series:
    """Returns the program phase that each stack shows, or an empty text if it shows none."""
    texts = stacks.cast(pl.String)
    unique = texts.drop_nulls().unique().to_list()
    phase = {
        text: (names.program_phase_of_stack(text) or "") if text else "backward" for text in unique
    }
    return texts.replace_strict(phase, default=None, return_dtype=pl.String)


def _phases_by_enclosing_slices(
    trace: Trace, operators: pl.Series
) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Returns each record's phase code, phase end (ns), and whether it accumulates gradients."""
    asked = operators.cast(pl.Int64).fill_null(NO_SLICE).to_numpy()
    told = _phase_codes_of_slices(trace)
    if not told.size:
        return (
            np.full(asked.size, CODE_OF_NO_PHASE),
            np.zeros(asked.size, np.int64),
            asked > NO_SLICE,
        )
    parent = parent_of_every_slice(trace)
    holder = nearest_ancestor(
        parent, (told != CODE_OF_NO_PHASE) & (told != _CODE_OF_UPLOAD_PHASE), asked
    )
    upload = nearest_ancestor(parent, told == _CODE_OF_UPLOAD_PHASE, asked)
    holder = np.where(holder == NO_SLICE, upload, holder)
    is_operator = trace.slices["category"].is_in(list(names.OPERATOR_CATEGORIES)).to_numpy()
    top = _outermost_wanted_ancestor_in_chain(parent, is_operator, asked)
    phase = np.where(
        holder == NO_SLICE,
        CODE_OF_NO_PHASE,
        np.where(told == _CODE_OF_UPLOAD_PHASE, CODE_OF_LOADING_PHASE, told)[holder],
    )
    phase = np.where((phase == CODE_OF_NO_PHASE) & (top != NO_SLICE), CODE_OF_FORWARD_PHASE, phase)
    whole = np.where(
        (phase == CODE_OF_LOADING_PHASE) | (phase == CODE_OF_OPTIMIZER_PHASE), holder, top
    )
    end = (trace.slices["start"] + trace.slices["duration"].fill_null(0)).to_numpy()
    node = np.zeros(told.size, bool)
    node[filter_by_name(trace.slices, names.accumulates_gradient)["id"].to_numpy()] = True
    ends = np.where(whole == NO_SLICE, 0, end[whole])
    return phase, ends, np.asarray(nearest_ancestor(parent, node, asked) != NO_SLICE)


def backward_pass_start_times(trace: Trace) -> Ints:
    """Returns the instants (ns) at which backward nodes began or backward memory was recorded."""
    nodes = trace.slices["start"].to_numpy()[
        _phase_codes_of_slices(trace) == CODE_OF_BACKWARD_PHASE
    ]
    in_stacks = (_phase_names_of_stacks(trace.memory["call_stack"]) == "backward").fill_null(
        value=False
    )
    return np.sort(np.append(nodes, trace.memory["time"].filter(in_stacks).to_numpy()))


def _phase_codes_of_slices(trace: Trace) -> Ints:
    """Returns the code of the program phase that each slice's name or arguments show."""
    found = np.full(trace.slices.height, CODE_OF_NO_PHASE, np.int64)
    host = slices_on(trace, "host")
    found[_outermost_upload_operator_ids(trace)] = _CODE_OF_UPLOAD_PHASE
    found[filter_by_name(host, names.is_data_loading)["id"].to_numpy()] = CODE_OF_LOADING_PHASE
    backward = pl.col("forward").is_not_null() | (pl.col("forward_thread") > 0)
    found[trace.op_args.select(pl.col("id").filter(backward))["id"].to_numpy()] = (
        CODE_OF_BACKWARD_PHASE
    )
    found[filter_by_name(host, names.is_backward_node)["id"].to_numpy()] = CODE_OF_BACKWARD_PHASE
    found[filter_by_name(host, names.accumulates_gradient)["id"].to_numpy()] = (
        CODE_OF_BACKWARD_PHASE
    )
    found[filter_by_name(host, names.is_optimizer_step)["id"].to_numpy()] = CODE_OF_OPTIMIZER_PHASE
    return found


def _outermost_upload_operator_ids(trace: Trace) -> Ints:
    """Returns ids of the outermost `to` or `copy_` operators that copy from host to device.

    Only a conversion (`to`, `copy_`) transfers a whole tensor. Copies by other operators are
    internal to these.
    """
    copies = filter_by_name(slices_on(trace, "device"), names.is_host_to_device_copy)["id"]
    told = trace.device_args.filter(
        pl.col("id").is_in(copies.implode()) & pl.col("operator").is_not_null()
    )
    conversion = np.zeros(trace.slices.height, bool)
    conversion[filter_by_name(trace.slices, names.is_copy_or_conversion)["id"].to_numpy()] = True
    parent = parent_of_every_slice(trace)
    inner = nearest_ancestor(parent, conversion, told["operator"].cast(pl.Int64).to_numpy())
    return np.unique(
        _outermost_wanted_ancestor_in_chain(parent, conversion, inner[inner != NO_SLICE])
    )


def _outermost_wanted_ancestor_in_chain(
    parent: Ints, is_wanted: NDArray[np.bool_], slice_ids: Ints
) -> Ints:
    """Climbs from each slice to its parent while that is flagged; returns the last one, or -1."""
    at = np.where((slice_ids != NO_SLICE) & is_wanted[slice_ids], slice_ids, NO_SLICE)
    climbing = np.flatnonzero(at != NO_SLICE)
    while climbing.size:
        above = parent[at[climbing]]
        climbing = climbing[(above != NO_SLICE) & is_wanted[above]]
        at[climbing] = parent[at[climbing]]
    return at
